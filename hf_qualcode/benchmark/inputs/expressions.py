"""Integer expressions of formats and constraints: `N-1`, `min(N(N-1)/2, 1000)`, `2 * 10^5`, `A_{i+1}`, `|S|`.

A parser of our own, over exact integers. Nothing of a statement is ever evaluated by Python.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from hf_qualcode.benchmark.inputs.unread import Unread


MAX_EXPONENT = 64
_MAX_LENGTH = 300  # characters of a formula; longer ones are not read
_MAX_NESTING = 40  # signs that may open a level
_TOKEN = re.compile(r"\s*(?:(\d+(?:,\d{3})*(?![\d]))|([A-Za-z]+)|(\.\.\.)|([-+*/^()|,_{}]))")


@dataclass(frozen=True, slots=True)
class Number:
    value: int


@dataclass(frozen=True, slots=True)
class Name:
    """A variable; `subscripts` name its element, and are empty for a scalar, a string and an index."""

    name: str
    subscripts: "tuple[Expression, ...]" = ()


@dataclass(frozen=True, slots=True)
class Length:
    """The number of characters of a string."""

    of: Name


@dataclass(frozen=True, slots=True)
class Absolute:
    of: "Expression"


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of all elements of an array, up to the one with the subscript `last`."""

    name: str
    last: "Expression"


@dataclass(frozen=True, slots=True)
class Operation:
    """`+`, `-`, `*`, `/` (rounded down), `^`, `min` or `max` of two expressions."""

    operator: str
    left: "Expression"
    right: "Expression"


Expression = Number | Name | Length | Absolute | Total | Operation
Values = Mapping[str, object]


