"""QualCode (SynH-Rank, sections 3.1 and 3.3): one pair a problem and dimension, and what is made of those pairs."""

from collections import Counter
from collections.abc import Mapping
from itertools import groupby

from hf_qualcode.benchmark.labelling import LabelSource, write_labels
from hf_qualcode.benchmark.negatives import NUM_NEGATIVES, NegativePool, draw_negatives
from hf_qualcode.benchmark.pairs import MAX_PAIRS_PER_PROBLEM, Chosen, choose_pair, count_reasons, draw_all_pairs
from hf_qualcode.benchmark.programs import Program
from hf_qualcode.benchmark.schemas import ALL_PAIRS, CORPUS, LABELS, QRELS, QUERIES, RELEVANCE
from hf_qualcode.benchmark.writing import RowWriter
from hf_qualcode.quality import dimension_names, instruction_for


PAPER_PAIRS = {"speed": 1524, "memory": 1429, "maintainability": 1256}


def fill_qualcode(
    writers: Mapping[str, RowWriter], collection, source: LabelSource, *, seed: int, judged=None, progress=None
) -> dict:
    """Selects and writes the rows of all configurations.

    Memory holds one problem, the chosen pairs (three a problem at most) and a bounded sample of programs.

    Args:
        writers (`Mapping[str, RowWriter]`): Configuration -> where its rows go.
        collection (`Collection`): The programs, with the values to select by.
        source (`LabelSource`): What those values are.
        seed (`int`): Of every draw.
        judged (`Collection`, *optional*): The programs with the judge's values; defaults to `collection`.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Returns:
        `dict`: JSON-able counts: `pairs`, `all_pairs`, `relevance`, `retrieval`.
    """
    chosen, statements, pool, counts = _write_pairs(writers, collection, seed, progress)
    documents = _corpus(chosen)
    for document in sorted(documents.values(), key=lambda program: program.submission_id):
        writers[CORPUS].add(
            {"_id": document.submission_id, "text": collection.text(document), "problem_id": document.problem_id}
        )
    num_negatives: Counter[int] = Counter()
    digests = frozenset(documents)
    num_excluded = done = 0
    for problem_id, pairs in groupby(chosen, key=lambda pair: pair.positive.problem_id):
        accepted = collection.accepted_digests(problem_id)
        own = digests & accepted
        for pair in pairs:
            question = _question(pair.dimension, statements[problem_id])
            query_id = f"{problem_id}/{pair.dimension}"
            negatives = draw_negatives(pool, collection, query_id, problem_id, accepted)
            num_negatives[len(negatives)] += 1
            writers[RELEVANCE].add(_relevance_row(question, pair, negatives, collection))
            excluded = sorted(documents[digest].submission_id for digest in own - {pair.positive.text_digest})
            num_excluded += len(excluded)
            writers[QUERIES].add(
                {
                    "_id": query_id,
                    "text": f"{question['instruction']}\n{question['query']}",
                    **question,
                    "dimension": pair.dimension,
                    "problem_id": problem_id,
                    "excluded_ids": excluded,
                }
            )
            relevant = documents[pair.positive.text_digest].submission_id
            writers[QRELS].add({"query-id": query_id, "corpus-id": relevant, "score": 1})
            done += 1
            if progress:
                progress("drawing negatives", done, len(chosen))
    write_labels(judged or collection, source, writers[LABELS], progress)
    rows = sum(num_negatives.values())
    counts["relevance"] = {
        "rows": rows,
        "negatives_wanted": NUM_NEGATIVES,
        "rows_with_fewer_negatives": rows - num_negatives[NUM_NEGATIVES],
        "least_negatives": min(num_negatives, default=None),
    }
    counts["retrieval"] = {"documents": len(documents), "queries": rows, "documents_left_out": num_excluded}
    return counts


def _write_pairs(writers, collection, seed: int, progress) -> tuple[list[Chosen], dict[str, str], NegativePool, dict]:
    """One pass over all problems: the configurations of pairs, and a sample of programs."""
    pool, chosen, statements = NegativePool(seed), [], {}
    reasons: dict[str, list[str]] = {dimension: [] for dimension in dimension_names()}
    clear = {dimension: Counter() for dimension in dimension_names()}
    for done, problem in enumerate(collection.problems(), start=1):
        for program in problem.programs:
            pool.offer(program)
        for dimension in dimension_names():
            question = _question(dimension, problem.statement)
            outcome = choose_pair(problem, dimension, seed)
            if isinstance(outcome, str):
                reasons[dimension].append(outcome)
            else:
                writers[dimension].add(_pair_row(question, outcome, collection))
                chosen.append(outcome)
                statements[problem.problem_id] = problem.statement
            drawn, num_clear = draw_all_pairs(problem, dimension, seed)
            for pair in drawn:
                writers[ALL_PAIRS].add(_pair_row(question, pair, collection))
            clear[dimension].update(problems=int(bool(drawn)), clear_pairs=num_clear, pairs=len(drawn))
        if progress:
            progress("choosing pairs", done, len(collection.problem_ids))
    counts = {
        "pairs": {
            dimension: {
                "problems": len(collection.problem_ids),
                "pairs": writers[dimension].num_rows,
                "problems_without_pair": count_reasons(found),
                "paper_pairs": PAPER_PAIRS.get(dimension),
            }
            for dimension, found in reasons.items()
        },
        "all_pairs": {
            dimension: {**{name: found[name] for name in ("problems", "clear_pairs", "pairs")},
                        "most_per_problem": MAX_PAIRS_PER_PROBLEM}
            for dimension, found in clear.items()
        },
    }  # fmt: skip
    return chosen, statements, pool, counts


def _corpus(chosen: list[Chosen]) -> dict[str, Program]:
    """Text digest -> the program that stands for the text: the least submission id among those chosen."""
    documents: dict[str, Program] = {}
    for pair in chosen:
        for program in (pair.positive, pair.negative):
            present = documents.setdefault(program.text_digest, program)
            if program.submission_id < present.submission_id:
                documents[program.text_digest] = program
    return documents


def _question(dimension: str, statement: str) -> dict:
    return {"instruction": instruction_for(dimension), "query": statement}


def _pair_row(question: dict, pair: Chosen, collection) -> dict:
    return {
        **question,
        "positive": collection.text(pair.positive),
        "negative": collection.text(pair.negative),
        "dimension": pair.dimension,
        "problem_id": pair.positive.problem_id,
        "positive_id": pair.positive.submission_id,
        "negative_id": pair.negative.submission_id,
        "positive_value": pair.positive.values[pair.dimension],
        "negative_value": pair.negative.values[pair.dimension],
    }


def _relevance_row(question: dict, pair: Chosen, negatives: list[Program], collection) -> dict:
    return {
        **question,
        "positive": collection.text(pair.positive),
        "negatives": [collection.text(program) for program in negatives],
        "dimension": pair.dimension,
        "problem_id": pair.positive.problem_id,
        "positive_id": pair.positive.submission_id,
        "negative_ids": [program.submission_id for program in negatives],
    }
