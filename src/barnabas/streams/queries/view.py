"""A named store of an application for programs without async: ``app.store("counts").get("a")``.

The same calls as :class:`~barnabas.streams.queries.reader.StoreReader`; each waits for its answer.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from barnabas.client.blocking.loop import LoopThread
from barnabas.client.cluster.cluster import Cluster
from barnabas.client.serdes.serde import Place
from barnabas.client.settings.client import Settings
from barnabas.streams.catalog.application import StoreEntry, entry_of, store_entries
from barnabas.streams.catalog.formats import codec_named
from barnabas.streams.catalog.topic import required
from barnabas.streams.queries.answers import Answer, Answers, StoreRow, Version
from barnabas.streams.queries.reader import STORE_BYTES_MAX, StoreReader
from barnabas.streams.serdes import codec_of
from barnabas.streams.topology.node import Topology

__all__ = ["StoreView", "reader_of", "stored_reader"]


class StoreView:
    """A store that is read over the network; close it, or use it in a ``with`` block."""

    def __init__(self, topology: Topology, name: str, settings: Settings, bytes_max: int = STORE_BYTES_MAX) -> None:
        entry_of(topology.application_id, store_entries(topology), name)  # raises before anything is opened
        self._thread = LoopThread()
        self._cluster = self._thread.call(lambda: Cluster(settings))
        self._reader = self._thread.call(lambda: reader_of(self._cluster, topology, name, bytes_max=bytes_max))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get(self, key: Any, *, at: int | None = None, partition: int | None = None) -> Answer:
        """Return the value of a key, with the position it is true for; ``at`` is a time, for a versioned store."""
        return self._thread.run(self._reader.get(key, at=at, partition=partition))

    def fetch(
        self, key: Any, first: int | None = None, last: int | None = None, *, partition: int | None = None
    ) -> Answers[StoreRow]:
        """Return the windows or sessions of a key that start in a range of times, in milliseconds."""
        return self._thread.run(self._reader.fetch(key, first, last, partition=partition))

    def versions(
        self, key: Any, first: int | None = None, last: int | None = None, *, partition: int | None = None
    ) -> Answers[Version]:
        """Return the versions of a key that were valid at some time in a range."""
        return self._thread.run(self._reader.versions(key, first, last, partition=partition))

    def range(
        self,
        first: Any = None,
        last: Any = None,
        *,
        limit: int | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> Answers[StoreRow]:
        """Return the rows of a range of keys, both included; ``start`` and ``end`` are a range of window starts."""
        return self._thread.run(self._reader.range(first, last, limit=limit, start=start, end=end))

    def all(self, *, limit: int | None = None) -> Answers[StoreRow]:
        """Return all rows."""
        return self._thread.run(self._reader.all(limit=limit))

    def close(self) -> None:
        """Close the connections."""
        try:
            self._thread.run(self._cluster.close())
        finally:
            self._thread.stop()


def reader_of(cluster: Cluster, topology: Topology, name: str, *, bytes_max: int = STORE_BYTES_MAX) -> StoreReader:
    """The reader of a store of a topology, with the serdes of the application.

    Raises StreamsError if the application has no such named store.
    """
    entry = entry_of(topology.application_id, store_entries(topology), name)
    spec = topology.stores[name]
    key, value = codec_of(spec.key, Place(entry.topic, is_key=True)), codec_of(spec.value, Place(entry.topic))
    return StoreReader(cluster, entry, key=key, value=value, bytes_max=bytes_max)


async def stored_reader(
    cluster: Cluster, application_id: str, name: str, *, bytes_max: int = STORE_BYTES_MAX
) -> StoreReader:
    """The reader of a store of an application that the cluster knows, without the application's code.

    Raises StreamsError if the cluster knows no such application or store.
    """
    return reader_of_entry(cluster, (await required(cluster, application_id)).store(name), bytes_max)


def reader_of_entry(cluster: Cluster, entry: StoreEntry, bytes_max: int = STORE_BYTES_MAX) -> StoreReader:
    key, value = codec_named(entry.key), codec_named(entry.value)
    return StoreReader(cluster, entry, key=key, value=value, bytes_max=bytes_max)
