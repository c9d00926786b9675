"""Speaks the protocol of SonarPy.java without Java: what it does is said by the request. Run by test_process.py."""

import json
import os
import struct
import sys
import time


def answer(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    if "die" in sys.argv:
        sys.exit("no such class: SonarPy")
    answer(json.dumps({"ready": 1, "pid": os.getpid()}))
    served = 0
    while head := sys.stdin.buffer.read(4):
        request = sys.stdin.buffer.read(struct.unpack(">I", head)[0]).decode()
        served += 1
        if request == "hang":
            time.sleep(600)
        elif request == "crash":
            sys.stderr.write("first\nout of memory\n")
            sys.exit(3)
        elif request == "worn":  # dies unless it is fresh
            if served > 1:
                os._exit(1)
            answer('{"findings": []}')
        elif request == "garbage":
            answer("Picked up options: none")
        elif request == "list":
            answer("[1]")
        elif request == "noise":
            sys.stderr.write("x" * 300_000)
            sys.stderr.flush()
            answer('{"findings": []}')
        elif request == "parse":
            answer('{"parse_error": "line 1"}')
        else:
            answer(json.dumps({"findings": [["S1", len(request), "seen"]], "served": served, "pid": os.getpid()}))


main()
