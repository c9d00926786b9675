"""The inputs a statement allows: read from its format and constraints, checked on its samples, and generated."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hf_qualcode.benchmark.inputs.conditions import Compare, Condition
from hf_qualcode.benchmark.inputs.constraints import ConstraintReader
from hf_qualcode.benchmark.inputs.expressions import Array, Length, Name, compile_expression, names_of
from hf_qualcode.benchmark.inputs.formats import Format, read_formats
from hf_qualcode.benchmark.inputs.generation import MAX_TRIES, Generator, Retry
from hf_qualcode.benchmark.inputs.unread import Refusal, Unread
from hf_qualcode.benchmark.statements import Statement


DEFAULT_SIZES = (0.01, 0.1, 0.5, 1.0)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,99}")
_FORMAT_HEADINGS = re.compile(r"input(?: format)?", re.IGNORECASE)
_CONSTRAINT_HEADINGS = re.compile(r"constraints?", re.IGNORECASE)
# Text before an input's format; a sentence that says more than this may change what the format means.
_HARMLESS_INTRODUCTION = re.compile(
    r"(?:the )?input is given from standard input in the following format[:.]?|", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class GeneratedInput:
    """An input made for a statement.

    Attributes:
        text (`str`): What a program reads.
        size (`float`): The share of the largest size that was asked for, in (0, 1].
        scale (`Mapping[str, int]`): The values of the numbers that say how much work it is: N, M, |S|.
    """

    text: str
    size: float
    scale: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class InputSpec:
    """The inputs a statement allows.

    Attributes:
        form (`Format`): How values become text.
        conditions (`tuple[Condition, ...]`): What values are legal.
        strings, hidden (`frozenset[str]`): Variables that are strings; scalars that are not in the input itself.
    """

    form: Format
    conditions: tuple[Condition, ...]
    strings: frozenset[str]
    hidden: frozenset[str]
    _generator: Generator = field(repr=False, compare=False)

    def generate(self, size: float, seed: int) -> str:
        """A random legal input. Equal arguments give equal text.

        Args:
            size (`float`): In (0, 1]: what share of the largest allowed size it has, by its counts and lengths.
            seed (`int`): For the random values.

        Raises:
            `ValueError`: `size` is out of its range.
            `Unread`: No legal input was found.
        """
        if not 0 < size <= 1:
            raise ValueError(f"size is {size}; legal are numbers above 0 and up to 1")
        for attempt in range(MAX_TRIES):
            # A string is a seed that does not depend on the machine or on the process.
            source = random.Random(f"{seed}/{size}/{attempt}")
            try:
                values = self._generator.generate(size, source, attempt)
            except Retry:
                continue
            text = self.form.join(values)
            if self.accepts(text):
                return text
        raise Unread("conditions that no random input was found to meet")

    def accepts(self, text: str) -> bool:
        """Whether `text` has the format and meets every condition."""
        try:
            values = self.values_in(text)
            return all(condition.holds(values) for condition in self.conditions)
        except (Unread, LookupError):
            return False

    def values_in(self, text: str) -> dict[str, object]:
        """The values in an input: integers, strings, and arrays of them, by variable.

        Raises:
            `Unread`: The text does not have the format.
        """
        values: dict[str, object] = {}
        for name, value in self.form.parse(text).items():
            values[name] = value if name in self.strings else _numbers(value)
        for name in self.hidden:
            values[name] = self._hidden_value(name, values)
        return values

    def scale_of(self, text: str) -> dict[str, int]:
        """The values of the numbers that say how much work an input is, by name: counts, lengths, other scalars."""
        values = self.values_in(text)
        scale: dict[str, int] = {}
        for name, value in values.items():
            if isinstance(value, int):
                scale[name] = value
            elif isinstance(value, str) and name not in self._generator.single:
                scale[f"|{name}|"] = len(value)
        return scale

    def _hidden_value(self, name: str, values: Mapping[str, object]) -> int:
        """The one value of a scalar outside the input with which a length has what an equation says."""
        for condition in self.conditions:
            if not isinstance(condition, Compare) or condition.operator != "=":
                continue
            for length, other in ((condition.left, condition.right), (condition.right, condition.left)):
                if not isinstance(length, Length) or length.of.subscripts or length.of.name not in values:
                    continue
                if {node.name for node in names_of(other) if isinstance(node, Name)} != {name}:
                    continue
                count, function = len(values[length.of.name]), compile_expression(other)
                found = [value for value in range(count - 9, count + 10) if function({name: value}, {}) == count]
                if len(found) == 1:
                    return found[0]
        raise Unread(f"the value of {name!r}, which the input does not have")


def read_input_format(statement: Statement) -> InputSpec | Refusal:
    """What inputs `statement` allows, or why that cannot be said for certain.

    Everything in the input's format and in its constraints must be understood, every variable must have bounds, and
    the statement's own samples must have the format and meet the conditions, or the statement is refused.
    """
    try:
        block, lines = _find_parts(statement)
    except Unread as error:
        return Refusal("no format", str(error))
    try:
        formats = read_formats(block)
    except Unread as error:
        return Refusal("format", str(error))
    refusals: list[Refusal] = []
    accepted: list[InputSpec] = []
    for form in formats:
        result = _specification(form, lines, statement)
        if isinstance(result, Refusal):
            refusals.append(result)
        else:
            accepted.append(result)
    if len(accepted) > 1:
        return Refusal("format", "an input format that can be read in two ways")
    return accepted[0] if accepted else max(refusals, key=lambda refusal: refusal.kind != "sample")


def generate_inputs(
    statement: Statement, sizes: Sequence[float] = DEFAULT_SIZES, seed: int = 0
) -> list[GeneratedInput] | Refusal:
    """Legal inputs for a statement, one for each size; equal texts (of sizes that are too near) once.

    Args:
        statement (`Statement`): A problem's statement.
        sizes (`Sequence[float]`, *optional*): Shares of the largest size, each in (0, 1].
        seed (`int`, *optional*, defaults to 0): For the random values.

    Returns:
        `list[GeneratedInput]` in the order of `sizes`, or a `Refusal`.
    """
    specification = read_input_format(statement)
    if isinstance(specification, Refusal):
        return specification
    inputs: dict[str, GeneratedInput] = {}
    for size in sizes:
        try:
            text = specification.generate(size, seed)
        except Unread as error:
            return Refusal("generation", str(error))
        inputs.setdefault(text, GeneratedInput(text, size, specification.scale_of(text)))
    return list(inputs.values())


def _specification(form: Format, lines: Sequence[str], statement: Statement) -> InputSpec | Refusal:
    try:
        reader = ConstraintReader(form, lines)
    except Unread as error:
        return Refusal("constraint", str(error))
    try:
        generator = Generator(form, reader.conditions, reader.strings, reader.hidden)
        specification = InputSpec(
            form, tuple(reader.conditions), frozenset(reader.strings), frozenset(reader.hidden), generator
        )
    except Unread as error:
        return Refusal("unbounded", str(error))
    if not statement.samples:
        return Refusal("sample", "a statement without samples")
    for number, sample in enumerate(statement.samples, 1):
        if not specification.accepts(sample.input):
            return Refusal("sample", f"sample {number}, which does not have the format or the bounds that were read")
    try:
        specification.generate(0.001, 0)
    except Unread as error:
        return Refusal("unbounded" if "bounds" in str(error) else "generation", str(error))
    return specification


def _find_parts(statement: Statement) -> tuple[str, list[str]]:
    """The block with the input's format, and the lines of the constraints."""
    inputs = [section for section in statement.sections if _FORMAT_HEADINGS.fullmatch(section.heading)]
    constraints = [section for section in statement.sections if _CONSTRAINT_HEADINGS.fullmatch(section.heading)]
    blocks = [block for section in (*inputs, *constraints) for block in section.blocks]
    if len(blocks) != 1:
        raise Unread("a statement without one block that shows the input's format")
    if not constraints:
        raise Unread("a statement without constraints")
    for section in inputs:
        for line in section.lines:
            if not _HARMLESS_INTRODUCTION.fullmatch(line.strip()):
                raise Unread(f"the description of the input: {line}")
    return blocks[0], [line for section in constraints for line in section.lines]


def _numbers(value: str | Array) -> int | Array:
    if isinstance(value, Array):
        return Array(value.first, [_numbers(element) for element in value.values])
    if not _INTEGER.fullmatch(value):
        raise Unread(f"{value[:20]!r}, where an integer should be")
    return int(value)
