import random

import pytest

from hf_qualcode.corpus.lines import split_lines
from hf_qualcode.corpus.units import MAX_COPIES, MAX_DEPTH, QUALIFIED_NAME_MAX_CHARS, extract_units
from hf_qualcode.languages import get_language


PYTHON = get_language("python")


def units_of(source, path="a.py", language="python", **kwargs):
    return extract_units(source, path, get_language(language), **kwargs).units


def ids_of(source, path="a.py", language="python"):
    return [unit.id.removeprefix(f"{path}::") for unit in units_of(source, path, language)]


SAMPLE = '''"""A queue."""
import heapq
from os import path

MAX = 10
MIN = 0


@total_ordering
class Queue(Base):
    """First in, first out."""

    size: int = 0

    def put(self, item):
        """Adds."""
        def check(x):
            return x
        self.items.append(check(item))

    alias = put
    other = put

    class Node:
        value = None

    @property
    def head(self): return self.items[0]

    @head.setter
    def head(self, value):
        self.items[0] = value


def make(n):
    return [Queue() for _ in range(n)]


TABLE = {
    1: make,
    2: make,
}


async def run():
    await go()


if __name__ == "__main__":
    run()
'''


def test_fields_of_units():
    by_id = {unit.id: unit for unit in units_of(SAMPLE, "pkg/queue.py")}
    assert list(by_id) == [
        "pkg/queue.py::<module>",
        "pkg/queue.py::Queue",
        "pkg/queue.py::Queue.put",
        "pkg/queue.py::Queue.put.check",
        "pkg/queue.py::Queue@after:put",
        "pkg/queue.py::Queue.Node",
        "pkg/queue.py::Queue.head",
        "pkg/queue.py::Queue.head#2",
        "pkg/queue.py::make",
        "pkg/queue.py::<module>@after:make",
        "pkg/queue.py::run",
    ]
    queue = by_id["pkg/queue.py::Queue"]
    assert (queue.kind, queue.name, queue.parent, queue.doc) == ("class", "Queue", "", "First in, first out.")
    assert (queue.start_line, queue.end_line, queue.signature) == (9, 13, "class Queue(Base)")
    put = by_id["pkg/queue.py::Queue.put"]
    assert (put.kind, put.parent, put.doc, put.signature) == ("method", queue.id, "Adds.", "def put(self, item)")
    check = by_id["pkg/queue.py::Queue.put.check"]
    assert (check.kind, check.name, check.parent) == ("function", "Queue.put.check", put.id)
    later = by_id["pkg/queue.py::Queue@after:put"]
    assert (later.kind, later.name, later.parent) == ("class", "Queue", queue.id)
    assert later.code == "    alias = put\n    other = put"
    setter = by_id["pkg/queue.py::Queue.head#2"]
    assert setter.name == "Queue.head"
    assert setter.code.startswith("    @head.setter\n")
    module = by_id["pkg/queue.py::<module>"]
    assert (module.kind, module.name, module.doc, module.end_line) == ("module", "<module>", "A queue.", 6)
    assert by_id["pkg/queue.py::<module>@after:make"].code.startswith("TABLE = {")
    assert by_id["pkg/queue.py::run"].signature == "async def run()"


def test_id_prefix():
    assert units_of("def f(): pass", id_prefix="@2/")[0].id == "@2/a.py::f"


def test_class_head_counts_when_it_holds_something():
    assert ids_of("class A:\n\n    def f(self): pass\n") == ["A.f"]
    assert ids_of("class A:\n    # why\n    def f(self): pass\n") == ["A.f"]
    assert ids_of("class A:\n    'doc'\n    def f(self): pass\n") == ["A", "A.f"]
    assert ids_of("class A:\n    x = 1\n    def f(self): pass\n") == ["A", "A.f"]
    assert ids_of("class A: pass\n") == ["A"]
    java = "class A {\n  void f() {}\n}\n"
    assert ids_of(java, "A.java", "java") == ["A.f"]
    assert ids_of(f"/** Doc. */\n{java}", "A.java", "java") == ["A", "A.f"]
    assert ids_of("class A {\n  void f() {}\n\n  int x;\n}\n", "A.java", "java") == ["A.f", "A@after:f"]


def test_module_runs_count_from_three_lines_of_code():
    function = "def f(): pass\n"
    assert ids_of(f"a = 1\nb = 2\n{function}") == ["f"]
    assert ids_of(f"a = 1\nb = 2\nc = 3\n{function}") == ["<module>", "f"]
    assert ids_of(f"'''Doc.'''\n{function}") == ["<module>", "f"]
    assert ids_of(f"{function}a = 1\nb = 2\n") == ["f"]
    assert ids_of(f"{function}a = 1\n# c\nb = 2\nimport x\nc = 3\n") == ["f", "<module>@after:f"]
    idle = "import a\nfrom b import (\n    c,\n    d,\n)\n__all__ = [\n    'f',\n]\n# x\npass\n"
    assert ids_of(f"{function}{idle}") == ["f"]
    assert ids_of(f"{function}if __name__ == '__main__':\n    # go\n    f()\n") == ["f"]
    assert ids_of(f"{function}if __name__ == '__main__':\n    a = 1\n    b = 2\n    f()\n") == [
        "f",
        "<module>@after:f",
    ]


