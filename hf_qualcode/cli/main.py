"""`hf-qualcode`: one command, one small module each in this folder.

stdout holds results only; progress and messages go to stderr. Exit codes: 0 done (warnings included), 1 a failure said
in one line, 2 wrong usage.
"""

import argparse
import logging
import os
import sys
from importlib import import_module

from hf_qualcode import __version__
from hf_qualcode.cli.output import printable_line
from hf_qualcode.types import QualcodeError, UsageError


# In the order of the help text.
COMMANDS = (
    "search",
    "rerank",
    "index",
    "evaluate",
    "dataset",
    "measure",
    "synthesize",
    "install-sonar",
    "install-smollm2",
    "register-metrics",
    "quickstart",
    "env",
)


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands. Imports nothing large."""
    parser = argparse.ArgumentParser(
        prog="hf-qualcode",
        description="Find the code that does what was asked. Start with: hf-qualcode search 'parse an ISO date' PATH",
    )
    parser.add_argument("--version", action="version", version=f"hf-qualcode {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        import_module(f"hf_qualcode.cli.{name.replace('-', '_')}").add_parser(subparsers)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        _set_up_streams()
        args = _parse(arguments)
        code = args.run(args)
        sys.stdout.flush()
        return code
    except UsageError as error:
        _say(error)
        return 2
    except QualcodeError as error:
        _say(error)
        return 1
    except BrokenPipeError:
        # The reader of our results has gone (`| head`); what Python would print at exit helps nobody.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        _say(error)
        return 1
    except KeyboardInterrupt:
        _say("interrupted; what was done so far is kept")
        return 130


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = build_parser()
    args, rest = parser.parse_known_args(arguments)
    if rest and hasattr(args, "take_rest"):
        rest = args.take_rest(args, rest)
    if rest:
        parser.error(f"{args.command} does not know: {' '.join(rest)} (see hf-qualcode {args.command} --help)")
    return args


def _say(message: object) -> None:
    sys.stderr.write(f"hf-qualcode: {printable_line(' '.join(str(message).split()))}\n")


class _OneLine(logging.Formatter):
    """Messages quote strangers' names and files: none may drive the terminal, each is one line."""

    def format(self, record: logging.LogRecord) -> str:
        return f"hf-qualcode: {printable_line(super().format(record))}"


def _set_up_streams() -> None:
    # A closed stream (`>&-`) is None; what would have gone there goes nowhere.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine())
    package = logging.getLogger("hf_qualcode")
    package.handlers = [handler]
    package.propagate = False


if __name__ == "__main__":
    sys.exit(main())
