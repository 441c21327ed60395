"""The entry of an application in the catalog: topology, partitions, and its named stores with their formats. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from barnabas.streams.catalog.formats import format_of
from barnabas.streams.errors import StreamsError
from barnabas.streams.topology.node import Topology

__all__ = ["Application", "StoreEntry", "entry_of", "store_entries"]

FORMAT = 1


class StoreEntry(msgspec.Struct, frozen=True):
    """A named store: where its changelog is, and how keys and values are read.

    kind: ``key_value``, ``timestamped``, ``window``, ``session`` or ``versioned``.
    topic: the changelog topic, or the topic of a global table.
    key, value: names of formats, see ``formats.py``.
    """

    name: str
    kind: str
    topic: str
    key: str
    value: str
    size_ms: int = 0
    retention_ms: int = 0


class Application(msgspec.Struct, frozen=True):
    """An application as it was started last.

    topology: Kafka's description. partitions: number of partitions of the topics that are read.
    state_partitions: number of partitions of the state in Spark. tasks: number of tasks.
    generation: random name of the checkpoint; a start without a checkpoint makes a new one.
    checkpoint: directory of the checkpoint.
    internal_topics: changelogs and repartition topics, the state topic included.
    is_atomic: what a transaction has is complete by itself; otherwise all transactions of a batch belong together.
    """

    application_id: str
    topology: str
    partitions: dict[str, int]
    state_partitions: int
    tasks: int
    generation: str
    checkpoint: str
    stores: list[StoreEntry]
    internal_topics: list[str]
    is_atomic: bool
    started_ms: int
    execution: str = ""
    format: int = FORMAT

    def store(self, name: str) -> StoreEntry:
        """The entry of a store. Raises StreamsError if the application has no such named store."""
        return entry_of(self.application_id, self.stores, name)

    def encoded(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def decoded(cls, content: bytes) -> Application:
        known: Mapping[str, Any] = msgspec.json.decode(content)
        if known.get("format") != FORMAT:
            raise StreamsError(
                f"application {known.get('application_id')} is described in format {known.get('format')}; this "
                f"release reads format {FORMAT}: use the release that runs the application"
            )
        return msgspec.json.decode(content, type=cls)


def entry_of(application_id: str, stores: list[StoreEntry], name: str) -> StoreEntry:
    for each in stores:
        if each.name == name:
            return each
    known = ", ".join(each.name for each in stores) or "none"
    raise StreamsError(
        f"application {application_id} has no named store {name}; its named stores are: {known}. A store has a name "
        f'if the operator has store="..."'
    )


def store_entries(topology: Topology) -> list[StoreEntry]:
    """The named stores of a topology."""
    return [
        StoreEntry(
            name,
            spec.kind,
            topology.global_stores.get(name) or topology.changelog(name),
            format_of(spec.key),
            format_of(spec.value),
            spec.size_ms,
            spec.retention_ms,
        )
        for name, spec in topology.stores.items()
        if spec.is_named
    ]