def test_file_with_code_has_a_unit():
    assert ids_of("x = 1\n") == ["<module>"]
    assert ids_of("import x\n") == []
    assert ids_of("# only\n\n") == []
    assert ids_of("") == []
    assert ids_of("describe('x', () => {\n  it('y', () => {});\n});\n", "a.js", "javascript") == ["<module>"]


def test_same_names_stay_apart():
    assert ids_of("def f(): pass\ndef f():\n    def g(): pass\ndef f(): pass\n") == ["f", "f#2", "f#2.g", "f#3"]
    # A key may look like a counted name.
    source = 'x = { "f#2"() {}, f() {}, f() {}, "f#2"() {} };\n'
    found = ids_of(source, "a.js", "javascript")
    assert len(set(found)) == 4


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(end):
    source = SAMPLE.replace("\n", end)
    assert [unit.code for unit in units_of(source)] == [unit.code for unit in units_of(SAMPLE)]
    assert [unit.start_line for unit in units_of(source)] == [unit.start_line for unit in units_of(SAMPLE)]


def test_only_line_ends_end_lines():
    source = 'x = "\u2028"\x0c\ndef f():\n    return "a\x0bb\x85"\n\x0c\ndef g(): pass\n'
    f, g = units_of(source)[-2:]
    assert (f.start_line, f.end_line, g.start_line) == (2, 3, 5)
    assert f.code == 'def f():\n    return "a\x0bb\x85"'


def test_text_that_utf8_cannot_hold():
    unit = units_of("def f(): return '\ud800'\n")[0]
    assert unit.code.encode("utf-8") == b"def f(): return '\xef\xbf\xbd'"


def test_trailing_comments_are_not_part_of_a_python_function():
    function = units_of("def f():\n    return 1\n    # left over\n\n# next\nx = 1\n")[0]
    assert (function.start_line, function.end_line) == (1, 2)


def test_long_unit_stays_whole():
    source = "def f():\n" + "    x = 1\n" * 5_000
    assert [(unit.start_line, unit.end_line) for unit in units_of(source)] == [(1, 5_001)]


def test_comment_above_belongs_to_a_definition_unless_a_blank_line_parts_them():
    source = "int a;  // a\nint f() { return 1; }\n\n// far\n\n/* near\n * by */\n// more\nint g() { return 1; }\n"
    f, g = units_of(source, "a.c", "c")
    assert (f.start_line, f.doc) == (2, "")
    assert (g.start_line, g.doc) == (6, "near\nby\nmore")


# Properties, on sources put together at random.


def random_source(rng, depth=0, prefix=""):
    lines = []
    indent = "    " * depth
    for _ in range(rng.randint(1, 5)):
        choice = rng.random()
        name = rng.choice("abcde")
        if choice < 0.35:
            lines += [f"{indent}@deco" for _ in range(rng.randint(0, 2))]
            lines.append(f"{indent}{rng.choice(['', 'async '])}def {name}(x):")
            lines += random_source(rng, depth + 1) if depth < 3 and rng.random() < 0.4 else [f"{indent}    return x"]
        elif choice < 0.5 and depth < 3:
            lines.append(f"{indent}class {name.upper()}:")
            lines += random_source(rng, depth + 1)
        else:
            lines += [f"{indent}{name} = {rng.randint(0, 9)}" for _ in range(rng.randint(1, 4))]
        lines += [""] * rng.randint(0, 2)
    return lines


@pytest.mark.parametrize("seed", range(40))
def test_properties_of_random_sources(seed):
    rng = random.Random(seed)
    lines = random_source(rng)
    source = "\n".join(lines)
    units = units_of(source)
    assert len({unit.id for unit in units}) == len(units)
    assert [(u.start_line, -u.end_line) for u in units] == sorted((u.start_line, -u.end_line) for u in units)
    file_lines = split_lines(source)
    covered, owned = set(), []
    for unit in units:
        assert unit.code == "\n".join(file_lines[unit.start_line - 1 : unit.end_line])
        span = set(range(unit.start_line, unit.end_line + 1))
        covered |= span
        if unit.kind in ("class", "module"):
            owned.append(span)
    # Runs never overlap one another, and every line inside a function is in some unit.
    assert sum(map(len, owned)) == len(set().union(*owned))
    in_function = [row for row, line in enumerate(file_lines, 1) if "return" in line]
    assert covered.issuperset(in_function)


