"""Random values that meet a list of conditions, for a wanted size.

One variable after another gets a value from the interval that the conditions leave to it, given those before it; what
this cannot foresee is found by the check at the end, and tried again. Where no try succeeds nothing is generated.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from hf_qualcode.benchmark.inputs.conditions import (
    Alphabet,
    Around,
    Compare,
    Condition,
    Distinct,
    Fixed,
    Graph,
    Occurs,
    OneOf,
    Parity,
    Sorted,
)
from hf_qualcode.benchmark.inputs.expressions import (
    Array,
    Expression,
    Length,
    Name,
    Number,
    compile_expression,
    names_of,
)
from hf_qualcode.benchmark.inputs.formats import MAX_VALUES, ROW, Format
from hf_qualcode.benchmark.inputs.unread import Unread


MAX_TRIES = 30
MAX_NUMBER = 10**30
_SPAREST_GRAPH_FOR_LISTING = 3_000  # vertices up to which all pairs may be listed


class Retry(Exception):
    """This try has come to a dead end."""


class Generator:
    """Generates values for the variables of a format.

    Args:
        form (`Format`), conditions (`Sequence[Condition]`), strings (`set[str]`), hidden (`set[str]`): As read.

    Raises:
        `Unread`: A variable has no bounds, or a string no alphabet.
    """

    def __init__(self, form: Format, conditions: Sequence[Condition], strings: set[str], hidden: set[str]) -> None:
        self.form = form
        self.conditions = conditions
        self.strings = strings
        self.hidden = hidden
        self.compares = [condition for condition in conditions if isinstance(condition, Compare)]
        self.alphabets = self._alphabets()
        self.single = {c.name for c in conditions if isinstance(c, Alphabet) and c.single} | {
            name for name, spans in form.ranges.items() if len(spans) == 2 and name in strings
        }
        self.graph = next((c for c in conditions if isinstance(c, Graph)), None)
        self.sizes = self._size_names()

    def _alphabets(self) -> dict[str, str]:
        alphabets: dict[str, str] = {}
        for condition in self.conditions:
            if isinstance(condition, Alphabet):
                if condition.name in alphabets and set(alphabets[condition.name]) != set(condition.characters):
                    raise Unread(f"the two alphabets of {condition.name!r}")
                alphabets[condition.name] = condition.characters
        for name in self.strings:
            if name not in alphabets:
                raise Unread(f"the characters of {name!r}")
        return alphabets

    def _size_names(self) -> set[str]:
        """The scalars and string lengths that say how long an input is."""
        sizes = {f"|{name}|" for name in self.strings if not self.form.ranges[name]}
        for spans in self.form.ranges.values():
            for span in spans:
                for end in span:
                    sizes.update(node.name for node in names_of(end) if isinstance(node, Name) and not node.subscripts)
        sizes.discard(ROW)
        for compare in self.compares:  # |S| = N: N says it as well
            if compare.operator == "=" and any(isinstance(side, Length) for side in (compare.left, compare.right)):
                for node in (*names_of(compare.left), *names_of(compare.right)):
                    if isinstance(node, Name) and not node.subscripts and node.name in self.form.ranges:
                        sizes.add(node.name)
        return sizes | self.hidden

    def scalars(self) -> list[str]:
        """The hidden scalars, the numbers and the lengths of strings, in the order of the format."""
        keys = sorted(self.hidden)
        for name, spans in self.form.ranges.items():
            if not spans:
                keys.append(f"|{name}|" if name in self.strings else name)
        return keys

    def generate(self, size: float, random_source: random.Random, attempt: int) -> dict[str, object]:
        """Values for every variable. `attempt` counts the tries before: later ones ask for a little less or more.

        Raises:
            `Retry`: A dead end.
            `Unread`: A variable has no bounds.
        """
        return _Try(self, size, random_source, attempt).run()


class _Try:
    def __init__(self, generator: Generator, size: float, random_source: random.Random, attempt: int) -> None:
        self.generator = generator
        self.form = generator.form
        self.size = size
        self.random = random_source
        self.attempt = attempt
        self.values: dict[str, object] = {}
        self.count = 0

    def run(self) -> dict[str, object]:
        pending = self.generator.scalars() + [name for name, spans in self.form.ranges.items() if spans]
        while pending:
            name = self.next_name(pending)
            if self.is_array(name):
                graph = self.generator.graph
                if graph is not None and name in (graph.tails, graph.heads):
                    self.edges(graph)
                    pending = [other for other in pending if other not in (graph.tails, graph.heads)]
                else:
                    self.values[name] = self.array(name)
                    pending.remove(name)
            else:
                self.values[name] = self.scalar(name)
                pending.remove(name)
        for name in self.generator.strings:
            if not self.form.ranges[name]:
                self.values[name] = self.string(name, self.values[f"|{name}|"])
        self.plant()
        return {name: self.values[name] for name in (*self.form.ranges, *self.generator.hidden)}

    def is_array(self, name: str) -> bool:
        return bool(self.form.ranges.get(name))

    # ---- order ----

    def next_name(self, pending: list[str]) -> str:
        fallback = None
        for name in pending:
            if not self.has_range(name):
                continue
            bounds = [(kind, other, self.known(other)) for kind, other in self.bounds(name)]
            if all(known for _, _, known in bounds):
                return name
            kinds = {kind.rstrip("+") for kind, _, known in bounds if known}
            if fallback is None and ("=" in kinds or {"low", "high"} <= kinds):
                fallback = name
        if fallback is None:
            raise Unread(f"the bounds of {', '.join(map(repr, pending))}")
        return fallback

    def has_range(self, name: str) -> bool:
        return all(
            self.known(end) for span in self.form.ranges.get(name.strip("|"), ()) for end in span
        )

    def known(self, expression: Expression) -> bool:
        """Whether every variable in the expression has its value; indices always have."""
        for node in names_of(expression):
            if isinstance(node, Length):
                name = "" if node.of.subscripts else f"|{node.of.name}|"
            else:
                name = node.name
                if isinstance(node, Name) and name not in self.form.ranges and name not in self.generator.hidden:
                    continue
            if name not in self.values:
                return False
        return True

    def bounds(self, name: str) -> Iterator[tuple[str, Expression]]:
        """("low" | "high" | "=" and whether strict, expression) for each comparison with the bare variable."""
        for compare in self.generator.compares:
            if compare.operator == "!=":
                continue
            strict = "+" if compare.operator == "<" else ""
            if not self.is_array(name) and (self.varies(compare.left) or self.varies(compare.right)):
                continue  # of elements: bounds theirs, and is checked in the end
            if self.is_bare(compare.left, name):
                yield ("=" if compare.operator == "=" else "high") + strict, compare.right
            if self.is_bare(compare.right, name):
                yield ("=" if compare.operator == "=" else "low") + strict, compare.left

    def is_bare(self, expression: Expression, name: str) -> bool:
        if name.startswith("|"):
            return expression == Length(Name(name.strip("|")))
        if name in self.generator.strings and isinstance(expression, Length):
            expression = expression.of  # what bounds an array of strings bounds their lengths
        elif name in self.generator.strings:
            return False
        if not isinstance(expression, Name) or expression.name != name:
            return False
        return all(
            isinstance(subscript, Name) and not subscript.subscripts and subscript.name not in self.form.ranges
            and subscript.name not in self.generator.hidden
            for subscript in expression.subscripts
        )  # fmt: skip

    # ---- scalars ----

    def interval(
        self, bounds: Sequence[tuple[str, Callable]], name: str, indices: Mapping[str, int]
    ) -> tuple[int, int]:
        """The interval that the bounds leave to `name`, both ends included."""
        low = high = None
        for kind, function in bounds:
            value = function(self.values, indices)
            strict = kind.endswith("+")
            if kind.startswith("low") or kind == "=":
                value_low = value + strict
                low = value_low if low is None else max(low, value_low)
            if kind.startswith("high") or kind == "=":
                value_high = value - strict
                high = value_high if high is None else min(high, value_high)
        if low is None or high is None:
            raise Unread(f"the bounds of {name!r}")
        if max(abs(low), abs(high)) > MAX_NUMBER:
            raise Unread(f"the bounds of {name!r}, which are too far apart")
        if low > high:
            raise Retry
        return low, high

    def usable_bounds(self, name: str) -> list[tuple[str, Expression]]:
        return [(kind, other) for kind, other in self.bounds(name) if self.known(other)]

    def scalar(self, name: str) -> int:
        bounds = [(kind, compile_expression(other)) for kind, other in self.usable_bounds(name)]
        if name.strip("|") in self.generator.single and not bounds:
            return 1
        for condition in self.generator.conditions:
            if isinstance(condition, OneOf) and condition.name == name:
                return self.random.choice(condition.numbers)
        low, high = self.interval(bounds, name, {})
        if name in self.generator.sizes or len(self.generator.scalars()) == 1:
            value = low + round((high - low) * self.size)
            value = min(high, value + self.attempt) if value < high else max(low, high - self.attempt)
        else:
            # Other numbers grow with the size too, but differ from seed to seed.
            top = low + int((high - low) * min(1.0, self.size * 0.85**self.attempt))
            value = self.random.randint(low + (top - low) // 2, top)
        return self.with_parity(name, value, low, high)

    def with_parity(self, name: str, value: int, low: int, high: int) -> int:
        for condition in self.generator.conditions:
            if isinstance(condition, Parity) and self.is_bare(condition.of, name) and value % 2 != condition.remainder:
                value = value - 1 if value > low else value + 1
        if value > high:
            raise Retry
        return value

    def string(self, name: str, length: int) -> str:
        self.spend(length)
        return "".join(self.random.choices(self.generator.alphabets[name], k=length))

    def spend(self, count: int) -> None:
        self.count += max(count, 0)
        if self.count > MAX_VALUES:
            raise Unread("an input that is too long")

    # ---- arrays ----

    def array(self, name: str) -> Array:
        spans = self.form.ranges[name]
        first, last = (compile_expression(end)(self.values, {}) for end in spans[0])
        self.spend(last - first + 1)
        if len(spans) == 1:
            return Array(first, self.elements(name, range(first, last + 1), {}, "i"))
        rows = []
        whole = self.distinct(name) == "all"
        if whole:
            return self.distinct_matrix(name, range(first, last + 1), spans[1])
        low_end, high_end = (compile_expression(end) for end in spans[1])
        for row in range(first, last + 1):
            columns = range(low_end(self.values, {ROW: row}), high_end(self.values, {ROW: row}) + 1)
            self.spend(len(columns))
            rows.append(Array(columns.start, self.elements(name, columns, {"i": row, ROW: row}, "j")))
        return Array(first, rows)

    def distinct_matrix(self, name: str, rows: range, span: tuple[Expression, Expression]) -> Array:
        columns = range(*(compile_expression(end)(self.values, {}) for end in span))
        columns = range(columns.start, columns.stop + 1)
        flat = self.elements(name, range(len(rows) * len(columns)), {"i": rows.start}, "j")
        width = len(columns)
        return Array(
            rows.start, [Array(columns.start, flat[row * width : (row + 1) * width]) for row in range(len(rows))]
        )

    def distinct(self, name: str) -> str:
        for condition in self.generator.conditions:
            if isinstance(condition, Distinct) and condition.name == name:
                return "rows" if condition.rows else "all"
        return ""

    def elements(self, name: str, indices: range, outer: dict[str, int], index: str) -> list:
        if name in self.generator.strings:
            return self.string_elements(name, len(indices))
        for condition in self.generator.conditions:
            if isinstance(condition, OneOf) and condition.name == name:
                return self.random.choices(condition.numbers, k=len(indices))
        usable = self.usable_bounds(name)
        constant = [(kind, compile_expression(other)) for kind, other in usable if not self.varies(other)]
        varying = [(kind, self.renamed(other, index, outer)) for kind, other in usable if self.varies(other)]
        unequal = [
            self.renamed(other, index, outer) if self.varies(other) else compile_expression(other)
            for compare in self.generator.compares
            if compare.operator == "!="
            for side, other in ((compare.left, compare.right), (compare.right, compare.left))
            if self.is_bare(side, name) and self.known(other)
        ]
        order = next((c for c in self.generator.conditions if isinstance(c, Sorted) and c.name == name), None)
        distinct = self.distinct(name) or (order is not None and order.strict)
        if not varying and not unequal:
            low, high = self.interval(constant, name, {})
            if distinct:
                if high - low + 1 < len(indices):
                    raise Retry
                values = self.sample(low, high, len(indices))
            else:
                values = [self.random.randint(low, high) for _ in indices]
        elif distinct:
            raise Unread(f"distinct values of {name!r} with bounds that vary")
        else:
            values = []
            for position in indices:
                inner = {**outer, index: position}
                low, high = self.interval(constant + varying, name, inner)
                taken = {function(self.values, inner) for function in unequal}
                if all(value in taken for value in (low, high)) and high - low < len(taken):
                    raise Retry
                value = self.random.randint(low, high)
                while value in taken:
                    value = self.random.randint(low, high)
                values.append(value)
        return sorted(values) if order is not None else values

    def sample(self, low: int, high: int, count: int) -> list[int]:
        if high - low < 2**62:
            return self.random.sample(range(low, high + 1), count)
        chosen: dict[int, None] = {}
        while len(chosen) < count:
            chosen[self.random.randint(low, high)] = None
        return list(chosen)

    def varies(self, expression: Expression) -> bool:
        return any(
            isinstance(node, Name) and not node.subscripts
            and node.name not in self.form.ranges and node.name not in self.generator.hidden
            for node in names_of(expression)
        )  # fmt: skip

    def renamed(self, expression: Expression, index: str, outer: Mapping[str, int]) -> Callable:
        """The expression as a function whose indices, whatever the statement calls them, are those of the loop."""
        function = compile_expression(expression)
        names = {
            node.name
            for node in names_of(expression)
            if isinstance(node, Name) and not node.subscripts and node.name not in self.values
        }
        if not names <= {"i", "j"} or (not outer and len(names) > 1):
            raise Unread("bounds with indices of several kinds")
        if outer:
            return function
        alias = next(iter(names))
        return lambda values, indices: function(values, {alias: indices[index]})

    def string_elements(self, name: str, count: int) -> list[str]:
        alphabet = self.generator.alphabets[name]
        if name in self.generator.single:
            return self.random.choices(alphabet, k=count)
        usable = self.usable_bounds(name)
        if any(self.varies(other) for _, other in usable):
            raise Unread(f"lengths of {name!r} with bounds that vary")
        bounds = [(kind, compile_expression(other)) for kind, other in usable]
        low, high = self.interval(bounds, name, {})
        lengths = [self.random.randint(low, high) for _ in range(count)]
        self.spend(sum(lengths))
        strings = ["".join(self.random.choices(alphabet, k=length)) for length in lengths]
        if self.distinct(name) and len(set(strings)) < count:
            raise Retry
        return strings

    # ---- graphs ----

    def edges(self, graph: Graph) -> None:
        vertices = compile_expression(graph.vertices)(self.values, {})
        first, last = (compile_expression(end)(self.values, {}) for end in self.form.ranges[graph.tails][0])
        count = last - first + 1
        self.spend(2 * count)
        edges = self.connected_edges(vertices) if graph.tree or graph.connected else []
        if len(edges) > count or (graph.tree and len(edges) != count):
            raise Retry
        edges.extend(self.more_edges(graph, vertices, count - len(edges), edges))
        self.random.shuffle(edges)
        ordered = any(
            compare.operator in ("<", "<=")
            and self.is_bare(compare.left, graph.tails)
            and self.is_bare(compare.right, graph.heads)
            for compare in self.generator.compares
        )
        tails, heads = [], []
        for tail, head in edges:
            if (tail > head) if ordered else self.random.random() < 0.5:
                tail, head = head, tail
            tails.append(tail)
            heads.append(head)
        self.values[graph.tails] = Array(first, tails)
        self.values[graph.heads] = Array(first, heads)

    def connected_edges(self, vertices: int) -> list[tuple[int, int]]:
        labels = list(range(1, vertices + 1))
        self.random.shuffle(labels)
        return [(labels[self.random.randrange(place)], labels[place]) for place in range(1, vertices)]

    def more_edges(
        self, graph: Graph, vertices: int, count: int, present: list[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """`count` edges more."""
        loops = not (graph.loopless or graph.tree)
        if count and not loops and vertices < 2:
            raise Retry
        if not graph.single:
            edges = []
            while len(edges) < count:
                tail, head = self.random.randint(1, vertices), self.random.randint(1, vertices)
                if loops or tail != head:
                    edges.append((tail, head))
            return edges
        pairs = vertices * (vertices - 1) // 2 + (vertices if loops else 0)
        if len(present) + count > pairs:
            raise Retry
        taken = {(min(edge), max(edge)) for edge in present}
        if 2 * (len(present) + count) > pairs:
            if vertices > _SPAREST_GRAPH_FOR_LISTING:
                raise Unread("a graph that is too dense")
            free = [
                (tail, head)
                for tail in range(1, vertices + 1)
                for head in range(tail + (not loops), vertices + 1)
                if (tail, head) not in taken
            ]
            return self.random.sample(free, count)
        edges = []
        while len(edges) < count:
            tail, head = sorted((self.random.randint(1, vertices), self.random.randint(1, vertices)))
            if (tail, head) not in taken and (loops or tail != head):
                taken.add((tail, head))
                edges.append((tail, head))
        return edges

    # ---- what is put in at the end ----

    def plant(self) -> None:
        fixed: list[tuple[Name, object]] = []
        for condition in self.generator.conditions:
            if isinstance(condition, Fixed):
                fixed.append((condition.element, condition.text))
            elif isinstance(condition, Compare) and condition.operator == "=":
                for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
                    if isinstance(side, Name) and side.subscripts and isinstance(other, Number):
                        fixed.append((side, other.value))
        for name in sorted({c.name for c in self.generator.conditions if isinstance(c, Occurs)}):
            self.plant_characters(
                name, [c for c in self.generator.conditions if isinstance(c, Occurs) and c.name == name]
            )
        for condition in self.generator.conditions:
            if isinstance(condition, Around):
                self.plant_ends(condition)
        for element, value in fixed:
            if not any(self.varies(subscript) for subscript in element.subscripts):
                self.put(element, value)

    def put(self, element: Name, value: object) -> None:
        subscripts = [compile_expression(subscript)(self.values, {}) for subscript in element.subscripts]
        target = self.values[element.name]
        for subscript in subscripts[:-1]:
            target = target[subscript]
        target.values[subscripts[-1] - target.first] = value

    def plant_characters(self, name: str, conditions: Sequence[Occurs]) -> None:
        """Put each character in as often as it must occur, and out of everywhere else where that is limited."""
        value = self.values[name]
        if not isinstance(value, Array) or name not in self.generator.single:
            raise Unread(f"where {conditions[0].character!r} stands in {name!r}")
        rows = [row for row in value.values if isinstance(row, Array)] or [value]
        places = [(row, place) for row in rows for place in range(len(row.values))]
        limited = {condition.character for condition in conditions if condition.most is not None}
        others = [character for character in self.generator.alphabets[name] if character not in limited]
        for row, place in places:
            if row.values[place] in limited:
                row.values[place] = self.random.choice(others)
        wanted = [condition.character for condition in conditions for _ in range(condition.least)]
        if len(wanted) > len(places):
            raise Retry
        for (row, place), character in zip(self.random.sample(places, len(wanted)), wanted, strict=True):
            row.values[place] = character

    def plant_ends(self, condition: Around) -> None:
        text = self.values[condition.name]
        if not isinstance(text, str):
            raise Unread(f"what stands in {condition.name!r}")
        if len(text) < 2:
            raise Retry
        first, last = sorted(self.random.sample(range(len(text)), 2))
        letters = list(text)
        letters[first], letters[last] = condition.first, condition.last
        self.values[condition.name] = "".join(letters)
