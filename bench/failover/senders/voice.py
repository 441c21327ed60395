"""What a sending program says, one line each: ``A partition offset number sent_ns acknowledged_ns``, ``F reason``,
and at the end ``E numbers_sent``. The offset is -1 where the client does not know it.

Times are those of the machine's monotonic clock, which all of its processes share. Whoever started the program closes
its standard input to let it end.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import NamedTuple


class Task(NamedTuple):
    """What the command line asks for."""

    bootstrap_servers: str
    topic: str
    partitions: int
    pause_seconds: float
    request_timeout_ms: int


def task_of(arguments: list[str]) -> Task:
    bootstrap_servers, topic, partitions, pause_ms, request_timeout_ms = arguments
    return Task(bootstrap_servers, topic, int(partitions), int(pause_ms) / 1000, int(request_timeout_ms))


class Voice:
    def __init__(self) -> None:
        self._is_over = threading.Event()
        threading.Thread(target=self._listen, name="listen", daemon=True).start()

    @property
    def is_over(self) -> bool:
        return self._is_over.is_set()

    def _listen(self) -> None:
        sys.stdin.read()
        self._is_over.set()

    def acknowledged(self, partition: int, offset: int | None, number: int, sent_ns: int) -> None:
        sys.stdout.write(f"A {partition} {-1 if offset is None else offset} {number} {sent_ns} {time.monotonic_ns()}\n")
        sys.stdout.flush()

    def failed(self, reason: object) -> None:
        sys.stdout.write(f"F {str(reason)!r}\n")
        sys.stdout.flush()

    def ended(self, sent: int) -> None:
        sys.stdout.write(f"E {sent}\n")
        sys.stdout.flush()
