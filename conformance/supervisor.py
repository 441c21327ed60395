"""Several programs under one process: the nodes of a cluster that has no supervisor of its own.

Run as `python -m conformance.supervisor FILE`, where each line of the file is a command as a JSON list. It ends when
one of them ends, and then ends the others; told to stop, it tells them, and waits. Called by `conformance.cluster`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

STOP_SECONDS_MAX = 15.0


def main(path: Path) -> int:
    commands: list[list[str]] = [json.loads(line) for line in path.read_text().splitlines()]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    children: list[subprocess.Popen[bytes]] = []
    try:
        children += [subprocess.Popen(command) for command in commands]
        ended, _ = os.wait()
        number = next(number for number, child in enumerate(children, 1) if child.pid == ended)
        print(f"node {number} has ended", flush=True)
        return 1
    finally:
        _end(children)


def _end(children: list[subprocess.Popen[bytes]]) -> None:
    for child in children:
        child.terminate()
    for child in children:
        try:
            child.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
