"""What the sandbox starts: `python -I -S launcher.py CONTROL_FD`; the job and its result travel on that socket.

Kept to a few lines: a script is compiled at each start, while the modules that it imports are compiled once.
"""

import os
import sys


# At the end of the path: nothing here may stand before the standard library.
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120

from isolation.job import main


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
