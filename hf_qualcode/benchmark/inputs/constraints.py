"""The constraints of a statement: from English sentences and formulas to conditions.

Every line of the constraints is read in full or not at all. A line that is not understood is an error (`Unread`): a
condition that is missed would make inputs that the statement rules out. Only sentences of a fixed list say nothing
that matters here ("All values in input are integers").
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hf_qualcode.benchmark.inputs.conditions import (
    Alphabet,
    Around,
    Compare,
    Condition,
    Distinct,
    DistinctTuples,
    Fixed,
    Graph,
    Occurs,
    OneOf,
    Parity,
    Sorted,
    Substrings,
    free_indices,
)
from hf_qualcode.benchmark.inputs.expressions import (
    Absolute,
    Expression,
    Length,
    Name,
    Number,
    Operation,
    Total,
    Vocabulary,
    names_of,
    parse_expression,
)
from hf_qualcode.benchmark.inputs.formats import Format, Rows
from hf_qualcode.benchmark.inputs.formulas import plain_formulas
from hf_qualcode.benchmark.inputs.unread import Unread


LOWER = "abcdefghijklmnopqrstuvwxyz"
UPPER = LOWER.upper()
DIGITS = "0123456789"
MAX_LINE = 400  # characters
MAX_LINES = 60

_HARMLESS = re.compile(
    r"(?:all (?:the )?(?:input )?(?:values|numbers|inputs)(?: (?:in|of) (?:the )?input)?(?: given)? are integers"
    r"|(?:(?P<names>[A-Za-z_{},. ]+?) (?:is an integer|are integers))"
    r"|(?:the )?input is given from standard input in the following format:?)",
    re.IGNORECASE,
)
_MIN_REMARK = re.compile(r"\(min\(([^()]*),([^()]*)\) is the smaller of \1 and \2\.?\)")
_LETTERS = (
    (re.compile(r"(?:lowercase|small)(?: english)?(?: letters?| alphabets?)?(?: \(a ?- ?z\))?"), LOWER),
    (re.compile(r"(?:uppercase|capital)(?: english)?(?: letters?| alphabets?)?(?: \(a ?- ?z\))?"), UPPER),
    (re.compile(r"digits(?: \(?(?:from )?0 ?(?:-|through|to) ?9\)?)?|decimal digits"), DIGITS),
)
_DIGIT_SPAN = re.compile(r"digits from (\d) (?:through|to) (\d)")
_VARIABLE = r"[A-Za-z]+(?:_(?:\{[^{}]*\}|\w))?"
_CHAIN = re.compile(r"(<=|>=|!=|<|>|=)")


class ConstraintReader:
    """Reads lines of constraints over the variables of a format.

    Attributes:
        conditions (`list[Condition]`): What was read.
        strings (`set[str]`): Variables whose values are strings.
        hidden (`set[str]`): Scalars that the constraints use and the input does not hold, such as the N of |S| = N.
    """

    def __init__(self, form: Format, lines: Sequence[str]) -> None:
        if len(lines) > MAX_LINES:
            raise Unread("constraints of too many lines")
        self.form = form
        self.lines = [_plain_line(line) for line in lines]
        self.conditions: list[Condition] = []
        self.strings: set[str] = set()
        self.graph: dict[str, bool] = {}
        self.dimensions = {name: len(ranges) for name, ranges in form.ranges.items()}
        self.hidden = self._hidden_scalars()
        # Strings first: what |S| means depends on them.
        for line in self.lines:
            self._find_strings(line)
        self.vocabulary = Vocabulary({**self.dimensions, **dict.fromkeys(self.hidden, 0)}, self.strings)
        for line in self.lines:
            self._read(line)
        if self.graph:
            self.conditions.append(self._graph())

    # ---- the variables ----

    def _hidden_scalars(self) -> set[str]:
        """Capital letters that stand alone in the constraints and are nowhere in the input."""
        hidden = set()
        for line in self.lines:
            for match in re.finditer(r"(?:length (?:of )?(?:\w+ is )?|\| ?= ?)([A-Z])(?![A-Za-z_])", line):
                if match.group(1) not in self.dimensions:
                    hidden.add(match.group(1))
        return hidden

    def _find_strings(self, line: str) -> None:
        text, _ = _without_quantifiers(line)
        for pattern in (
            rf"({_VARIABLE}(?:(?:,| and|, and) {_VARIABLE})*) (?:is a string|are strings|consists? of|contains? only)",
            rf"[Ee]ach character (?:of|in) (?:the string )?({_VARIABLE}) is",
            rf"[Tt]he length of (?:the string )?({_VARIABLE}) (?:is|equals)",
            rf"({_VARIABLE}(?:(?:,| and|, and) {_VARIABLE})*) (?:is|are) (?:an? )?(?:uppercase|lowercase)",
        ):
            for match in re.finditer(pattern, text):
                self.strings.update(self._variables(match.group(1)))
        match = re.fullmatch(rf"({_VARIABLE}) ?(?:is|=) ?(?:either )?(.*)", text)
        if match and not re.fullmatch(r"[\d ,]+", match.group(2)) and _characters(match.group(2)):
            self.strings.update(self._variables(match.group(1)))

    def _variables(self, text: str) -> list[str]:
        """The variables in a list such as "S_i and T_i", without their subscripts; empty if one is none."""
        names = [re.sub(r"_.*", "", part) for part in _split_names(text) if part]
        return names if all(name in self.dimensions for name in names) else []

    def _named(self, text: str) -> list[str]:
        names = self._variables(text)
        if not names:
            raise Unread(f"the variables {text!r}")
        return names

    def expression(self, text: str) -> Expression:
        expression = parse_expression(text.strip(), self.vocabulary)
        for node in names_of(expression):
            if isinstance(node, Total):
                ranges = self.form.ranges[node.name]
                if len(ranges) != 1 or ranges[0] != (Number(1), node.last):
                    raise Unread(f"the sum {text!r}")
        return expression

    # ---- one line ----

    def _read(self, line: str) -> None:
        harmless = _HARMLESS.fullmatch(line)
        if harmless:
            if harmless.group("names"):
                self._named(re.sub(r"\{[^{}]*\}", "", harmless.group("names")))
            return
        text, quantifiers = _without_quantifiers(_MIN_REMARK.sub("", line).strip())
        before = len(self.conditions)
        for reader in (
            self._read_distinct, self._read_graph, self._read_string, self._read_between, self._read_occurrence,
            self._read_fixed, self._read_set, self._read_chains,
        ):  # fmt: skip
            if reader(text):
                break
        else:
            raise Unread(line)
        self._check_quantifiers(quantifiers, self.conditions[before:], line)

    def _check_quantifiers(self, quantifiers: list[str], conditions: list[Condition], line: str) -> None:
        """Quantifiers must name the whole range of the arrays: a condition on a part is another condition."""
        for quantifier in quantifiers:
            text = quantifier.replace(" ", "")
            if not conditions and text == "i!=j":  # of the edges of a graph
                continue
            if any(isinstance(condition, Distinct | DistinctTuples) for condition in conditions):
                if re.fullmatch(r"[ij]!=[ij]|\(?i(?:_1,j_1\)!=\(i_2,j_2\))|[ij]_1!=[ij]_2|i(?:!=|<)j", text):
                    continue
                text = text.replace("<=i<j<=", "<=i<=")
            spans = []
            for part in text.split(","):
                match = re.fullmatch(r"(\w+)<=[ijk]<=(.+)", part)
                if match is None:
                    raise Unread(line)
                spans.append(match.groups())
            names = {name for condition in conditions for name in _arrays_of(condition)}
            for first, last in spans:
                span = self.expression(first), self.expression(last)
                if not names or not all(span in self.form.ranges.get(name, ()) for name in names):
                    raise Unread(line)

    # ---- sentences ----

    def _read_distinct(self, text: str) -> bool:
        match = re.fullmatch(rf"({_VARIABLE}) != ({_VARIABLE})", text)
        if match:
            first, second = (self.expression(side) for side in match.groups())
            if isinstance(first, Name) and isinstance(second, Name) and first.name == second.name:
                return self._add_distinct(first, second)
            return False
        match = re.fullmatch(
            rf"(?:[A-Za-z ]*,? )?\(({_VARIABLE}(?:, ?{_VARIABLE})+)\)(?:,)? are (?:all |pairwise )?"
            r"(?:distinct|different)", text,
        )  # fmt: skip
        if match and "..." not in text:
            names = tuple(self._named(match.group(1)))
            self._all_dimension(names, 1)
            self.conditions.append(DistinctTuples(names))
            return True
        match = re.fullmatch(r"For each i, (.*) are (?:all |pairwise )?distinct", text)
        rows = match is not None
        match = match or re.fullmatch(r"(?:all )?(.*?) are (?:all |pairwise )?distinct", text)
        if match is None:
            return False
        listed = match.group(1).strip()
        names = {re.sub(r"_.*", "", part) for part in _split_names(listed) if part not in ("", "...")}
        if len(names) != 1 or not names <= self.dimensions.keys():
            return False
        name = names.pop()
        if self.dimensions[name] != (2 if rows else 1):
            return False
        self.conditions.append(Distinct(name, rows))
        return True

    def _add_distinct(self, first: Name, second: Name) -> bool:
        """`A_i != A_j`, `A_{i_1, j_1} != A_{i_2, j_2}` (all elements), `x_{ij_1} != x_{ij_2}` (in a row)."""
        pairs = list(zip(first.subscripts, second.subscripts, strict=True))
        if not all(isinstance(side, Name) and not side.subscripts for pair in pairs for side in pair):
            return False
        differ = [left != right for left, right in pairs]
        if not differ or not differ[-1] or len({name for pair in pairs for name in pair}) != len(pairs) + sum(differ):
            return False
        self.conditions.append(Distinct(first.name, rows=len(differ) == 2 and not differ[0]))
        return True

    def _read_graph(self, text: str) -> bool:
        sentence = text.lower().replace("multi-edges", "double edges").replace("multiple edges", "double edges")
        match = re.fullmatch(
            r"the (?:given )?graph (?:does not contain|contains neither|contains no|has neither|has no|is|has) (.*)",
            sentence,
        )
        if match is None and sentence.startswith("every town can be reached from every town by road"):
            self.graph["connected"] = True
            return True
        if match is None:
            pairs = [part.replace(" ", "") for part in re.findall(r"\([^()]*\) ?!= ?\([^()]*\)", text)]
            rest = re.sub(r"\([^()]*\) ?!= ?\([^()]*\)|,| ", "", text)
            wanted = {"(A_i,B_i)!=(A_j,B_j)", "(A_i,B_i)!=(B_j,A_j)"}
            if not rest and pairs and {part.upper() for part in pairs} == {part.upper() for part in wanted}:
                self.graph["single"] = True
                return True
            return False
        what = match.group(1)
        negative = re.search(r"does not contain|neither|no ", sentence) is not None
        if not negative and what in ("connected", "a tree", "simple", "simple and connected"):
            simple = {"loopless": True, "single": True}
            kinds = {"a tree": {"tree": True}, "connected": {"connected": True}, "simple": simple}
            self.graph.update(kinds.get(what, {**simple, "connected": True}))
            return True
        parts = set(re.split(r" and | or | nor |, ", what))
        if not negative or not parts <= {"self-loops", "double edges", "self loops"}:
            return False
        self.graph.update({"single" if part == "double edges" else "loopless": True for part in parts})
        return True

    def _graph(self) -> Graph:
        """The graph of the only rows whose first two columns are numbers from 1 up to one and the same scalar."""
        found = []
        for part in self.form.parts:
            if isinstance(part, Rows) and len(part.lines) == 1 and len(part.lines[0].items) >= 2:
                tails, heads = (item.name for item in part.lines[0].items[:2])
                tops = [self._top(tails), self._top(heads)]
                if tops[0] is not None and tops[0] == tops[1]:
                    found.append(Graph(tails, heads, tops[0]))
        if len(found) != 1:
            raise Unread("a graph whose edges are not found in the format")
        edges = found[0]
        different = any(
            isinstance(condition, Compare) and condition.operator in ("<", "!=")
            and {_bare(condition.left), _bare(condition.right)} == {edges.tails, edges.heads}
            for condition in self.conditions
        )  # fmt: skip
        return replace(edges, **{**({"loopless": True} if different else {}), **self.graph})

    def _top(self, name: str) -> Expression | None:
        for condition in self.conditions:
            if (
                isinstance(condition, Compare)
                and condition.operator in ("<", "<=")
                and _bare(condition.left) == name
                and isinstance(condition.right, Name)
                and not condition.right.subscripts
            ):
                return condition.right
        return None

    def _read_string(self, text: str) -> bool:
        text = re.sub(r"^For each i, ", "", text)
        patterns = (
            rf"(?P<names>{_VARIABLE}(?:(?:,| and|, and) {_VARIABLE})*) (?:is a|are) strings? consisting(?: only)? of"
            r" (?P<what>.*)",
            rf"(?P<names>{_VARIABLE}(?:(?:,| and|, and) {_VARIABLE})*) consists? (?:only )?of (?P<what>.*)",
            rf"(?P<names>{_VARIABLE}) is a string of length (?P<length>\S+)(?: consisting(?: only)? of (?P<what>.*))?",
            rf"(?P<names>{_VARIABLE}(?: and {_VARIABLE})*) are strings of length (?P<length>\S+)(?: each)?",
            rf"[Ee]ach character (?:of|in) (?:the string )?(?P<names>{_VARIABLE}) is (?P<what>.*)",
            rf"[Tt]he length of (?:the string )?(?P<names>{_VARIABLE}) (?:is|equals) (?P<length>[^ ]+)",
            rf"(?P<names>{_VARIABLE}(?:(?:,| and|, and) {_VARIABLE})*) ?(?:is|are|=) ?(?:an? )?(?:either )?"
            r"(?P<what>.*)",
        )
        for number, pattern in enumerate(patterns):
            match = re.fullmatch(pattern, text)
            if match is None or not self._variables(match.group("names")):
                continue
            groups = match.groupdict()
            what, length = groups.get("what"), groups.get("length")
            characters = _characters(what) if what is not None else ""
            if characters is None or (number == len(patterns) - 1 and re.fullmatch(r"[\d ,]+", what)):
                continue
            # "s_i is B or W" speaks of the characters of the string s, or of elements of an array of strings.
            single = number == len(patterns) - 1
            variables = _split_names(match.group("names"))
            for name, variable in zip(self._named(match.group("names")), variables, strict=True):
                if characters:
                    of_string = single and "_" in variable and self.dimensions[name] == 0
                    self.conditions.append(Alphabet(name, characters, single and not of_string))
                if length:
                    self._add_length(name, "=", self.expression(length))
            return True
        return False

    def _add_length(self, name: str, operator: str, value: Expression, mirrored: bool = False) -> None:
        subscripts = tuple(Name(index) for index in "ij"[: self.dimensions[name]])
        length = Length(Name(name, subscripts))
        self.conditions.append(Compare(value, operator, length) if mirrored else Compare(length, operator, value))

    def _read_between(self, text: str) -> bool:
        match = re.fullmatch(
            rf"({_VARIABLE}|[Tt]he length of {_VARIABLE}) is (?:an? )?(?:(integer|odd number|even number) )?between "
            r"(\S+) and (\S+)(?: \(inclusive\)| inclusive|, inclusive)", text,
        )  # fmt: skip
        if match:
            variable, kind, low, high = match.groups()
            subject = self._subject(variable)
            self.conditions.append(Compare(self.expression(low), "<=", subject))
            self.conditions.append(Compare(subject, "<=", self.expression(high)))
            if kind in ("odd number", "even number"):
                self.conditions.append(Parity(subject, int(kind == "odd number")))
            return True
        match = re.fullmatch(rf"({_VARIABLE}) is an? (even|odd) (?:number|integer)", text)
        if match:
            self.conditions.append(Parity(self._subject(match.group(1)), int(match.group(2) == "odd")))
            return True
        match = re.fullmatch(rf"{_VARIABLE} (?:is an integer|are integers) (?:satisfying|such that) (.*)", text)
        return match is not None and self._read_chains(match.group(1))

    def _subject(self, text: str) -> Expression:
        match = re.fullmatch(rf"[Tt]he length of ({_VARIABLE})", text)
        if match:
            name = self._named(match.group(1))[0]
            return Length(Name(name, tuple(Name(index) for index in "ij"[: self.dimensions[name]])))
        return self.expression(text)

    def _read_occurrence(self, text: str) -> bool:
        match = re.fullmatch(rf"There is exactly one (\S) among ({_VARIABLE})", text)
        if match:
            self.conditions.append(Occurs(self._named(match.group(2))[0], match.group(1), 1, 1))
            return True
        match = re.fullmatch(
            rf"There exists a substring of ({_VARIABLE}) that starts with (\S) and ends with (\S)", text
        )
        if match:
            self.conditions.append(Around(self._named(match.group(1))[0], match.group(2), match.group(3)))
            return True
        match = re.fullmatch(rf"({_VARIABLE}) has at least (\w+) different substrings", text)
        if match and self.dimensions.get(match.group(1)) == 0:
            self.strings.add(match.group(1))
            self.conditions.append(Substrings(match.group(1), self.expression(match.group(2))))
            return True
        match = re.fullmatch(r"There always exists? [ijk](?:(?:,| and|, and) [ijk])* such that (.*)", text)
        if match:
            for part in re.split(r", and |,| and ", match.group(1)):
                element = re.fullmatch(r" ?([A-Za-z])_[ijk] ?= ?([A-Z])", part)
                if element is None or element.group(1) not in self.dimensions:
                    return False
                self.conditions.append(Occurs(element.group(1), element.group(2), 1))
            return True
        if re.fullmatch(r"There is at least one black square in the whole grid", text):
            grids = [name for name, count in self.dimensions.items() if count == 2]
            alphabets = [c for c in self.conditions if isinstance(c, Alphabet) and c.name in grids]
            if len(grids) == 1 and len(alphabets) == 1 and set(alphabets[0].characters) == {".", "#"}:
                self.conditions.append(Occurs(grids[0], "#", 1))
                return True
        return False

    def _read_fixed(self, text: str) -> bool:
        match = re.fullmatch(rf"({_VARIABLE}) and ({_VARIABLE}) are (\S)", text)
        if match is None:
            return False
        elements = [self.expression(side) for side in match.groups()[:2]]
        if not all(isinstance(element, Name) and not _free(element, self.vocabulary) for element in elements):
            return False
        self.conditions.extend(Fixed(element, match.group(3)) for element in elements)
        return True

    def _read_set(self, text: str) -> bool:
        match = re.fullmatch(rf"({_VARIABLE}) (?:=|is) (?:either )?(\d+(?:(?:,| or|, or) \d+)+)", text)
        if match is None:
            return False
        name = self._named(match.group(1))[0]
        self.conditions.append(OneOf(name, tuple(map(int, re.findall(r"\d+", match.group(2))))))
        return True

    # ---- formulas ----

    def _read_chains(self, text: str) -> bool:
        if re.search(r"[A-Za-z]{3,}", re.sub(r"\b(?:min|max)\b", "", text)) and not _CHAIN.search(text):
            return False
        match = re.fullmatch(r"(.*[^,\s])\s*,\s*([A-Za-z]\w* ?!= ?[A-Za-z]\w*)", text)
        if match and _CHAIN.search(match.group(1)):  # 1 <= A_i, B_i <= N, A_i != B_i
            return self._read_chains(match.group(1)) and self._read_chains(match.group(2))
        pieces = [piece.strip() for piece in _CHAIN.split(text)]
        if len(pieces) < 3 or not all(pieces):
            return False
        if "..." in pieces:
            return self._read_sorted(pieces)
        groups = [self._group(side) for side in pieces[::2]]
        operators = pieces[1::2]
        if any(operator in (">", ">=") for operator in operators):
            if not all(operator in (">", ">=", "=") for operator in operators):
                return False
            groups, operators = groups[::-1], [MIRROR[operator] for operator in operators[::-1]]
        if "!=" in operators and len(operators) > 1:
            return False
        for first in range(len(groups)):
            for second in range(first + 1, len(groups)):
                between = operators[first:second]
                # Not only neighbours: 1 <= A <= B <= 9 bounds A by 9 as well.
                operator = "<" if "<" in between else between[0] if len(set(between)) == 1 else "<="
                for left in groups[first]:
                    for right in groups[second]:
                        self._add_compare(left, operator, right)
        return True

    def _group(self, text: str) -> list[Expression]:
        """The expressions of a list such as `A_i, B_i`; a list of more than one holds variables alone."""
        parts = _split_names(text) if not re.search(r"\b(?:min|max)\b", text) else [text]
        expressions = [self.expression(part) for part in parts]
        if len(expressions) > 1 and not all(isinstance(part, Name | Length | Absolute) for part in expressions):
            raise Unread(f"the list {text!r}")
        return expressions

    def _add_compare(self, left: Expression, operator: str, right: Expression) -> None:
        if isinstance(left, Absolute) and operator in ("<", "<="):
            self.conditions.append(Compare(left.of, operator, right))
            self.conditions.append(Compare(Operation("-", Number(0), right), operator, left.of))
        else:
            if isinstance(left, Number) and isinstance(right, Number):
                return
            self.conditions.append(Compare(left, operator, right))

    def _read_sorted(self, pieces: list[str]) -> bool:
        """`low <= a_1 < a_2 < ... < a_N <= high`."""
        dots = pieces.index("...")
        if not 2 <= dots < len(pieces) - 2 or pieces.count("...") != 1:
            return False
        operator = pieces[dots - 1]
        if operator not in ("<", "<=") or pieces[dots + 1] != operator:
            return False
        last = self.expression(pieces[dots + 2])
        if not isinstance(last, Name) or not last.subscripts:
            return False
        ranges = self.form.ranges[last.name]
        span = ranges[-1]
        start = dots - 2
        listed = []
        while start >= 0:
            part = self.expression(pieces[start])
            if not isinstance(part, Name) or part.name != last.name:
                break
            listed.insert(0, part)
            if start and pieces[start - 1] != operator:
                start -= 2
                break
            start -= 2
        rows = last.subscripts[:-1]
        if not isinstance(span[0], Number):
            return False
        wanted = [Name(last.name, (*rows, Number(span[0].value + place))) for place in range(len(listed))]
        if not listed or listed != wanted or not self._ends(last, span[1]):
            return False
        self.conditions.append(Sorted(last.name, operator == "<"))
        element = Name(last.name, tuple(Name(index) for index in "ij"[: len(ranges)]))
        low, high = pieces[: start + 2], pieces[dots + 3 :]
        if low:
            if len(low) != 2:
                return False
            self._add_compare(self.expression(low[0]), low[1], element)
        if high:
            if len(high) != 2:
                return False
            self._add_compare(element, high[0], self.expression(high[1]))
        return True

    @staticmethod
    def _ends(last: Name, end: Expression) -> bool:
        """Whether `last` is the last element: a_N of N elements, A_{i, d_i} where each row has its d_i."""
        subscript = last.subscripts[-1]
        if subscript == end:
            return True
        return (
            isinstance(subscript, Name) and isinstance(end, Name) and subscript.name == end.name
            and len(last.subscripts) == 2 and subscript.subscripts == last.subscripts[:1] and len(end.subscripts) == 1
        )  # fmt: skip

    def _all_dimension(self, names: Sequence[str], count: int) -> None:
        if any(self.dimensions[name] != count for name in names):
            raise Unread(f"the variables {', '.join(names)}")


MIRROR = {">": "<", ">=": "<=", "=": "="}


def _plain_line(line: str) -> str:
    line = line.removeprefix("- ").strip()
    if len(line) > MAX_LINE:
        raise Unread("a constraint that is too long")
    # "... are .." is about the character "." and ends in a full stop.
    return plain_formulas(re.sub(r"\.$", "", line))


def _without_quantifiers(text: str) -> tuple[str, list[str]]:
    """The text without "(1 <= i <= N)" and "(i != j)", and these."""
    quantifiers: list[str] = []
    position = 0
    while (start := text.find("(", position)) >= 0:
        depth = 0
        end = start
        for end in range(start, len(text)):
            depth += (text[end] == "(") - (text[end] == ")")
            if depth == 0:
                break
        inner = text[start + 1 : end]
        # "(A_i, B_i) != (A_j, B_j)" is no quantifier: what stands in one compares indices.
        if re.fullmatch(r"[^A-Z]*(?<![A-Za-z])[ijk](?:_\d)?(?![A-Za-z]).*", inner) and _CHAIN.search(inner):
            quantifiers.append(inner)
            text = f"{text[:start].rstrip()} {text[end + 1:].lstrip()}".strip()
            position = start
        else:
            position = end + 1
    text = re.sub(r"\s+,", ",", text)
    return text, quantifiers


def _characters(text: str) -> str | None:
    """The characters that a description such as "lowercase English letters" or "`B` or `W`" allows."""
    text = text.strip()
    for pattern, characters in _LETTERS:
        if pattern.fullmatch(text.lower().removesuffix(" letter").strip()) or pattern.fullmatch(text.lower()):
            return characters
    match = _DIGIT_SPAN.fullmatch(text)
    if match:
        return DIGITS[int(match.group(1)) : int(match.group(2)) + 1]
    match = re.fullmatch(r"(?:a )?(lowercase|uppercase) English letter that is not (\w)", text)
    if match:
        return {"lowercase": LOWER, "uppercase": UPPER}[match.group(1)].replace(match.group(2), "")
    parts = re.split(r", and |, or |, | and | or ", text)
    if len(parts) >= 2 and all(len(part) == 1 for part in parts) and len(set(parts)) == len(parts):
        return "".join(parts)
    return None


def _split_names(text: str) -> list[str]:
    """A list at its commas and "and"s outside of brackets."""
    parts, depth, start = [], 0, 0
    text = re.sub(r", and | and ", ",", text)
    for position, sign in enumerate(text):
        depth += (sign in "({") - (sign in ")}")
        if sign == "," and depth == 0 and not re.match(r"(?<=\d),\d{3}(?!\d)", text[position:]):
            before_digit = position > 0 and text[position - 1].isdigit()
            if before_digit and re.match(r",\d{3}(?!\d)", text[position:]):
                continue
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    return parts


def _bare(expression: Expression) -> str | None:
    """The array that the expression is a plain element of (`a_i`)."""
    if isinstance(expression, Name) and len(expression.subscripts) == 1 and isinstance(expression.subscripts[0], Name):
        return expression.name
    return None


def _free(expression: Expression, vocabulary: Vocabulary) -> bool:
    return bool(free_indices((expression,), vocabulary.dimensions))


def _arrays_of(condition: Condition) -> Iterator[str]:
    if isinstance(condition, Compare):
        for side in (condition.left, condition.right):
            for node in names_of(side):
                name = node.of if isinstance(node, Length) else node
                if isinstance(name, Name) and name.subscripts:
                    yield name.name
    elif isinstance(condition, DistinctTuples):
        yield from condition.names
    elif isinstance(condition, Alphabet | OneOf | Distinct | Sorted | Occurs):
        yield condition.name
