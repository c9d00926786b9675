"""Files and folders: fixed schemas, the same bytes, whole or not there, nobody else's replaced; cards that render."""

import hashlib
import json
import random
import shutil
from importlib.resources import files
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from datasets import Features, load_dataset
from huggingface_hub import DatasetCard

from hf_qualcode.benchmark.building import build, write_data_set
from hf_qualcode.benchmark.cards import markdown_table, markdown_text
from hf_qualcode.benchmark.labelling import LabelSource, judge_labels
from hf_qualcode.benchmark.schemas import DATA_SETS, LABEL, QREL
from hf_qualcode.benchmark.writing import RowWriter, Workplace
from hf_qualcode.types import QualcodeError, UsageError


NAMES = tuple(DATA_SETS)


class LineSmells:
    """A smell engine of one rule, under a name that attacks the card it is printed in."""

    name, version, is_proxy, description = "to|y\n# <b>`x`</b>", "1 | 2", True, "lines over 20 characters"

    def analyse(self, texts, progress=None):
        return [tuple("long-line" for line in text.splitlines() if len(line) > 20) for text in texts]

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def codenet(codenet_maker):
    """40 programs of 5 problems, some of them with long lines, equal texts and odd values."""
    rng = random.Random(0)
    for number in range(40):
        fields = {"cpu_time": rng.choice((0, 10, 20, 50, 90, "")), "memory": rng.choice((3000, 9000, 40_000, "x"))}
        text = f"print({number % 33})\n" + "print('a line of some length')\n" * rng.choice((0, 0, 1, 4))
        codenet_maker.add(f"s{number:09}", f"p{number % 5:05}", text, **fields)
    return codenet_maker


def file_of(folder, config):
    """The one file of a configuration."""
    (file,) = (folder / config).glob("test-00000-of-00001-*.parquet")
    return file