INSERTIONS = [
    ["import zlib"],
    ["# a comment", ""],
    ["def unrelated():", "    return 0", ""],
    ["", ""],
    ["class Unrelated:", "    def method(self): pass", ""],
]


@pytest.mark.parametrize("seed", range(40))
def test_ids_outlive_insertions_above(seed):
    rng = random.Random(seed)
    lines = random_source(rng)
    before = {unit.id: unit.code for unit in units_of("\n".join(lines))}
    # Above the first definition nothing can come between a run and the definition it is named for.
    first = next((row for row, line in enumerate(lines) if line.startswith(("def", "async", "class", "@"))), None)
    if first is None:
        return
    inserted = [line for _ in range(rng.randint(1, 4)) for line in rng.choice(INSERTIONS)]
    after = {unit.id: unit.code for unit in units_of("\n".join(lines[:first] + inserted + lines[first:]))}
    for unit_id, code in before.items():
        if unit_id != "a.py::<module>":
            assert after[unit_id] == code


@pytest.mark.parametrize(("path", "language"), [("a.js", "javascript"), ("a.rs", "rust"), ("a.cpp", "cpp")])
def test_ids_outlive_comments_above_in_other_languages(path, language):
    sources = {
        "javascript": "const f = () => {\n  return 1;\n};\nclass A {\n  x = 1;\n  m() { return 2; }\n  y = 2;\n}\n",
        "rust": "struct A { x: u8 }\nimpl A {\n  fn m(&self) {}\n}\nfn f() {}\n",
        "cpp": "struct A {\n  int x;\n  void m() {}\n};\nint A::f() { return 1; }\n",
    }
    source = sources[language]
    expected = [(unit.id, unit.code) for unit in units_of(source, path, language)]
    moved = units_of("// one\n\n/* two\n */\n\n" + source, path, language)
    assert [(unit.id, unit.code) for unit in moved] == expected
    assert all(unit.start_line > 5 for unit in moved)


def num_chars(units):
    return sum(len(unit.id + unit.name + unit.parent + unit.signature + unit.doc + unit.code) for unit in units)


@pytest.mark.parametrize(
    ("path", "language", "opening", "closing"),
    [
        ("a.js", "javascript", "function f{}() {{\n", "}\n"),
        ("a.js", "javascript", "class A{} {{ m() {{\n", "}}\n"),
        ("a.js", "javascript", "x{} = {{ f() {{ return {{}} }},\n y:", "}\n"),
        ("a.cpp", "cpp", "namespace n{} {{ int f() {{ return 1; }}\n", "}\n"),
    ],
)
def test_nesting_makes_no_more_text_than_some_copies_of_the_file(path, language, opening, closing):
    source = "".join(opening.format(number) for number in range(2_000)) + closing * 2_000
    units = units_of(source, path, language, time_limit=60)
    assert max(unit.id.count(".") for unit in units) <= MAX_DEPTH + 1
    assert num_chars(units) < 2 * MAX_COPIES * len(source)


def test_what_is_too_deep_stays_in_the_unit_around_it():
    def nested(depth):
        return "".join(" " * level + f"def f{level}():\n" for level in range(depth)) + " " * depth + "return 1\n"

    assert [unit.name for unit in units_of(nested(MAX_DEPTH))] == [
        ".".join(f"f{level}" for level in range(depth + 1)) for depth in range(MAX_DEPTH)
    ]
    units = units_of(nested(MAX_DEPTH + 5) + "def g():\n" + "    pass\n" * 1_000)
    assert len(units) == MAX_DEPTH + 1
    assert units[MAX_DEPTH - 1].code.count("def") == 6
    assert units[-1].id == "a.py::g"


@pytest.mark.parametrize("between", [" ", "\n"])
def test_many_definitions_on_one_line_below_a_long_comment(between):
    functions = between.join(f"function f{number}() {{}}" for number in range(2_000))
    units = units_of(f"/* {'word ' * 5_000}*/\n{functions}\n", "a.js", "javascript")
    assert len(units) > 5
    assert num_chars(units) < 2 * MAX_COPIES * (len(functions) + 25_000)


def test_long_qualified_names_are_cut_and_stay_apart():
    source = "".join(" " * level + f"class {'A' * 150}{level}:\n" for level in range(20))
    source += " " * 20 + "def f(): pass\n" + " " * 20 + "def g(): pass\n" + " " * 19 + "def f(): pass\n"
    units = units_of(source)
    assert max(len(unit.name) for unit in units) <= QUALIFIED_NAME_MAX_CHARS
    assert max(len(unit.id) for unit in units) < 2 * QUALIFIED_NAME_MAX_CHARS + 50
    assert len({unit.id for unit in units}) == len(units)
    assert [unit.name.rpartition(".")[2] for unit in units if unit.kind == "method"] == ["f", "g", "f"]