@dataclass(slots=True)
class Array:
    """An array whose first element has the index `first`. Elements are numbers, strings, or arrays (rows)."""

    first: int
    values: list

    def __getitem__(self, index: int):
        if not 0 <= index - self.first < len(self.values):
            raise LookupError(f"no element {index}")
        return self.values[index - self.first]

    def elements(self) -> Iterator[int | str]:
        """Every element, those of rows too."""
        for value in self.values:
            if isinstance(value, Array):
                yield from value.elements()
            else:
                yield value


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names a formula may use.

    Attributes:
        dimensions (`Mapping[str, int]`): Variable -> number of subscripts.
        strings (`Collection[str]`): Variables whose values (elements, if they have subscripts) are strings.
    """

    dimensions: Mapping[str, int]
    strings: Collection[str] = ()


def parse_expression(text: str, vocabulary: Vocabulary) -> Expression:
    """The expression `text` stands for.

    Raises:
        `Unread`: `text` is not one expression over the vocabulary's names, or is ambiguous.
    """
    return _Parser(text, vocabulary).parse()


class _Parser:
    """Recursive descent; the depth is bounded by the length of a formula."""

    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        if len(text) > _MAX_LENGTH or len(re.findall(r"[({|^-]", text)) > _MAX_NESTING:
            raise Unread("a formula that is too long")
        self.text = text
        self.vocabulary = vocabulary
        self.tokens: list[str] = []
        self.position = 0
        self.calls = 0
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise Unread(f"the formula {text!r}")
            self.tokens.append(match.group().strip())
            position = match.end()

    def fail(self) -> Unread:
        return Unread(f"the formula {self.text!r}")

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if not token or (expected is not None and token != expected):
            raise self.fail()
        self.position += 1
        return token

    def parse(self) -> Expression:
        expression = self.sum()
        if self.peek():
            raise self.fail()
        return expression

    def sum(self) -> Expression:
        if self.peek() == "-":
            self.take()
            left: Expression = Operation("-", Number(0), self.product())
        else:
            left = self.product()
        terms = [left]
        while self.peek() in ("+", "-"):
            operator = self.take()
            if operator == "+" and self.peek() == "...":
                self.take()
                self.take("+")
                return self.total(terms, self.product())
            right = self.product()
            terms.append(right)
            left = Operation(operator, left, right)
        return left

    def total(self, terms: list[Expression], last: Expression) -> Expression:
        """`a_1 + a_2 + ... + a_N`: the sum of a whole array, and nothing else."""
        names = [*terms, last]
        first = names[0]
        if not isinstance(first, Name) or len(first.subscripts) != 1:
            raise self.fail()
        for number, term in enumerate(terms, 1):
            if term != Name(first.name, (Number(number),)):
                raise self.fail()
        if not isinstance(last, Name) or last.name != first.name or len(last.subscripts) != 1:
            raise self.fail()
        return Total(first.name, last.subscripts[0])

    def product(self) -> Expression:
        left = self.power()
        while True:
            token = self.peek()
            if token in ("*", "/"):
                self.take()
                left = Operation(token, left, self.power())
            elif token == "(" or token[:1].isalpha():
                left = Operation("*", left, self.power())
            else:
                return left

    def power(self) -> Expression:
        base = self.atom()
        if self.peek() != "^":
            return base
        self.take()
        if self.peek() == "{":
            self.take()
            exponent = self.sum()
            self.take("}")
        else:
            exponent = self.atom()
        return Operation("^", base, exponent)

    def atom(self) -> Expression:
        token = self.take()
        if token[0].isdigit():
            if "," in token and self.calls:
                raise self.fail()  # min(2,100): one number or two?
            return Number(int(token.replace(",", "")))
        if token == "(":
            inner = self.sum()
            self.take(")")
            return inner
        if token == "{":
            inner = self.sum()
            self.take("}")
            return inner
        if token == "|":
            inner = self.sum()
            self.take("|")
            if isinstance(inner, Name) and inner.name in self.vocabulary.strings:
                return Length(inner)
            return Absolute(inner)
        if token in ("min", "max"):
            return self.call(token)
        if token.isalpha():
            return self.name(token)
        raise self.fail()

    def call(self, function: str) -> Expression:
        closing = {"(": ")", "{": "}"}.get(self.peek())
        if closing is None:
            raise self.fail()
        self.take()
        self.calls += 1
        result = self.sum()
        while self.peek() == ",":
            self.take()
            result = Operation(function, result, self.sum())
        self.calls -= 1
        self.take(closing)
        return result

    def name(self, letters: str) -> Expression:
        dimensions = self.vocabulary.dimensions
        if letters not in dimensions and len(letters) > 1:
            # NM stands for N times M; a subscript belongs to the last letter.
            if not all(letter in dimensions for letter in letters):
                raise Unread(f"the name {letters!r}")
            result: Expression | None = None
            for number, letter in enumerate(letters):
                factor = self.element(letter) if number == len(letters) - 1 else self.bare(letter)
                result = factor if result is None else Operation("*", result, factor)
            return result
        return self.element(letters)

    def bare(self, name: str) -> Name:
        if self.vocabulary.dimensions.get(name, 0) == 1:
            return Name(name, (Name("i"),))  # "1 <= N <= 9" where the input has an N_i for each i alone
        if self.vocabulary.dimensions.get(name, 0) != 0:
            raise Unread(f"the name {name!r} without its subscript")
        return Name(name)

    def element(self, name: str) -> Name:
        if name not in self.vocabulary.dimensions and name not in ("i", "j", "k"):
            raise Unread(f"the name {name!r}, which the input does not have")
        if self.peek() != "_":
            return self.bare(name)
        self.take()
        if self.peek() == "{":
            self.take()
            subscripts = [self.subscript()]
            while self.peek() == ",":
                self.take()
                subscripts.append(self.subscript())
            self.take("}")
        else:
            subscripts = [self.subscript_atom()]
        subscripts = [part for subscript in subscripts for part in subscript]
        if len(subscripts) != self.vocabulary.dimensions.get(name, 0):
            raise Unread(f"the number of subscripts of {name!r}")
        return Name(name, tuple(subscripts))

    def subscript(self) -> list[Expression]:
        """One subscript; or two that were written together, as in `a_{ij}`."""
        token = self.peek()
        following = self.tokens[self.position + 1 : self.position + 2]
        if re.fullmatch(r"[ij]{2}|[1-9]{2}", token) and following in (["}"],):
            self.take()
            return [self.index(letter) for letter in token]
        if re.fullmatch(r"[ijk]", token) and following == ["_"]:  # i_1 is an index of its own
            self.take()
            self.take()
            return [Name(f"{token}_{self.take()}")]
        return [self.sum()]

    def index(self, letter: str) -> Expression:
        return Number(int(letter)) if letter.isdigit() else Name(letter)

    def subscript_atom(self) -> list[Expression]:
        token = self.take()
        if token.isdigit():
            return [Number(int(token))]
        if token.isalpha() and (len(token) == 1 or token in self.vocabulary.dimensions):
            return [Name(token)]
        raise self.fail()


def names_of(expression: Expression) -> Iterator[Name | Length | Total]:
    """The variables in an expression, those of subscripts too; a string's length counts as one."""
    stack: list[Expression] = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, Name):
            yield node
            stack.extend(node.subscripts)
        elif isinstance(node, Length):
            yield node
            stack.extend(node.of.subscripts)
        elif isinstance(node, Total):
            yield node
        elif isinstance(node, Absolute):
            stack.append(node.of)
        elif isinstance(node, Operation):
            stack.extend((node.left, node.right))