def digests(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_bytes_whatever_the_order_of_rows(name, codenet, tmp_path):
    build(name, codenet.write(), tmp_path / "one", smells=LineSmells(), seed=3)
    shutil.rmtree(codenet.root)
    build(name, codenet.write(seed=9), tmp_path / "elsewhere" / "two", smells=LineSmells(), seed=3)
    assert digests(tmp_path / "one") == digests(tmp_path / "elsewhere" / "two")
    assert sorted(entry.name for entry in (tmp_path / "elsewhere").iterdir()) == ["two"]


def test_processes_make_no_difference(codenet, tmp_path):
    root = codenet.write()
    build("qualcode", root, tmp_path / "one", seed=3)
    build("qualcode", root, tmp_path / "two", seed=3, num_proc=2)
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


def test_another_seed_draws_otherwise(random_collection, tmp_path):
    for seed in (1, 2):
        (tmp_path / str(seed)).mkdir()
        write_data_set("qualcode", random_collection(0, 20), judge_labels(None), tmp_path / str(seed), seed=seed)
    folders = [tmp_path / "1", tmp_path / "2"]
    names = {config: {file_of(folder, config).name for folder in folders} for config in DATA_SETS["qualcode"]}
    assert len(names["relevance"]) == 2
    assert len(names["speed"]) == len(names["labels"]) == 1


@pytest.mark.parametrize("name", NAMES)
def test_every_configuration_has_its_schema(name, memory_collection, random_collection, tmp_path):
    memory_collection.add("p1", "s1", speed=1)
    for number, collection in enumerate((memory_collection, random_collection(0))):
        folder = tmp_path / str(number)
        folder.mkdir()
        report = write_data_set(name, collection, judge_labels(None), folder)
        for config, features in DATA_SETS[name].items():
            assert Features.from_arrow_schema(pq.read_schema(file_of(folder, config))) == features
            data = load_dataset(str(folder), config, split="test", streaming=True)
            assert data.features == features
            assert len(list(data)) == report["configs"][config]


def test_a_writer_keeps_nulls_and_refuses_other_columns(tmp_path):
    row = dict.fromkeys(LABEL) | {"problem_id": "p", "submission_id": "s", "smell_rules": []}
    with RowWriter(tmp_path, "labels", LABEL) as writer:
        writer.add(row)
        writer.add(row | {"smell_rules": None, "smells": 0})
        for wrong in ({"problem_id": "p"}, row | {"more": 1}):
            with pytest.raises(ValueError, match="expected .*smell_rules"):
                writer.add(wrong)
    assert writer.num_rows == 2
    assert pq.read_table(file_of(tmp_path, "labels")).to_pylist() == [
        row, row | {"smell_rules": None, "smells": 0}
    ]  # fmt: skip


def test_large_rows_become_several_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("hf_qualcode.benchmark.writing._GROUP_BYTES", 1000)
    with RowWriter(tmp_path, "qrels", QREL) as writer:
        for number in range(100):
            writer.add({"query-id": f"q{number}", "corpus-id": "x" * 90, "score": 1})
    file = pq.ParquetFile(file_of(tmp_path, "qrels"))
    assert file.num_row_groups == 10
    assert file.read().column("query-id").to_pylist() == [f"q{number}" for number in range(100)]


def test_the_same_command_replaces_a_finished_build(codenet, tmp_path):
    root, out = codenet.write(), tmp_path / "out"
    build("qualcode", root, out)
    before = digests(out)
    file_of(out, "speed").write_bytes(b"damaged")
    build("qualcode", root, out)
    assert digests(out) == before
    build("mc-qualcode", root, out)
    assert file_of(out, "2-condition").is_file()
    assert not (out / "speed").exists()
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.parametrize("content", ["notes.txt", "speed/x.parquet", "report.json"])
def test_a_foreign_folder_is_refused_and_left_alone(content, codenet, tmp_path):
    out = tmp_path / "out"
    (out / content).parent.mkdir(parents=True)
    (out / content).write_text("{}")
    with pytest.raises(UsageError, match="name a new or an empty folder") as error:
        build("qualcode", codenet.write(), out)
    assert "\n" not in str(error.value)
    assert [path.read_text() for path in out.rglob("*") if path.is_file()] == ["{}"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["codenet", "out"]


def test_files_added_to_a_build_are_not_deleted(codenet, tmp_path):
    root, out = codenet.write(), tmp_path / "out"
    build("qualcode", root, out)
    (out / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="'notes.txt'"):
        build("qualcode", root, out)
    assert (out / "notes.txt").read_text() == "mine"


def test_odd_targets(codenet, tmp_path):
    root = codenet.write()
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        build("qualcode", root, tmp_path / "file")
    with pytest.raises(QualcodeError, match="cannot be written to"):
        build("qualcode", root, tmp_path / "file" / "out")
    with pytest.raises(UsageError, match="no build of a data set wrote"):
        build("qualcode", root, root)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    build("qualcode", root, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "empty" / "README.md").is_file()


def test_two_builds_of_one_folder_do_not_meet(codenet, tmp_path):
    root = codenet.write()
    with Workplace(tmp_path / "out"), pytest.raises(QualcodeError, match="being built by another process"):
        build("qualcode", root, tmp_path / "out")


def test_an_interrupted_build_goes_on(codenet, tmp_path, monkeypatch):
    root, out = codenet.write(), tmp_path / "out"
    analysed = []

    class Counting(LineSmells):
        def analyse(self, texts, progress=None):
            analysed.extend(texts)
            return super().analyse(texts)

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("hf_qualcode.benchmark.building.render_card", stop)
        with pytest.raises(KeyboardInterrupt):
            build("qualcode", root, out, smells=Counting())
    assert not out.exists()
    assert len(analysed) == 40
    build("qualcode", root, out, smells=Counting())
    assert len(analysed) == 40
    build("qualcode", root, tmp_path / "straight", smells=LineSmells())
    assert digests(out) == digests(tmp_path / "straight")


def tables_of(markdown):
    """Blocks of lines that start with `|`, split at bars that are not escaped."""
    blocks, block = [], []
    for line in [*markdown.split("\n"), ""]:
        if line.startswith("|"):
            block.append(line.replace("\\|", "").strip("|").split("|"))
        elif block:
            blocks.append(block)
            block = []
    return blocks


@pytest.mark.parametrize("name", NAMES)
def test_cards_render(name, codenet, tmp_path):
    report = build(name, codenet.write(), tmp_path / "out", smells=LineSmells())
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    card = DatasetCard(text)
    assert card.data.license == "cdla-permissive-2.0"
    header = yaml.safe_load(text.split("---\n")[1])
    assert {config["config_name"] for config in header["configs"]} == set(DATA_SETS[name])
    counts = {info["config_name"]: info["splits"][0]["num_examples"] for info in header["dataset_info"]}
    assert counts == report["configs"]
    tables = tables_of(card.text)
    assert len(tables) >= 6
    for table in tables:
        assert len({len(row) for row in table}) == 1
        assert set("".join(table[1]).replace(" ", "")) <= set("-:")
    # Nothing of the engine's name works in the card.
    assert "<b>" not in card.text
    assert not any(line.startswith("# &lt;b") for line in card.text.split("\n"))
    assert "a proxy" in card.text
    assert not any(mark in card.text for mark in ("{{", "{%"))
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == report


@pytest.mark.parametrize("name", NAMES)
def test_the_card_has_every_count_of_the_report(name, codenet, tmp_path):
    report = build(name, codenet.write(), tmp_path / "out", smells=LineSmells())
    rows = ["|".join(cell.strip() for cell in row) for table in tables_of((tmp_path / "out" / "README.md").read_text())
            for row in table]  # fmt: skip
    for outcome, count in report["collecting"]["submissions"].items():
        assert any(row.startswith(f"{count:,}|`{outcome}`|") for row in rows), outcome
    assert sum(report["collecting"]["submissions"].values()) == report["collecting"]["num_rows"] == 40
    for config, num_rows in report["configs"].items():
        assert any(row.startswith(f"{config}|{num_rows:,}|") for row in rows), config
    for dimension, counts in report.get("pairs", {}).items():
        for reason, count in counts["problems_without_pair"].items():
            assert any(row.startswith(f"{dimension}|{count}|`{reason}`|") for row in rows), reason
    cells = [cell for counts in report.get("triplets", {}).values() for cell in counts["by_cell"]]
    for cell in cells:
        ending = f"|{cell['missing_dimension']}|{cell['exist']:,}|{cell['triplets']:,}|{cell['problems']:,}"
        assert any(" + ".join(cell["dimensions"]) in row and row.endswith(ending) for row in rows), cell


def test_hostile_text_stays_one_cell():
    hostile = "a|b\n| --- |\n<script>`x`</script> [l](http://x) *b* _c_ ~~d~~ \\ \u202e \x1b[0m"
    table = markdown_table(["n", "what"], [[1, hostile], [2, "plain"]])
    assert len(table.split("\n")) == 4
    assert {len(row) for row in tables_of(table)[0]} == {2}
    assert "<" not in markdown_text(hostile)
    assert not {"\n", "\x1b", "\u202e"} & set(markdown_text(hostile))


REMEASURED = {
    "problems": {"measured": 1}, "programs": {"measured": 5},
    "problem_reasons": {"measured": "enough programs"}, "program_reasons": {"measured": "has values"},
}  # fmt: skip


def test_remeasured_labels_stand_beside_the_judges(memory_collection, tmp_path):
    for number in range(6):
        memory_collection.add("p1", f"s{number}", speed=10 * (number + 1), memory=3000, rules=[])
    again = {("p1", f"s{number}"): {"speed": 100.0 - 20 * number} for number in range(5)}
    source = LabelSource("remeasured", {"speed": "measured again"}, {"speed": "instructions"}, again, REMEASURED)

    class Remeasured(type(memory_collection)):
        def problem(self, problem_id):
            problem = super().problem(problem_id)
            programs = (
                type(program)(**{**fields(program), "values": again.get(("p1", program.submission_id), {})})
                for program in problem.programs
            )
            return type(problem)(problem_id, problem.statement, tuple(programs))

    def fields(program):
        return {name: getattr(program, name) for name in type(program).__slots__}

    changed = Remeasured(**vars(memory_collection))
    report = write_data_set("qualcode", changed, source, tmp_path, judged=memory_collection)
    pair = load_dataset(str(tmp_path), "speed", split="test")[0]
    assert [pair[name] for name in ("positive_id", "negative_id", "positive_value")] == ["s4", "s0", 20]
    labels = {row["submission_id"]: row for row in load_dataset(str(tmp_path), "labels", split="test")}
    assert [labels["s4"][name] for name in ("cpu_time", "remeasured_speed")] == [50, 20]
    assert labels["s4"]["remeasured_speed_unit"] == "instructions"
    assert labels["s5"]["remeasured_speed"] is labels["s5"]["remeasured_speed_unit"] is None
    assert report["labels"] == {
        "name": "remeasured", "sources": {"speed": "measured again"}, "units": {"speed": "instructions"},
        "report": REMEASURED,
    }  # fmt: skip
    assert "| programs | 5 | `measured` | has values |" in (tmp_path / "README.md").read_text()


def test_templates_are_in_the_package_as_they_are_in_the_repository():
    source = Path(__file__).parents[2] / "model_cards"
    bundled = files("hf_qualcode") / "bundled" / "model_cards"
    names = sorted(path.name for path in source.glob("*.md"))
    assert {"qualcode.md", "mc_qualcode.md", "codenet.md"} <= set(names)
    for name in names:
        assert (bundled / name).read_bytes() == (source / name).read_bytes()


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder where nobody may write, as Linux's /proc")
def test_an_unwritable_folder_is_one_line(codenet):
    with pytest.raises(QualcodeError, match="choose another --out") as error:
        build("qualcode", codenet.write(), Path("/proc/self/out"))
    assert "\n" not in str(error.value)
