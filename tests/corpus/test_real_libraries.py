"""Scans of whole libraries: nothing fails, the counts add up, and Python's own parser finds the same functions."""

import ast
import sysconfig
import warnings
from collections import Counter
from pathlib import Path

import pytest

from hf_qualcode.corpus.folder import ScanReport, find_roots, scan
from hf_qualcode.corpus.lines import split_lines
from hf_qualcode.corpus.reading import decode
from hf_qualcode.corpus.units import extract_units
from hf_qualcode.languages import get_language


pytestmark = pytest.mark.slow

STDLIB = Path(sysconfig.get_path("stdlib"))
SITE_PACKAGES = Path(sysconfig.get_path("purelib"))


def functions_of_ast(text: str) -> Counter:
    """Counts (qualified name, first line with decorators, last line) of all functions."""
    found = Counter()

    def visit(node, prefix):
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{prefix}.{child.name}" if prefix else child.name
                if not isinstance(child, ast.ClassDef):
                    start = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
                    found[inner, start, child.end_lineno] += 1
            visit(child, inner)

    visit(ast.parse(text), "")
    return found


def python_files(folder: Path):
    return [path for path in sorted(folder.rglob("*.py")) if "site-packages" not in path.relative_to(folder).parts]


def test_functions_are_those_of_pythons_own_parser():
    python = get_language("python")
    num_functions = num_different = 0
    differences = []
    for path in python_files(STDLIB):
        try:
            text = decode(path.read_bytes(), is_python=True).text
            with warnings.catch_warnings(action="ignore"):
                expected = functions_of_ast(text)
        except Exception:
            continue  # not Python 3, or not text: `ast` has no say
        units = extract_units(text, path.as_posix(), python).units
        lines = split_lines(text)
        assert len({unit.id for unit in units}) == len(units)
        assert all(unit.code == "\n".join(lines[unit.start_line - 1 : unit.end_line]) for unit in units)
        got = Counter((u.name, u.start_line, u.end_line) for u in units if u.kind in ("function", "method"))
        num_functions += expected.total()
        num_different += (expected - got).total() + (got - expected).total()
        differences += [(path.name, "missing", item) for item in (expected - got)]
        differences += [(path.name, "extra", item) for item in (got - expected)]
    print(f"{num_functions} functions, {num_different} differences")
    for difference in differences[:40]:
        print(*difference)
    assert num_functions > 10_000
    assert num_different < num_functions / 500  # one file dedents inside brackets, which the grammar cannot read


@pytest.mark.parametrize("folder", [STDLIB, SITE_PACKAGES], ids=["stdlib", "site-packages"])
def test_every_file_of_a_library_is_accounted_for(folder):
    report = ScanReport()
    for scanned in scan(find_roots([folder])):
        report.add(scanned.record)
    summary = report.to_dict()
    print(summary)
    assert summary["seen"] == summary["indexed"] + sum(reason["count"] for reason in summary["skipped"].values())
    assert summary["units"] > 10_000
    assert "failed" not in summary["skipped"]
