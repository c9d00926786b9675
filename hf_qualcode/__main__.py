"""`python -m hf_qualcode`: the same as the command `hf-qualcode`."""

import sys

from hf_qualcode.cli.main import main


sys.exit(main())
