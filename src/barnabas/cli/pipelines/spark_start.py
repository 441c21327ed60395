"""What ``barnabas run`` shows while Spark starts, without the lines that Java and Spark print then.

Java inherits standard error when it starts, and Spark's Python workers write there too. Both get a pipe instead; a
thread copies its lines to the terminal, except for the known ones that say nothing to users. Errors and what the
functions of users print are shown.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

NOISE: Final = re.compile(
    rb"WARNING: Using incubator modules"
    rb"|Setting default log level to "
    rb"|To adjust logging level use sc\.setLogLevel"
    rb"|(Starting )?Streaming TransformWithStateInPandas Python worker"
)
STANDARD_ERROR: Final = 2


@contextmanager
def starting(master: str) -> Iterator[None]:
    """Tell on standard error that Spark starts, and how long it took."""
    began = time.monotonic()
    is_terminal = sys.stderr.isatty()
    stop = threading.Event()
    text = f"starting Spark ({master})"
    ticker = threading.Thread(target=_tick, args=(text, stop), daemon=True)
    if is_terminal:
        ticker.start()
    else:
        print(f"{text} ...", file=sys.stderr, flush=True)
    try:
        with _quiet():
            yield
    finally:
        stop.set()
        if is_terminal:
            ticker.join()
            print(f"\r\033[K{text}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def _tick(text: str, stop: threading.Event) -> None:
    terminal = os.dup(STANDARD_ERROR)  # before the pipe takes its place
    seconds = 0
    while not stop.wait(1.0):
        seconds += 1
        os.write(terminal, f"\r{text} ... {seconds} s".encode())
    os.close(terminal)


@contextmanager
def _quiet() -> Iterator[None]:
    """Give processes that are started within the block a standard error without noise."""
    sys.stderr.flush()
    reading, writing = os.pipe()
    terminal = os.dup(STANDARD_ERROR)
    os.dup2(writing, STANDARD_ERROR)
    os.close(writing)
    threading.Thread(target=copy_without_noise, args=(reading, terminal), daemon=True).start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(terminal, STANDARD_ERROR)


def copy_without_noise(reading: int, terminal: int) -> None:
    """Copy lines from one file descriptor to the other until the end, but not noise and the empty lines after it."""
    with open(reading, "rb") as lines, open(terminal, "wb", buffering=0) as shown:
        is_after_noise = False
        for line in lines:
            is_noise = NOISE.match(line) is not None
            if not is_noise and not (is_after_noise and not line.strip()):
                shown.write(line)
                is_after_noise = False
            elif is_noise:
                is_after_noise = True
