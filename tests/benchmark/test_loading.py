"""Reading back: what was selected arrives, and whatever else is named is refused in one line."""

import os
import shutil
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hf_qualcode.benchmark.building import write_data_set
from hf_qualcode.benchmark.labelling import judge_labels
from hf_qualcode.benchmark.loading import load_lists, load_pairs, load_qualcode_retrieval
from hf_qualcode.quality import dimension_names, instruction_for
from hf_qualcode.types import GradedList, PreferencePair, QualcodeError, UsageError


def file_of(folder, config):
    """The one file of a configuration."""
    (file,) = (folder / config).glob("*.parquet")
    return file


def write(name, collection, folder):
    folder.mkdir(parents=True, exist_ok=True)
    return write_data_set(name, collection, judge_labels(None), folder)


@pytest.fixture(scope="module")
def collection(random_collection):
    return random_collection(3, num_problems=20, most_programs=40)


@pytest.fixture(scope="module")
def qualcode(collection, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "qualcode"
    write("qualcode", collection, folder)
    return folder


@pytest.fixture(scope="module")
def mc_qualcode(random_collection, tmp_path_factory):
    collection = random_collection(5, num_problems=5, most_programs=30, ties=False)
    folder = tmp_path_factory.mktemp("data") / "mc-qualcode"
    write("mc-qualcode", collection, folder)
    return folder


def test_pairs_of_qualcode(qualcode, collection):
    data = load_pairs(str(qualcode))
    assert (data.name, data.configs, data.split, data.metric) == ("qualcode", dimension_names(), "test", "qpa")
    tables = [pq.read_table(file_of(qualcode, dimension)) for dimension in dimension_names()]
    rows = [row for table in tables for row in table.to_pylist()]
    assert data.pairs == [
        PreferencePair(
            id=f"{row['dimension']}/{row['positive_id']}/{row['negative_id']}", dimensions=(row["dimension"],),
            missing_dimension="", **{name: value for name, value in row.items() if name != "dimension"},
        )
        for row in rows
    ]  # fmt: skip
    programs = {program.submission_id: program for program in collection.programs}
    paired = {submission_id for pair in data.pairs for submission_id in (pair.positive_id, pair.negative_id)}
    # Of every program, in a pair or not: the noise of the labels is measured on all.
    assert set(data.labels) == set(programs) > paired
    for submission_id, row in data.labels.items():
        program = programs[submission_id]
        assert (row.cpu_time, row.smell_rules) == (program.values.get("speed"), program.smell_rules)
        assert (row.problem_id, row.fingerprint) == (program.problem_id, program.fingerprint)


@pytest.mark.parametrize("config", ["memory", "all-pairs"])
def test_one_configuration_and_the_prefix(qualcode, config):
    data = load_pairs(f"qualcode:{qualcode}", config)
    assert data.configs == (config,)
    assert len(data.pairs) == pq.read_metadata(file_of(qualcode, config)).num_rows


def test_triplets(mc_qualcode):
    data = load_pairs(str(mc_qualcode))
    assert (data.name, data.metric) == ("mc-qualcode", "mca")
    assert data.configs == ("1-condition", "2-condition", "3-condition")
    for pair in data.pairs:
        assert pair.missing_dimension in pair.dimensions
        asked = "+".join(pair.dimensions)
        assert pair.id == f"{asked}/{pair.missing_dimension}/{pair.positive_id}/{pair.negative_id}"
        assert pair.instruction == instruction_for(pair.dimensions)
    assert len(load_pairs(str(mc_qualcode), "2-condition").pairs) < len(data.pairs)


def test_lists(qualcode):
    lists = load_lists(str(qualcode))
    rows = pq.read_table(file_of(qualcode, "relevance")).to_pylist()
    assert len(lists) == len(rows)
    for found, row in zip(lists, rows, strict=True):
        assert isinstance(found, GradedList)
        assert found.id == f"{row['problem_id']}/{row['dimension']}"
        assert found.doc_ids == (row["positive_id"], *row["negative_ids"])
        assert found.documents == (row["positive"], *row["negatives"])
        assert found.grades == (1, *[0] * 99)


def test_retrieval(qualcode):
    data = load_qualcode_retrieval(f"qualcode:{qualcode}")
    queries = pq.read_table(file_of(qualcode, "queries")).to_pylist()
    assert list(data.query_texts) == [row["text"] for row in queries]
    assert data.excluded == {row["_id"]: frozenset(row["excluded_ids"]) for row in queries}
    assert data.clusters == {row["_id"]: row["problem_id"] for row in queries}
    texts = dict(zip(data.corpus_ids, data.corpus_texts, strict=True))
    positives = {f"{pair.problem_id}/{pair.dimensions[0]}": pair.positive for pair in load_pairs(str(qualcode)).pairs}
    assert {query: texts[next(iter(grades))] for query, grades in data.qrels.items()} == positives


def test_without_the_labels_configuration_there_are_no_labels(qualcode, tmp_path):
    copy = copied(qualcode, tmp_path)
    file_of(copy, "labels").unlink()
    card = (copy / "README.md").read_text()
    start = card.index("- config_name: labels\n  data_files")
    card = card[:start] + card[card.index("- config_name: ", start + 5) :]
    (copy / "README.md").write_text(card)
    data = load_pairs(str(copy))
    assert data.pairs
    assert data.labels == {}


def copied(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def rewrite(folder, config, change):
    path = file_of(folder, config)
    table = change(pq.read_table(path))
    pq.write_table(table, path)
    (folder / "README.md").write_text(without_info((folder / "README.md").read_text()))


def without_info(card):
    """The card as another tool might write it: files, but no columns and counts."""
    start = card.index("dataset_info:")
    return card[:start] + card[card.index("---\n", start) :]


def set_column(table, name, values):
    place = table.schema.get_field_index(name)
    return table.set_column(place, name, pa.array(values, table.schema.field(name).type))


DAMAGE = {
    "null score": ("qrels", lambda table: set_column(table, "score", [None] * len(table)), "score is null"),
    "null text": ("speed", lambda table: set_column(table, "positive", [None] * len(table)), "positive is null"),
    "missing column": ("speed", lambda table: table.drop_columns(["positive_id"]), "column positive_id is missing"),
    "foreign type": (
        "speed",
        lambda table: table.set_column(8, "positive_value", pa.array(["fast"] * len(table))),
        "column positive_value is .*expected",
    ),
    "infinite value": (
        "speed",
        lambda table: set_column(table, "positive_value", [float("inf")] * len(table)),
        "positive_value is inf",
    ),
    "repeated pair": ("speed", lambda table: pa.concat_tables([table, table]), "pair speed/s.* appears 2 times"),
    "repeated list": ("relevance", lambda table: pa.concat_tables([table, table]), "list p.* appears 2 times"),
    "lost document": ("corpus", lambda table: table.slice(3), "do not fit together"),
    "lost negative": (
        "relevance",
        lambda table: set_column(table, "negative_ids", [["s1"]] * len(table)),
        "one distinct id for each program",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_data_sets_are_refused_in_one_line(damage, qualcode, tmp_path):
    config, change, words = DAMAGE[damage]
    copy = copied(qualcode, tmp_path)
    rewrite(copy, config, change)
    load = {"relevance": load_lists, "speed": load_pairs}.get(config, load_qualcode_retrieval)
    with pytest.raises(QualcodeError, match=words) as error:
        load(str(copy))
    assert "\n" not in str(error.value)


def test_null_measurements_are_no_damage(qualcode, tmp_path):
    copy = copied(qualcode, tmp_path)
    rewrite(copy, "speed", lambda table: set_column(table, "positive_value", [None] * len(table)))
    assert {pair.positive_value for pair in load_pairs(str(copy), "speed").pairs} == {None}


def test_more_columns_do_no_harm(qualcode, tmp_path):
    copy = copied(qualcode, tmp_path)
    rewrite(copy, "speed", lambda table: table.append_column("more", pa.array([1] * len(table))))
    assert load_pairs(str(copy), "speed").pairs == load_pairs(str(qualcode), "speed").pairs


@pytest.fixture
def offline(monkeypatch):
    """The libraries read the environment when they are imported, which may have been before the tests set it."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)


def test_other_names_are_refused(qualcode, mc_qualcode, tmp_path, offline):
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    cases = [
        (lambda: load_pairs(str(tmp_path / "nowhere")), QualcodeError, "no folder has this path"),
        (lambda: load_pairs("qualcode:org/name"), QualcodeError, "no folder has this path"),
        (lambda: load_pairs(""), QualcodeError, "no folder has this path"),
        (lambda: load_pairs(str(tmp_path / "file")), QualcodeError, "is a file"),
        (lambda: load_pairs(str(tmp_path / "empty")), QualcodeError, "no README.md"),
        (lambda: load_pairs("org/name"), QualcodeError, "cannot be read as a data set"),
        (lambda: load_pairs(str(qualcode), "2-condition"), UsageError, "choose from: speed, memory, maintainability"),
        (lambda: load_pairs(str(qualcode), "relevance"), UsageError, "has no pairs 'relevance'"),
        (lambda: load_pairs(str(mc_qualcode), "speed"), UsageError, "choose from: 1-condition"),
        (lambda: load_pairs(str(qualcode), split="train"), UsageError, "the only one is 'test'"),
        (lambda: load_lists(str(mc_qualcode)), UsageError, "is mc-qualcode; this needs qualcode"),
        (lambda: load_qualcode_retrieval(str(mc_qualcode)), UsageError, "this needs qualcode"),
    ]
    for call, kind, words in cases:
        with pytest.raises(QualcodeError, match=words) as error:
            call()
        assert type(error.value) is kind
        assert "\n" not in str(error.value)


def test_a_foreign_data_set_is_named_as_one(tmp_path):
    pq.write_table(pa.table({"text": ["x"]}), tmp_path / "train.parquet")
    (tmp_path / "README.md").write_text("# Something else\n")
    with pytest.raises(QualcodeError, match="neither qualcode nor mc-qualcode: it is another data set"):
        load_pairs(str(tmp_path))


def test_a_data_set_that_lacks_configurations_says_which(qualcode, tmp_path):
    copy = copied(qualcode, tmp_path)
    card = (copy / "README.md").read_text().replace("- config_name: memory\n", "- config_name: other\n")
    (copy / "README.md").write_text(card)
    with pytest.raises(QualcodeError, match="it lacks memory"):
        load_pairs(str(copy))


def test_empty_configurations_have_0_pairs(memory_collection, tmp_path):
    memory_collection.add("p1", "s1", speed=1).add("p1", "s2", speed=3)
    write("qualcode", memory_collection, tmp_path)
    assert len(load_pairs(str(tmp_path)).pairs) == 1
    with pytest.raises(QualcodeError, match="has 0 pairs in memory"):
        load_pairs(str(tmp_path), "memory")
    write("qualcode", type(memory_collection)().add("p1", "s1", speed=1), tmp_path / "none")
    with pytest.raises(QualcodeError, match="0 queries"):
        load_qualcode_retrieval(str(tmp_path / "none"))
    with pytest.raises(QualcodeError, match="0 lists"):
        load_lists(str(tmp_path / "none"))


def test_a_fresh_process_loads_every_configuration_offline(qualcode, mc_qualcode, tmp_path):
    program = (
        "import sys; from datasets import load_dataset, get_dataset_config_names\n"
        "for folder in sys.argv[1:]:\n"
        "    for config in get_dataset_config_names(folder):\n"
        "        print(config, len(load_dataset(folder, config, split='test')))\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    arguments = [sys.executable, "-c", program, str(qualcode), str(mc_qualcode)]
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    counts = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert len(counts) == 12  # labels is in both
    assert all(int(count) > 0 for count in counts.values())


def test_label_sources_name_a_proxy(qualcode, mc_qualcode, memory_collection, tmp_path):
    assert load_pairs(str(qualcode)).label_sources() == {"labels": "judge", "smells": "toy 1"}
    assert load_pairs(str(qualcode), "speed").label_sources() == {"labels": "judge"}
    memory_collection.smell_engine, memory_collection.smell_version = "ruff", "0.17"
    for number in range(4):
        memory_collection.add("p1", f"s{number}", speed=number + 1, memory=5, rules=["A"] * number)
    write("qualcode", memory_collection, tmp_path / "proxy")
    sources = load_pairs(str(tmp_path / "proxy"), "all-pairs").label_sources()
    assert sources["smells"] == "ruff 0.17 (a proxy for Sonar)"
    labels = tmp_path / "proxy" / "README.md"
    labels.write_text(labels.read_text().replace("config_name: labels", "config_name: other"))
    assert load_pairs(str(tmp_path / "proxy"), "all-pairs").label_sources() == {}
