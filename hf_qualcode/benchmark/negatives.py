"""Irrelevant code for the relevance task: programs of other problems, the same ones on every run."""

from hf_qualcode.benchmark.drawing import Draws, SmallestKeys, draw_key
from hf_qualcode.benchmark.programs import Program


# SynH-Rank, section 3.3.
NUM_NEGATIVES = 99
POOL_SIZE = 20_000


class NegativePool:
    """A bounded random sample of the distinct texts of all programs, from which each query draws its negatives.

    Offer every program once, sorted by problem and submission id: a text that several have stands under the first.

    Args:
        seed (`int`): Of the data set.
        size (`int`, *optional*, defaults to 20,000): Texts to keep in memory.
    """

    def __init__(self, seed: int, size: int = POOL_SIZE):
        self.seed = seed
        self._sample = SmallestKeys(size)
        self._pool: list[Program] | None = None

    def offer(self, program: Program) -> None:
        """Take a program into account."""
        # The key is the text's, so a copy has the key of its original, which was kept or was too large.
        self._sample.offer(draw_key(self.seed, "negative", program.text_digest), program)

    @property
    def is_whole(self) -> bool:
        """Whether every distinct text that was offered is in the pool."""
        return self._sample.is_whole

    def draw(self, query_id: str, problem_id: str, accepted: frozenset[str]) -> list[Program]:
        """The negatives of one query.

        Args:
            query_id (`str`): What to draw for; the same id gets the same draw.
            problem_id (`str`): The query's problem, whose programs are no negatives.
            accepted (`frozenset[str]`): Text digests of everything that solves the query's problem.

        Returns:
            `list[Program]`: 99 programs of distinct texts and submission ids, fewer where the pool has no more.
        """
        if self._pool is None:
            self._pool = self._sample.items()
        chosen: dict[str, Program] = {}
        for place in Draws(self.seed, "relevance", query_id).permutation(len(self._pool)):
            program = self._pool[place]
            if program.problem_id != problem_id and program.text_digest not in accepted:
                chosen.setdefault(program.submission_id, program)
            if len(chosen) == NUM_NEGATIVES:
                break
        return list(chosen.values())


def draw_negatives(
    pool: NegativePool, collection, query_id: str, problem_id: str, accepted: frozenset[str]
) -> list[Program]:
    """The negatives of one query, from the pool or, where one problem fills nearly all of it, from a pool of its own.

    Args:
        pool (`NegativePool`): A sample of all programs.
        collection (`Collection`): Where the programs are.
        query_id, problem_id (`str`): The query and its problem.
        accepted (`frozenset[str]`): Text digests of everything that solves it.

    Returns:
        `list[Program]`: 99 programs; fewer only where no more exist.
    """
    drawn = pool.draw(query_id, problem_id, accepted)
    if len(drawn) == NUM_NEGATIVES or pool.is_whole:
        return drawn
    legal = NegativePool(pool.seed)
    for problem in collection.problems():
        if problem.problem_id != problem_id:
            for program in problem.programs:
                if program.text_digest not in accepted:
                    legal.offer(program)
    return legal.draw(query_id, problem_id, accepted)
