"""The data behind the bundled reranker: quality pairs of CodeNet problems and of functions; queries and codes of CoSQA
and MBPP."""

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.benchmark.loading import load_pairs
from hf_qualcode.corpus.cosqa import load_cosqa
from hf_qualcode.rerank.function_pairs import FunctionPair, read_function_pairs
from hf_qualcode.types import PreferencePair, QualcodeError


_COSQA_TRAIN = "cosqa-train-570.json"
_MBPP = "mbpp.jsonl"
_NUM_DOCSTRINGS = 1500
_NUM_OTHER_CODES = 2000
_WORDS = range(3, 61)


@dataclass(frozen=True)
class RelevantPairs:
    """Queries with one relevant code each, and codes that are relevant to none of them.

    Attributes:
        name (`str`): Of the source.
        queries, codes (`tuple[str, ...]`): [n], parallel.
        others (`tuple[str, ...]`): More codes of the same kind.
    """

    name: str
    queries: tuple[str, ...]
    codes: tuple[str, ...]
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sources:
    """All that is learnt from.

    Attributes:
        pairs (`list[PreferencePair]`): Quality pairs of all problems.
        relevant (`tuple[RelevantPairs, ...]`): CoSQA's training pairs, docstrings of its pool, MBPP.
        functions (`tuple[FunctionPair, ...]`): Proven pairs of functions.
    """

    pairs: list[PreferencePair]
    relevant: tuple[RelevantPairs, ...]
    functions: tuple[FunctionPair, ...] = ()

    @property
    def problem_ids(self) -> list[str]:
        """Sorted."""
        return sorted({pair.problem_id for pair in self.pairs})

    def pairs_of(self, problem_ids: Sequence[str]) -> list[PreferencePair]:
        """The pairs of some problems."""
        chosen = set(problem_ids)
        return [pair for pair in self.pairs if pair.problem_id in chosen]


def read_sources(
    qualcode: str | Path, cosqa: Path, mbpp: Path, functions: Path | None = None, *, seed: int = 42
) -> Sources:
    """Reads all of them.

    Of CoSQA, whatever belongs to its development and test queries stays out: their codes, and queries of theirs.

    Args:
        qualcode (`str` or `Path`): A folder of `hf-qualcode dataset build qualcode`, or a Hub id.
        cosqa (`Path`): With the published retrieval files and `cosqa-train-570.json`.
        mbpp (`Path`): With `mbpp.jsonl`.
        functions (`Path`, *optional*): `pairs.jsonl` of the rules writer.
        seed (`int`, *optional*, defaults to 42): Of the drawn docstrings and codes.

    Raises:
        `QualcodeError`: When a file is missing or another one.
    """
    pairs = load_pairs(str(qualcode), "all-pairs").pairs
    proven = () if functions is None else tuple(read_function_pairs(functions))
    return Sources(pairs, (*_read_cosqa(Path(cosqa), seed), _read_mbpp(Path(mbpp))), proven)


def _read_cosqa(folder: Path, seed: int) -> tuple[RelevantPairs, RelevantPairs]:
    tested_codes: set[str] = set()
    tested_queries: set[str] = set()
    for split in ("dev", "test"):
        if split == "test" and not (folder / "cosqa-retrieval-test-500.json").is_file():
            continue
        data = load_cosqa(folder, split)
        codes = dict(zip(data.corpus_ids, data.corpus_texts, strict=True))
        tested_codes |= {codes[doc_id] for documents in data.qrels.values() for doc_id in documents}
        tested_queries |= set(data.query_texts)
    pool = [code for code in data.corpus_texts if code not in tested_codes]
    rows = _read_json(folder / _COSQA_TRAIN)
    try:
        train = [(row["doc"], row["code"]) for row in rows if row["label"] == 1]
    except (KeyError, TypeError) as error:
        raise QualcodeError(f"{folder / _COSQA_TRAIN} is not CoSQA's: a row lacks {error}") from error
    train = [(query, code) for query, code in train if code not in tested_codes and query not in tested_queries]
    places = Draws(seed, "cosqa pool").permutation(len(pool))
    drawn = [pool[place] for place in places]
    described = [found for code in drawn if (found := _without_docstring(code)) is not None][:_NUM_DOCSTRINGS]
    known = {code for _, code in train}
    others = tuple(code for code in drawn if code not in known)[:_NUM_OTHER_CODES]
    return (
        RelevantPairs("cosqa", *_columns(train), others),
        RelevantPairs("docstrings", *_columns(described)),
    )


def _without_docstring(code: str) -> tuple[str, str] | None:
    """A function's first paragraph of documentation, and the function without it; `None` where there is none."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    function = tree.body[0] if len(tree.body) == 1 else None
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or len(function.body) < 2:
        return None
    text = ast.get_docstring(function)
    if text is None:
        return None
    query = " ".join(text.split("\n\n")[0].split())
    del function.body[0]
    return (query, ast.unparse(tree)) if len(query.split()) in _WORDS else None


def _read_mbpp(folder: Path) -> RelevantPairs:
    path = folder / _MBPP
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        return RelevantPairs("mbpp", *_columns([(row["text"], row["code"].replace("\r\n", "\n")) for row in rows]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise QualcodeError(f"{path} cannot be read as MBPP's tasks ({type(error).__name__}: {error})") from error


def _read_json(path: Path) -> list:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise QualcodeError(f"{path} cannot be read ({error})") from error


def _columns(rows: list[tuple[str, str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    distinct = list(dict(rows).items())  # the last of equal queries
    return tuple(query for query, _ in distinct), tuple(code for _, code in distinct)
