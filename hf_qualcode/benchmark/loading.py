"""QualCode and MC-QualCode read back: from a folder, or from the Hugging Face Hub by its id."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from datasets import (
    Dataset,
    Features,
    IterableDataset,
    are_progress_bars_disabled,
    disable_progress_bars,
    enable_progress_bars,
    get_dataset_config_names,
    load_dataset,
    load_dataset_builder,
)

from hf_qualcode.benchmark.schemas import (
    ALL_PAIRS,
    CONDITIONS,
    CORPUS,
    DATA_SETS,
    LABEL,
    LABELS,
    MC_QUALCODE,
    QRELS,
    QUALCODE,
    QUERIES,
    RELEVANCE,
    SPLIT,
)
from hf_qualcode.corpus.retrieval_data import RetrievalData
from hf_qualcode.hub import existing_path
from hf_qualcode.quality import dimension_names
from hf_qualcode.quality.smells import is_proxy
from hf_qualcode.types import GradedList, PreferencePair, QualcodeError, UsageError


PREFIX = "qualcode:"
_PAIR_CONFIGS = {"qualcode": (*dimension_names(), ALL_PAIRS), "mc-qualcode": tuple(CONDITIONS.values())}


@dataclass(frozen=True, slots=True)
class LabelRow:
    """What is known about one program; `None` where nothing is. See the `labels` configuration in `schemas`."""

    problem_id: str
    submission_id: str
    fingerprint: str
    cpu_time: float | None
    memory: float | None
    smells: int | None
    smell_rules: tuple[str, ...] | None
    smell_engine: str | None
    smell_engine_version: str | None
    remeasured_speed: float | None
    remeasured_speed_unit: str | None
    remeasured_memory: float | None
    remeasured_memory_unit: str | None


@dataclass(frozen=True)
class PreferenceData:
    """Pairs to score.

    Attributes:
        name (`str`): `"qualcode"` or `"mc-qualcode"`.
        configs (`tuple[str, ...]`): What the pairs come from.
        split (`str`): `"test"`.
        metric (`str`): `"qpa"` or `"mca"`.
        pairs (`list[PreferencePair]`): In the order of the files.
        labels (`dict[str, LabelRow]`): Submission id -> what is known about it, for every program of the data set,
            in a pair or not; empty where it has no `labels` configuration.
    """

    name: str
    configs: tuple[str, ...]
    split: str
    metric: str
    pairs: list[PreferencePair]
    labels: dict[str, LabelRow] = field(default_factory=dict, repr=False)

    def label_sources(self) -> dict[str, str]:
        """What made the labels, for reports: `labels` (the judge, or measured again) and, where a pair is about
        maintainability, `smells`: the engines, a proxy named as one. Empty without the `labels` configuration."""
        if not self.labels:
            return {}
        again = any(row.remeasured_speed is not None for row in self.labels.values())
        sources = {"labels": "remeasured" if again else "judge"}
        if any("maintainability" in pair.dimensions for pair in self.pairs):
            rows = [row for row in self.labels.values() if row.smell_engine]
            engines = {(row.smell_engine, row.smell_engine_version) for row in rows}
            named = [f"{engine} {version}{' (a proxy for Sonar)' * is_proxy(engine)}" for engine, version in engines]
            sources["smells"] = " and ".join(sorted(named)) or "unknown"
        return sources


def load_pairs(source: str, config: str | None = None, split: str = SPLIT) -> PreferenceData:
    """Reads preference pairs.

    Args:
        source (`str`): A folder, `qualcode:FOLDER`, or a Hub id (`org/name`).
        config (`str`, *optional*): One configuration; without it the paper's: speed, memory and maintainability of
            QualCode, or the three of MC-QualCode.
        split (`str`, *optional*, defaults to `"test"`): There is only this one.

    Returns:
        `PreferenceData`: The pairs, and the labels of all programs.

    Raises:
        `UsageError`: On another configuration or split.
        `QualcodeError`: When there is no such data set, its columns are others, or it has no pairs.
    """
    place = _Place.find(source, split)
    legal = _PAIR_CONFIGS[place.name]
    if config is not None and config not in legal:
        raise UsageError(f"{source} has no pairs {config!r}; choose from: {', '.join(legal)}")
    standard = tuple(name for name in legal if name != ALL_PAIRS)
    configs = standard if config is None else (config,)
    pairs = [_pair(row) for name in configs for row in place.rows(name)]
    if not pairs:
        raise QualcodeError(f"{source} has 0 pairs in {', '.join(configs)}; its card says why")
    _check_distinct([pair.id for pair in pairs], source, "pair")
    labels = {}
    if LABELS in place.configs:
        # Those of no pair too: the noise of the labels shows best in programs that are too near to be paired.
        labels = {row.submission_id: row for row in _label_rows(place)}
    return PreferenceData(place.name, configs, split, "qpa" if place.name == "qualcode" else "mca", pairs, labels)


def load_lists(source: str, split: str = SPLIT) -> list[GradedList]:
    """Reads the relevance lists of QualCode: one relevant program (grade 1) first, irrelevant ones (0) after it.

    Args:
        source (`str`): As for `load_pairs`.
        split (`str`, *optional*, defaults to `"test"`): There is only this one.

    Returns:
        `list[GradedList]`: In the order of the file.

    Raises:
        `UsageError`: On another split, or a data set without such lists.
        `QualcodeError`: When there is no such data set, its columns are others, or it has no lists.
    """
    place = _Place.find(source, split, name="qualcode")
    lists = [_graded_list(source, row) for row in place.rows(RELEVANCE)]
    if not lists:
        raise QualcodeError(f"{source} has 0 lists in {RELEVANCE}; its card says why")
    _check_distinct([entry.id for entry in lists], source, "list")
    return lists


def load_qualcode_retrieval(source: str, split: str = SPLIT) -> RetrievalData:
    """Reads the retrieval task of QualCode: `corpus`, `queries` and `qrels`.

    Args:
        source (`str`): As for `load_pairs`.
        split (`str`, *optional*, defaults to `"test"`): There is only this one.

    Returns:
        `RetrievalData`: With what leaves each query's pool; the queries of a problem are a cluster.

    Raises:
        `UsageError`: On another split, or a data set without this task.
        `QualcodeError`: When there is no such data set, its columns are others, or its parts do not fit.
    """
    place = _Place.find(source, split, name="qualcode")
    documents, queries = list(place.rows(CORPUS)), list(place.rows(QUERIES))
    if not queries:
        raise QualcodeError(f"{source} has 0 queries; its card says why")
    qrels: dict[str, dict[str, int]] = {}
    for row in place.rows(QRELS):
        qrels.setdefault(row["query-id"], {})[row["corpus-id"]] = row["score"]
    try:
        return RetrievalData(
            name="qualcode",
            split=split,
            corpus_ids=[row["_id"] for row in documents],
            corpus_texts=[row["text"] for row in documents],
            query_ids=[row["_id"] for row in queries],
            query_texts=[row["text"] for row in queries],
            qrels=qrels,
            excluded={row["_id"]: frozenset(row["excluded_ids"]) for row in queries},
            clusters={row["_id"]: row["problem_id"] for row in queries},
        )
    except ValueError as error:
        raise QualcodeError(f"{source}: corpus, queries and qrels do not fit together ({error})") from None


@dataclass(frozen=True)
class _Place:
    """A data set that was found."""

    source: str
    path: str
    split: str
    name: str
    configs: tuple[str, ...]

    @classmethod
    def find(cls, source: str, split: str, name: str | None = None) -> "_Place":
        """Looks up which data set it is; `name` is the one that is needed."""
        if split != SPLIT:
            raise UsageError(f"{source} has no split {split!r}; the only one is {SPLIT!r}")
        path = source.removeprefix(PREFIX)
        folder = existing_path(path)
        if folder is None and (path.count("/") != 1 or source.startswith(PREFIX)):
            raise QualcodeError(f"no data set {source!r}: no folder has this path, and it is no Hub id (org/name)")
        if folder is not None:
            _check_folder(source, folder)
            path = str(folder)
        configs = tuple(_reached(source, get_dataset_config_names, path))
        found = next((known for known, schema in DATA_SETS.items() if set(schema) - {LABELS} <= set(configs)), None)
        if found is None:
            missing = [config for config in QUALCODE if config not in configs and config != LABELS]
            some = f"it lacks {', '.join(missing)}" if len(missing) < len(QUALCODE) - 1 else "it is another data set"
            raise QualcodeError(
                f"{source} is neither qualcode nor mc-qualcode: {some} (configurations: {', '.join(configs)})"
            )
        if name not in (None, found):
            raise UsageError(f"{source} is {found}; this needs {name}")
        return cls(source, path, split, found, configs)

    def rows(self, config: str) -> Iterator[dict]:
        """Reads a configuration, after a look at its columns."""
        data = _reached(self.source, _open, self.path, config, self.split)
        expected = (QUALCODE if self.name == "qualcode" else MC_QUALCODE)[config]
        where = f"{self.source}, {config}"
        _check_columns(where, data.features or {}, expected)
        rows = iter(data.select_columns(list(expected)))
        for number in count():
            row = _reached(self.source, next, rows, None)
            if row is None:
                return
            yield _check_row(where, number, row)


def _check_folder(source: str, folder: Path) -> None:
    if not folder.is_dir():
        raise QualcodeError(f"{source} is a file; name the folder that `hf-qualcode dataset build` wrote")
    if not (folder / "README.md").is_file():
        raise QualcodeError(f"{source} has no README.md; name the folder that `hf-qualcode dataset build` wrote")


def _open(path: str, config: str, split: str) -> Dataset | IterableDataset:
    """`load_dataset` that takes a split without rows too, and draws no progress bars.

    A folder is read as a stream: its files are here, and the cache of `datasets` would be asked by the folder's name
    and card alone, which a changed file need not change.
    """
    if Path(path).is_dir():
        return load_dataset(path, config, split=split, streaming=True)
    shown = not are_progress_bars_disabled()
    disable_progress_bars()
    try:
        builder = load_dataset_builder(path, config)
        builder.download_and_prepare()
        if not builder.info.splits[split].num_examples:
            return Dataset.from_dict({name: [] for name in builder.info.features}, features=builder.info.features)
        return builder.as_dataset(split=split)
    finally:
        if shown:
            enable_progress_bars()


def _reached(source: str, function, *arguments, **options):
    try:
        return function(*arguments, **options)
    except Exception as error:  # of datasets, huggingface_hub, pyarrow, yaml, the network and the disk
        detail = " ".join(str(error).split())[:200]
        raise QualcodeError(f"{source} cannot be read as a data set ({type(error).__name__}: {detail})") from error


def _check_columns(where: str, features: Mapping, expected: Features) -> None:
    wrong = [name for name, kind in expected.items() if features.get(name) != kind]
    if wrong:
        found = features.get(wrong[0])
        what = "is missing" if found is None else f"is {found}, expected {expected[wrong[0]]}"
        raise QualcodeError(f"{where}: column {wrong[0]} {what}; is this another data set, or an older version?")


# What a row may lack: measurements that nobody made.
_NULLABLE = frozenset(LABEL) - {"problem_id", "submission_id", "fingerprint"} | {"positive_value", "negative_value"}


def _check_row(where: str, number: int, row: dict) -> dict:
    for name, value in row.items():
        if (value is None and name not in _NULLABLE) or (isinstance(value, list) and None in value):
            raise QualcodeError(f"{where}, row {number}: {name} is null; the data set is damaged")
        if isinstance(value, float) and not math.isfinite(value):
            raise QualcodeError(f"{where}, row {number}: {name} is {value}; expected a finite number or null")
    return row


def _check_distinct(ids: Sequence[str], source: str, what: str) -> None:
    repeated, times = Counter(ids).most_common(1)[0]
    if times > 1:
        raise QualcodeError(f"{source}: {what} {repeated} appears {times} times")


def _pair(row: dict) -> PreferencePair:
    dimensions, missing = row.get("dimensions"), row.get("missing_dimension", "")
    asked = f"{'+'.join(dimensions)}/{missing}" if dimensions else row["dimension"]
    return PreferencePair(
        id=f"{asked}/{row['positive_id']}/{row['negative_id']}",
        instruction=row["instruction"],
        query=row["query"],
        positive=row["positive"],
        negative=row["negative"],
        dimensions=tuple(dimensions or (row["dimension"],)),
        missing_dimension=missing,
        problem_id=row["problem_id"],
        positive_id=row["positive_id"],
        negative_id=row["negative_id"],
        positive_value=row["positive_value"],
        negative_value=row["negative_value"],
    )


def _graded_list(source: str, row: dict) -> GradedList:
    doc_ids = (row["positive_id"], *row["negative_ids"])
    where = f"{row['problem_id']}/{row['dimension']}"
    if len(row["negatives"]) != len(row["negative_ids"]) or len(set(doc_ids)) != len(doc_ids):
        raise QualcodeError(f"{source}: list {where} has other than one distinct id for each program")
    return GradedList(
        id=where,
        instruction=row["instruction"],
        query=row["query"],
        doc_ids=doc_ids,
        documents=(row["positive"], *row["negatives"]),
        grades=(1, *(0 for _ in row["negatives"])),
        problem_id=row["problem_id"],
        dimension=row["dimension"],
    )


_REPEATED = ("problem_id", "smell_engine", "smell_engine_version", "remeasured_speed_unit", "remeasured_memory_unit")


def _label_rows(place: _Place) -> Iterator[LabelRow]:
    shared: dict = {}  # one copy of what thousands of rows repeat
    for row in place.rows(LABELS):
        rules = row["smell_rules"]
        row["smell_rules"] = None if rules is None else tuple(rules)
        yield LabelRow(
            **row | {name: shared.setdefault(row[name], row[name]) for name in (*_REPEATED, "smell_rules")}
        )
