"""`hf-qualcode synthesize`: programs of high and of low quality for tasks, to train rerankers on."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from hf_qualcode.cli.output import named_path, print_table


# Option -> what it is where neither the command nor --config says.
_DEFAULTS: dict[str, Any] = {
    "writer": None, "model": None, "url": None, "api_key_env": None, "dimensions": None, "language": "python",
    "samples": 4, "num_tasks": None, "guidelines": True, "filter": True, "check_tests": False, "decontaminate": [],
    "temperature": 0.7, "top_p": 0.8, "top_k": 20, "max_tokens": 1024, "concurrency": 32, "timeout": 300.0,
    "max_retries": 5, "batch_size": 8, "max_characters": 20_000, "seed": 42, "num_proc": 1, "smells": "ruff",
    "unsafe": False,
}  # fmt: skip
# Of those without a default.
_TYPES: dict[str, tuple[type, ...]] = {
    "writer": (str,), "model": (str,), "url": (str,), "api_key_env": (str,), "dimensions": (str, list),
    "num_tasks": (int,),
}  # fmt: skip


def add_parser(subparsers) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser(
        "synthesize",
        help="write programs of high and low quality for tasks, to train on",
        description="Write programs of high and of low quality for every task of FILE, by a language model behind a "
        "server, by one on this machine, or by changing the code that tasks come with and proving the change. "
        "Interrupted, the same command goes on where it was. Numbers in brackets are the defaults, and the paper's.",
        argument_default=None,
    )
    parser.add_argument("--tasks", required=True, metavar="FILE", type=named_path,
                        help="JSON list or JSON lines with query, text or prompt; for rules also a CodeNet folder")
    parser.add_argument("--out", required=True, metavar="DIR", type=named_path, help="where everything is kept")
    parser.add_argument("--writer", metavar="NAME", help="server, local or rules")
    parser.add_argument("--config", metavar="YAML", type=named_path, help="options in a file; the command wins")
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")

    asked = parser.add_argument_group("what is asked for")
    asked.add_argument("--num-tasks", type=int, metavar="N", help="draw so many tasks (all)")
    asked.add_argument("--dimensions", metavar="A,B", help="qualities (all)")
    asked.add_argument("--language", metavar="L", help="to write in (python)")
    asked.add_argument("--samples", type=int, metavar="N", help="programs of each level a task and quality (4)")
    asked.add_argument("--no-guidelines", dest="guidelines", action="store_false", default=None,
                       help="ask for quality alone")
    asked.add_argument("--max-characters", type=int, metavar="N", help="of a statement; longer ones go (20000)")
    asked.add_argument("--decontaminate", nargs="+", metavar="DATA",
                       help="leave out tasks that share 10 words in a row with these test sets: QualCode or "
                       "MC-QualCode folders, JSON files of texts")
    asked.add_argument("--seed", type=int, metavar="N", help="of every draw (42)")

    kept = parser.add_argument_group("what is kept")
    kept.add_argument("--no-filter", dest="filter", action="store_false", default=None, help="keep all that is text")
    kept.add_argument("--check-tests", action="store_true", default=None,
                      help="drop programs that fail their task's tests, run in a sandbox")
    kept.add_argument("--smells", metavar="ENGINE", help="of rules: what counts smells (ruff)")
    kept.add_argument("--num-proc", type=int, metavar="N", help="of rules: processes (1)")
    kept.add_argument("--unsafe", action="store_true", default=None,
                      help="run programs without isolation where none works: only those that you trust")

    model = parser.add_argument_group("the model")
    model.add_argument("--model", metavar="ID", help="server: the name it serves; local: a folder, Hub id or smollm2")
    model.add_argument("--url", metavar="URL", help="server: an OpenAI-compatible endpoint, http://HOST:PORT/v1")
    model.add_argument("--api-key-env", metavar="NAME", help="server: environment variable that holds the key")
    model.add_argument("--temperature", type=float, metavar="X", help="of the sampling (0.7)")
    model.add_argument("--top-p", type=float, metavar="X", help="(0.8)")
    model.add_argument("--top-k", type=int, metavar="N", help="(20; 0: no such bound)")
    model.add_argument("--max-tokens", type=int, metavar="N", help="new tokens of one answer (1024)")
    model.add_argument("--concurrency", type=int, metavar="N", help="server: requests in flight (32)")
    model.add_argument("--timeout", type=float, metavar="S", help="server: seconds of one request (300)")
    model.add_argument("--max-retries", type=int, metavar="N", help="server: how often one is sent again (5)")
    model.add_argument("--batch-size", type=int, metavar="N", help="local: answers at a time (8)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from hf_qualcode.cli.progress import ProgressLine
    from hf_qualcode.synthesis.run import RunSettings, synthesize
    from hf_qualcode.synthesis.writers import WriterSettings
    from hf_qualcode.synthesis.writers import writer_list as writers
    from hf_qualcode.types import UsageError

    options = _options(args)
    if options["writer"] is None:
        raise UsageError(f"--writer is missing; choose one of: {writers()}")
    names = options["dimensions"]
    names = names.split(",") if isinstance(names, str) else names
    settings = RunSettings(
        num_tasks=options["num_tasks"],
        dimensions=None if names is None else tuple(name.strip() for name in names),
        language=options["language"],
        num_samples=options["samples"],
        guided=options["guidelines"],
        filtered=options["filter"],
        check_tests=options["check_tests"],
        decontaminate=tuple(map(str, options["decontaminate"])),
        max_characters=options["max_characters"],
        seed=options["seed"],
        num_proc=options["num_proc"],
        smells=options["smells"],
    )
    wanted = ("model", "url", "api_key_env", "temperature", "top_p", "top_k", "max_tokens", "concurrency", "timeout",
              "max_retries", "batch_size", "unsafe")  # fmt: skip
    writer_settings = WriterSettings(**{name: options[name] for name in wanted})
    watched: list = []
    with ProgressLine(lambda: watched[0].tally.note() if watched else "") as progress:
        report = synthesize(
            args.tasks, options["writer"], args.out, settings, writer_settings, progress, watched.append
        )
    if args.json:
        sys.stdout.write(json.dumps(report) + "\n")
    else:
        _print(report, args.out)
    return 0


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """What the command says, else the file, else the default."""
    from hf_qualcode.types import UsageError

    given = {} if args.config is None else _read_config(args.config)
    unknown = sorted(set(given) - set(_DEFAULTS))
    if unknown:
        raise UsageError(f"{args.config}: unknown option {unknown[0]!r}; known are: {', '.join(sorted(_DEFAULTS))}")
    given = {name: _checked(args.config, name, value) for name, value in given.items() if value is not None}
    chosen = _DEFAULTS | given
    return chosen | {name: value for name in _DEFAULTS if (value := getattr(args, name)) is not None}


def _checked(path: Path, name: str, value: Any) -> Any:
    """A value of the file, in the type that the command gives it."""
    from hf_qualcode.types import UsageError

    expected = _TYPES.get(name) or (type(_DEFAULTS[name]),)
    allowed = (int, float) if expected == (float,) else expected
    fits = isinstance(value, allowed) and not (isinstance(value, bool) and bool not in expected)
    fits = fits and not (isinstance(value, list) and not all(isinstance(entry, str) for entry in value))
    if fits and expected == (float,):
        try:
            return float(value)  # 1 is 1.0, in keys of answers too
        except OverflowError:
            fits = False
    if not fits:
        names = " or ".join("list of texts" if kind is list else kind.__name__ for kind in expected)
        raise UsageError(f"{path}: {name} is {value!r}, expected {names}")
    return value


def _read_config(path: Path) -> dict[str, Any]:
    import yaml

    from hf_qualcode.types import UsageError

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise UsageError(f"--config {path} cannot be read as YAML ({' '.join(str(error).split())[:200]})") from error
    if not isinstance(content, dict):
        raise UsageError(f"--config {path} holds {type(content).__name__}, expected options and their values")
    return {str(name).replace("-", "_"): value for name, value in content.items()}


def _print(report: dict[str, Any], out: Path) -> None:
    """The report for people."""
    from hf_qualcode.evaluation.report import Table
    from hf_qualcode.synthesis.filters import REASONS

    if "table" in report:
        print_table(_table_of_rules(report, out))
        return
    tasks, tokens = report["tasks"], report["tokens"]
    rows = [["", "number", "what"]]
    rows += [["tasks", f"{tasks['used']:,}", f"of {sum(tasks['read'].values()):,} read"]]
    rows += [["requests", f"{report['requests']:,}", f"{report['answered_before']:,} answered before"]]
    rows += [[f"  {name}", f"{count:,}", REASONS[name]] for name, count in report["outcomes"].items()]
    for name, levels in report["variants_by_dimension"].items():
        sides = ", ".join(f"{count:,} {level}" for level, count in levels.items())
        rows.append([f"variants: {name}", f"{sum(levels.values()):,}", sides])
    note = f"{tokens.get('prompt_tokens', 0):,} tokens in, {tokens.get('completion_tokens', 0):,} out"
    print_table(Table(f"variants.jsonl in {out}", rows, note))


def _table_of_rules(report: dict[str, Any], out: Path):
    from hf_qualcode.evaluation.report import Table
    from hf_qualcode.synthesis.verification import OUTCOMES

    columns = ("verified", "not_worse", "too_small", "wrong_output")
    rows = [["transformation", "tried", *columns, "other"]]
    for name, counts in report["table"].items():
        tried = sum(counts.get(outcome, 0) for outcome in OUTCOMES)
        if tried:
            shown = [counts.get(column, 0) for column in columns]
            rows.append([name, *(f"{count:,}" for count in (tried, *shown, tried - sum(shown)))])
    note = f"{report['pairs']:,} proven pairs, {report['variants']:,} variants of {report['programs']:,} programs"
    return Table(f"variants.jsonl in {out}", rows, note)