def compile_expression(expression: Expression) -> Callable[[Values, Values], int]:
    """A function of the variables' values and of the indices' values (by name) that evaluates the expression.

    It raises `LookupError` where a value or an element is missing, and `Unread` for a power out of bounds or a
    division by zero.
    """
    match expression:
        case Number(value):
            return lambda values, indices: value
        case Name(name, ()):
            return lambda values, indices: indices[name] if name in indices else values[name]
        case Name(name, (subscript,)):
            index = compile_expression(subscript)
            return lambda values, indices: values[name][index(values, indices)]
        case Name(name, (first, second)):
            row, column = compile_expression(first), compile_expression(second)
            return lambda values, indices: values[name][row(values, indices)][column(values, indices)]
        case Length(of):
            string = compile_expression(of)
            key = f"|{of.name}|"
            if of.subscripts:
                return lambda values, indices: len(string(values, indices))
            return lambda values, indices: len(values[of.name]) if of.name in values else values[key]
        case Absolute(of):
            inner = compile_expression(of)
            return lambda values, indices: abs(inner(values, indices))
        case Total(name, _):
            return lambda values, indices: sum(values[name].elements())
        case Operation(operator, left, right):
            return _compile_operation(operator, compile_expression(left), compile_expression(right))
    raise Unread("a formula with more than two subscripts")


def _compile_operation(operator: str, left: Callable, right: Callable) -> Callable[[Values, Values], int]:
    def power(values: Values, indices: Values) -> int:
        base, exponent = left(values, indices), right(values, indices)
        if not 0 <= exponent <= MAX_EXPONENT or abs(base) > 10**18:
            raise Unread(f"the power {base}^{exponent}")
        return base**exponent

    def divide(values: Values, indices: Values) -> int:
        divisor = right(values, indices)
        if divisor == 0:
            raise Unread("a division by zero")
        return left(values, indices) // divisor

    return {
        "+": lambda values, indices: left(values, indices) + right(values, indices),
        "-": lambda values, indices: left(values, indices) - right(values, indices),
        "*": lambda values, indices: left(values, indices) * right(values, indices),
        "/": divide,
        "^": power,
        "min": lambda values, indices: min(left(values, indices), right(values, indices)),
        "max": lambda values, indices: max(left(values, indices), right(values, indices)),
    }[operator]
