"""``barnabas up`` as a process of a test, and the processes that it runs beside its broker."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

SECONDS_MAX = 60.0


@contextmanager
def up(tmp_path: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and where its broker is."""
    command = [sys.executable, "-m", "barnabas", "up", "--port", "0", "--data-dir", str(tmp_path / "data"), *options]
    errors = (tmp_path / "errors").open("w")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().split()[1]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(SECONDS_MAX)
        process.stdout.close()
        errors.close()


def answers(url: str) -> bool:
    """Whether a GET is answered with 200 in time."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            if httpx.get(url, timeout=5).status_code == 200:
                return True
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    return False


def child_with(parent: int, word: str) -> int:
    """The pid of the child that has this word in its command."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            words = (path.parent / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if int(fields[1]) == parent and word.encode() in words:
            return int(path.parent.name)
    raise AssertionError(f"there is no process {word}")
