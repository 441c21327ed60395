"""What the programs of the Python clients share: what they are asked, what they write, how they say what is wrong.

Each is called as `python PROGRAM FEATURE BOOTSTRAP TOPIC` and ends with 0 if the feature works; how a client is called
is the business of the programs.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

SECONDS_MAX = 30
CODECS = ("gzip", "snappy", "lz4", "zstd")
VALUES = [b"a", b"b", b"c"]
# Not the same again: those would also come to a group that forgot where it stood.
LATER = [b"d", b"e", b"f"]
FEATURE, BOOTSTRAP, TOPIC = sys.argv[1:]


class Sent(NamedTuple):
    """A record as it is written, and as it must come back."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]
    timestamp_ms: int


FULL = [
    Sent(b"key", b"value", [("h", b"1"), ("h", b"2")], 1_700_000_000_000),
    Sent(None, b"", [], 1_700_000_001_000),
    Sent(b"key", None, [("empty", b"")], 1_700_000_002_000),
]


def expect(wanted: object, found: object) -> None:
    if wanted != found:
        sys.exit(f"expected {wanted!r}, got {found!r}")


def until(is_so: Callable[[], bool]) -> None:
    """For what a cluster agrees on soon: that a topic is gone."""
    deadline = time.monotonic() + SECONDS_MAX
    while not is_so():
        if time.monotonic() > deadline:
            sys.exit("it did not come true in time")
        time.sleep(0.1)


def polled(poll: Callable[[], Sequence[object]], count: int) -> list[object]:
    """As many as are asked for, or those that came in time."""
    found: list[object] = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(found) < count and time.monotonic() < deadline:
        found += poll()
    return found


def run(features: Mapping[str, Callable[[], Awaitable[None] | None]]) -> None:
    if FEATURE not in features:
        sys.exit(f"no {FEATURE}")
    waiting = features[FEATURE]()
    if inspect.iscoroutine(waiting):
        asyncio.run(asyncio.wait_for(waiting, SECONDS_MAX))
