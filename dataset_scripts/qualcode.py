"""Builds QualCode: `python dataset_scripts/qualcode.py CODENET --out DIR --smells sonar`; see `--help`."""

import sys

from hf_qualcode.cli.main import main


if __name__ == "__main__":
    sys.exit(main(["dataset", "build", "qualcode", *sys.argv[1:]]))
