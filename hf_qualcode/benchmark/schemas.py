"""The columns of every configuration, as `datasets.Features`: the same for every build, also where it has no rows."""

from datasets import Features, List, Value

from hf_qualcode.quality import dimension_names


SPLIT = "test"
ALL_PAIRS, RELEVANCE, CORPUS, QUERIES, QRELS, LABELS = "all-pairs", "relevance", "corpus", "queries", "qrels", "labels"
# Number of conditions -> configuration.
CONDITIONS = {count: f"{count}-condition" for count in range(1, len(dimension_names()) + 1)}

_TEXT, _NUMBER = Value("string"), Value("float64")
_QUESTION = {"instruction": _TEXT, "query": _TEXT}
_IDS = {"problem_id": _TEXT, "positive_id": _TEXT}
_VALUES = {"negative_id": _TEXT, "positive_value": _NUMBER, "negative_value": _NUMBER}

PAIR = Features({**_QUESTION, "positive": _TEXT, "negative": _TEXT, "dimension": _TEXT, **_IDS, **_VALUES})
TRIPLET = Features(
    {
        **_QUESTION, "positive": _TEXT, "negative": _TEXT,
        "dimensions": List(_TEXT), "missing_dimension": _TEXT, **_IDS, **_VALUES,
    }
)  # fmt: skip
RELEVANCE_LIST = Features(
    {
        **_QUESTION, "positive": _TEXT, "negatives": List(_TEXT), "dimension": _TEXT, **_IDS,
        "negative_ids": List(_TEXT),
    }
)  # fmt: skip
# The field's names (BEIR, MTEB): _id, text; query-id, corpus-id, score.
DOCUMENT = Features({"_id": _TEXT, "text": _TEXT, "problem_id": _TEXT})
QUERY = Features(
    {"_id": _TEXT, "text": _TEXT, **_QUESTION, "dimension": _TEXT, "problem_id": _TEXT, "excluded_ids": List(_TEXT)}
)
QREL = Features({"query-id": _TEXT, "corpus-id": _TEXT, "score": Value("int64")})
LABEL = Features(
    {
        "problem_id": _TEXT,
        "submission_id": _TEXT,
        "fingerprint": _TEXT,
        "cpu_time": _NUMBER,  # ms, the judge's
        "memory": _NUMBER,  # KB, the judge's
        "smells": Value("int64"),
        "smell_rules": List(_TEXT),
        "smell_engine": _TEXT,
        "smell_engine_version": _TEXT,
        "remeasured_speed": _NUMBER,
        "remeasured_speed_unit": _TEXT,
        "remeasured_memory": _NUMBER,
        "remeasured_memory_unit": _TEXT,
    }
)

QUALCODE = {
    **dict.fromkeys(dimension_names(), PAIR),
    ALL_PAIRS: PAIR,
    RELEVANCE: RELEVANCE_LIST,
    CORPUS: DOCUMENT,
    QUERIES: QUERY,
    QRELS: QREL,
    LABELS: LABEL,
}
MC_QUALCODE = {**dict.fromkeys(CONDITIONS.values(), TRIPLET), LABELS: LABEL}
DATA_SETS = {"qualcode": QUALCODE, "mc-qualcode": MC_QUALCODE}
