"""Which files the ignore rules of a folder hide: `.gitignore` and `.ignore` at every level, `.git/info/exclude`.

Rules of the folders above the root count too, up to the enclosing git repository. The user's global git excludes do
not: a search must not depend on who runs it.
"""

import functools
import re
from pathlib import Path
from typing import NamedTuple

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from hf_qualcode.types import UsageError


IGNORE_FILES = (".gitignore", ".ignore")
# Hidden whatever the rules say: other programs' stores, and copies of code that is not the user's own.
PRUNED_FOLDERS = {
    ".bzr",
    ".eggs",
    ".git",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pytest_cache",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    "CVS",
    "__pycache__",
    "bower_components",
    "node_modules",
}
FOLDER_GROUP = "ps_d"  # what pathspec calls the `/` after a folder that a pattern matched
# How pathspec writes `**/` at the start of a rule and in it, and `*` with what stands between it and the next `*` of
# the same name. It escapes what is written out, and a `/` never stands in a set, so these are nothing else.
OUTER_FOLDERS = "^(?:.+/)?"
INNER_FOLDERS = "(?:/.+)?"
STAR_BEFORE_STAR = re.compile(r"\[\^/\]\*((?:\[\^/\](?!\*)|[^/\[]|\[(?!\^/\]))*)(?=\[\^/\]\*)")
ENVIRONMENT_MARK = "pyvenv.cfg"  # a Python virtual environment, whatever its folder is called


class Rule(NamedTuple):
    """One line: whether it hides what it matches (or with `!` takes it in again), and its pattern."""

    hides: bool
    pattern: re.Pattern


class RuleFile(NamedTuple):
    """The rules of one folder. `prefix` is what must be put in front of a path relative to the root (for rules above
    the root) and `cut` how many characters taken off (for those below)."""

    rules: tuple[Rule, ...]
    any_pattern: re.Pattern
    prefix: str
    cut: int


Rules = tuple[RuleFile, ...]  # the strongest, deepest, first


def is_ignored(rules: Rules, path: str) -> bool:
    """Says whether the rules hide a path.

    Args:
        rules (`tuple[RuleFile, ...]`): Rules in force in the path's folder.
        path (`str`): POSIX path relative to the root; folders end in `/`.
    """
    for file in rules:
        shown = file.prefix + path[file.cut :]
        # One alternation of all patterns says no for nearly every file, much faster than one pattern after another.
        if file.any_pattern.match(shown):
            for rule in reversed(file.rules):
                if _matches_itself(rule.pattern, shown):
                    return rule.hides
    return False


def _matches_itself(pattern: re.Pattern, path: str) -> bool:
    """Says whether the pattern matches the path, not merely a folder that it is in (a walk asked about that before,
    and `!lib/` must not take in again what another rule hides in `lib`)."""
    match = pattern.search(path)
    if match is None:
        return False
    if FOLDER_GROUP in pattern.groupindex:
        return match.end(FOLDER_GROUP) in (-1, len(path))
    return not (path[-1] == "/" and match.end() == len(path))  # `lib/**` is about what is in `lib` alone


def rules_of_folder(folder: str, names: set[str], outer: Rules, path: str) -> Rules:
    """Returns the rules in force inside a folder.

    Args:
        folder (`str`): Where it is.
        names (`set[str]`): Names of the files in it.
        outer (`tuple[RuleFile, ...]`): Rules in force around it.
        path (`str`): Its POSIX path relative to the root with `/` at the end, `""` for the root.
    """
    own = []
    for name in IGNORE_FILES:
        if name in names:
            lines = _read_lines(Path(folder, name))
            # A root that hides all of itself (environments and caches do so) was asked for by name.
            own.append(_rule_file(lines, "", len(path)) if path or not _hides_all(lines) else None)
    # `.ignore` is the stronger of the two.
    return (*reversed([rule for rule in own if rule is not None]), *outer)


def rules_of_lines(lines: tuple[str, ...]) -> Rules:
    """Returns rules given as text, for paths relative to the root.

    Raises:
        `UsageError`: one of them is malformed: unlike those in a stranger's file, somebody asked for it.
    """
    for line in lines:
        try:
            GitIgnoreSpecPattern(line)
        except (ValueError, re.error) as error:
            raise UsageError(f"the glob {line!r} cannot be read: {error}") from None
    rule = _rule_file(lines, "", 0)
    return (rule,) if rule is not None else ()


def rules_above(root: Path) -> Rules:
    """Returns the rules that folders above the root have for it, without those that hide the root itself."""
    repository = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
    if repository is None:
        return ()
    rules: list[RuleFile | None] = [_above(repository, repository / ".git" / "info" / "exclude", root)]
    folders = [folder for folder in root.parents if folder == repository or repository in folder.parents]
    for folder in reversed(folders):
        rules.extend(_above(folder, folder / name, root) for name in IGNORE_FILES)
    return tuple(rule for rule in reversed(rules) if rule is not None)


def _above(folder: Path, file: Path, root: Path) -> RuleFile | None:
    prefix = "" if folder == root else root.relative_to(folder).as_posix() + "/"
    return _rule_file(_read_lines(file), prefix, 0)


def _read_lines(file: Path) -> tuple[str, ...]:
    try:
        if not file.is_file():
            return ()
        return tuple(file.read_text("utf-8-sig", "surrogateescape").split("\n"))
    except OSError:
        return ()  # rules that cannot be read hide nothing, as in git


def _hides_all(lines: tuple[str, ...]) -> bool:
    rules = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return rules in (["*"], ["**"])


def _rule_file(lines: tuple[str, ...], prefix: str, cut: int) -> RuleFile | None:
    rules, any_pattern = _compile(lines, prefix)
    return RuleFile(rules, any_pattern, prefix, cut) if any_pattern is not None else None


@functools.lru_cache(maxsize=256)
def _compile(lines: tuple[str, ...], root: str) -> tuple[tuple[Rule, ...], re.Pattern | None]:
    rules = []
    for line in lines:
        try:
            pattern = GitIgnoreSpecPattern(line)
        except (ValueError, re.error):
            continue  # git passes over a malformed rule as well
        if pattern.include is None:
            continue
        rule = Rule(pattern.include, re.compile(_without_backtracking(pattern.regex.pattern)))
        # Asked for by name, the root is not hidden by a rule that hides it whole.
        if not (root and rule.pattern.search(root)):
            rules.append(rule)
    sources = [re.sub(r"\(\?P<\w+>", "(?:", rule.pattern.pattern) for rule in rules]
    sources = [source if source.startswith(("^", ".", "(?>^")) else f".*{source}" for source in sources]
    return tuple(rules), re.compile("|".join(f"(?:{source})" for source in sources)) if sources else None


def _without_backtracking(source: str) -> str:
    """Returns the regular expression of a rule such that matching takes no more than polynomial time of low degree.

    Of several wildcards all but the last take the first place where what follows them fits, for good: later places
    leave less for the rest to fit in. This holds for `*` inside a name and for `**` among the names of a path.
    """
    source = STAR_BEFORE_STAR.sub(r"(?>[^/]*?\1)", source)
    head, *parts = source.split(INNER_FOLDERS)
    if not parts:
        return source
    if head.startswith(OUTER_FOLDERS):
        head = f"(?>^(?:.+?/)??{head.removeprefix(OUTER_FOLDERS)}(?=/))"
    inner = [f"(?>(?:/.+?)??{part}(?=/))" for part in parts[:-1]]
    return "".join([head, *inner, INNER_FOLDERS, parts[-1]])
