"""One connection to a cluster for a whole process: a loop in a thread and what is known of the brokers.

Spark makes readers and writers anew for every batch, in processes that live on; what costs time to set up is kept here
between them. A process that was forked starts with nothing of its parent's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from barnabas.client.blocking import LoopThread
from barnabas.client.cluster.cluster import Cluster
from barnabas.client.settings.client import Settings

T = TypeVar("T")

LINKS_MAX: Final = 16  # clusters, or settings, that one process talks to at once
_links: dict[tuple[int, type[Settings], tuple[tuple[str, str], ...]], Link] = {}


class Link:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._thread = LoopThread()
        self.cluster = self._thread.call(lambda: Cluster(settings))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._thread.run(work)

    def call(self, function: Callable[[], T]) -> T:
        return self._thread.call(function)

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Have it done while the caller does something else."""
        import asyncio

        return asyncio.run_coroutine_threadsafe(work, self._thread.loop)

    def close(self) -> None:
        try:
            self._thread.run(self.cluster.close())
        finally:
            self._thread.stop()


def link(kind: type[Settings], values: Mapping[str, str]) -> Link:
    """The process's link with these settings."""
    key = (os.getpid(), kind, tuple(sorted(values.items())))
    found = _links.get(key)
    if found is None:
        mine = [other for other in _links if other[0] == os.getpid()]
        for other in mine[: max(0, len(mine) - LINKS_MAX + 1)]:
            _links.pop(other).close()
        found = _links[key] = Link(kind.of(values))
    return found


def close_all() -> None:
    """For tests: a process that ends takes its links with it anyway."""
    for key in [key for key in _links if key[0] == os.getpid()]:
        _links.pop(key).close()
