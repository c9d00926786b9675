"""Which inputs tell the programs of a problem apart, judged by what the programs answered.

An input is *agreed* when at least three programs and a majority of those tried give the same answer: a wrongly made
input splits programs or ends them. It *counts* when, besides, the slowest of them takes long enough, net of start-up
and imports, that its time is the algorithm's and not the interpreter's.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


MIN_AGREEING = 3
MIN_SIZES = 3
MIN_NET_SECONDS = 0.1
# Instructions are counted at a fiftieth of the speed.
MOST_COUNTED_SECONDS = 0.5


class Answer(NamedTuple):
    """What a program did on an input.

    Attributes:
        outcome (`str`): As of `quality.sandbox.Run`.
        output (`bytes`): Its standard output.
        net_seconds (`float`): CPU time beyond that of start-up and imports.
    """

    outcome: str
    output: bytes
    net_seconds: float


class InputVerdict(NamedTuple):
    """What the answers say of an input.

    Attributes:
        agreeing (`tuple[str, ...]`): Programs with the majority's answer, sorted; empty where there is no majority.
        slowest_seconds (`float`): Net time of the slowest of them.
    """

    agreeing: tuple[str, ...]
    slowest_seconds: float

    @property
    def is_agreed(self) -> bool:
        """At least three programs and a majority gave the same answer."""
        return bool(self.agreeing)

    @property
    def counts(self) -> bool:
        """Agreed, and the slowest takes at least 100 ms net."""
        return self.is_agreed and self.slowest_seconds >= MIN_NET_SECONDS


class Choice(NamedTuple):
    """The inputs that a problem is measured on, as positions.

    Attributes:
        speed (`int`): The largest that counts and keeps the slowest within half a second, for instructions are
            counted at a fiftieth of the speed; the smallest that counts where none does.
        memory (`int`): The largest that counts.
    """

    speed: int
    memory: int


def judge_input(answers: Mapping[str, Answer], outputs_equal: Callable[[bytes, bytes], bool]) -> InputVerdict:
    """Judges one input.

    Args:
        answers (`Mapping[str, Answer]`): Submission id -> answer of every program tried. One that failed has no vote
            but is one of those a majority is counted of.
        outputs_equal (`Callable`): Whether two outputs are the same answer.

    Returns:
        `InputVerdict`: The majority.
    """
    groups: list[tuple[bytes, list[str]]] = []
    for submission_id in sorted(answers):
        answer = answers[submission_id]
        if answer.outcome != "ok" or not answer.output.strip():
            continue
        for representative, members in groups:
            if outputs_equal(representative, answer.output):
                members.append(submission_id)
                break
        else:
            groups.append((answer.output, [submission_id]))
    largest = max((members for _, members in groups), key=len, default=[])
    if len(largest) < MIN_AGREEING or 2 * len(largest) <= len(answers):
        return InputVerdict((), 0.0)
    return InputVerdict(tuple(largest), max(answers[member].net_seconds for member in largest))


def choose_inputs(verdicts: Sequence[InputVerdict]) -> Choice | str:
    """Chooses what to measure on.

    Args:
        verdicts (`Sequence[InputVerdict]`): Of the inputs, in growing size.

    Returns:
        `Choice` or `str`: The inputs, or the reason why the problem cannot be measured.
    """
    agreed = sum(verdict.is_agreed for verdict in verdicts)
    if not agreed:
        return "no_agreement"
    if agreed < MIN_SIZES:
        return "too_few_sizes"
    counting = [position for position, verdict in enumerate(verdicts) if verdict.counts]
    if not counting:
        return "never_slow"
    short = [position for position in counting if verdicts[position].slowest_seconds <= MOST_COUNTED_SECONDS]
    return Choice(short[-1] if short else counting[0], counting[-1])
