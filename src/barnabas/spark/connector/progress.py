"""What a query leaves at the cluster: how far it has read, for its lag, and where it started, until that is safe.

Spark writes down only where a batch ends. Where the first batch began is therefore kept here, in offsets of a group of
its own, from before the first batch until it is done: else a restart would ask for "latest" again and lose records.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, wait
from typing import Final

from barnabas.client.admin.client import Admin
from barnabas.client.cluster.coordinators import Coordinator, KeyKind
from barnabas.client.group.commits import Commits, GroupMetadata, OffsetAndMetadata
from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.spark.connector.link import Link
from barnabas.spark.connector.markers import TOPIC, ensure_topic
from barnabas.spark.connector.offsets import Offsets, to_json

TELL_SECONDS_MAX: Final = 2.0
NOTE_BYTES_MAX: Final = 4096  # offset.metadata.max.bytes
_NOTES: Final = TopicPartition(TOPIC, 0)

log = logging.getLogger("barnabas.spark")


class StoredOffsets:
    """Offsets of a group that has no members."""

    def __init__(self, link: Link, group: str) -> None:
        self._link = link
        self.group = group
        self._commits = link.call(lambda: Commits(link.cluster, Coordinator(link.cluster, KeyKind.GROUP, group)))

    def load(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        found = self._link.run(self._commits.fetch(self.group, places, is_stable=False))
        return {place: entry for place, entry in found.items() if entry is not None}

    def store(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self.store_soon(offsets).result()

    def store_soon(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Future[None]:
        return self._link.start(self._commits.commit(GroupMetadata(self.group), offsets, timeout_ms=None))

    def delete_soon(self) -> None:
        admin = self._link.call(lambda: Admin(cluster=self._link.cluster))
        self._link.start(admin.delete_groups([self.group]))


class Progress:
    """How far the query has come, told to its group while it goes on. That never fails a query."""

    def __init__(self, link: Link, group: str) -> None:
        self._stored = StoredOffsets(link, group)
        self._told: Offsets = {}
        self._telling: Future[None] | None = None
        self._has_failed = False

    def tell(self, offsets: Offsets) -> None:
        if self._telling is not None and not self._telling.done():
            return
        self._look()
        if offsets == self._told:
            return
        entries = {place: OffsetAndMetadata(offset) for place, offset in offsets.items()}
        self._telling = self._stored.store_soon(entries)
        self._told = dict(offsets)

    def settle(self) -> None:
        """Wait a little for what was told: a query that takes what there is and ends would be gone before it."""
        if self._telling is not None:
            wait([self._telling], timeout=TELL_SECONDS_MAX)

    def _look(self) -> None:
        telling, self._telling = self._telling, None
        error = None if telling is None or telling.cancelled() else telling.exception()
        if isinstance(error, BarnabasError):
            self._told = {}
            if not self._has_failed:
                log.warning("group %s does not follow the query: %s", self._stored.group, error)
            self._has_failed = True
        elif error is not None:
            raise error


class TopicIds:
    """Which topics the query has read, by their ids: one of the same name that was made later has other records.

    The cluster forgets a group's offsets of a topic with the topic, so this is kept as the note on an offset of another
    one. Without the right to do so the query runs all the same, and notices less.
    """

    def __init__(self, link: Link, group: str, what: str) -> None:
        self._link = link
        self._stored = StoredOffsets(link, f"{named(group, what)}.topics")
        self._told: dict[str, str] = {}

    def load(self) -> dict[str, str]:
        entry = self._stored.load([_NOTES]).get(_NOTES)
        self._told = json.loads(entry.metadata) if entry is not None else {}
        return dict(self._told)

    def store(self, ids: Mapping[str, str]) -> None:
        if ids == self._told:
            return
        self._told = dict(ids)
        note = json.dumps(self._told, separators=(",", ":"))
        try:
            if len(note.encode()) > NOTE_BYTES_MAX:
                raise ApiError(errors.OFFSET_METADATA_TOO_LARGE, f"{len(ids)} topics are too many to keep the ids of")
            self._link.run(ensure_topic(self._link.cluster))
            self._stored.store({_NOTES: OffsetAndMetadata(0, note)})
        except ApiError as error:
            log.warning("a topic that is deleted and made again while the query is down is not noticed: %s", error)


def named(group: str, what: str) -> str:
    """The name for what one source keeps: ``what`` it reads tells apart the sources of one group."""
    return f"{group}.{hashlib.sha256(what.encode()).hexdigest()[:8]}"


class FirstBatch:
    """Where the query started, durable from the first look until its first batch is done.

    Before there is a batch the start is kept under the query's own group; a batch that is about to be written down
    is kept under its end, which is all that Spark remembers of it.
    """

    def __init__(self, link: Link, group: str, what: str) -> None:
        self._link = link
        self._group = named(group, what)
        self._waiting = StoredOffsets(link, f"{self._group}.start")
        self._begun: StoredOffsets | None = None

    def start(self, places: Iterable[TopicPartition]) -> Offsets:
        """Where an earlier start of this query, which has not had a batch, was to begin."""
        return {place: entry.offset for place, entry in self._waiting.load(places).items()}

    def keep_start(self, start: Offsets) -> None:
        self._waiting.store({place: OffsetAndMetadata(offset) for place, offset in start.items()})

    def keep_batch(self, start: Offsets, end: Offsets) -> None:
        """Before Spark writes down the first batch's end."""
        self._begun = self._batch(end)
        self._begun.store({place: OffsetAndMetadata(offset) for place, offset in start.items()})

    def start_of(self, end: Offsets) -> Offsets:
        """Where the first batch with this end began, if an earlier run has planned it."""
        self._begun = self._batch(end)
        return {place: entry.offset for place, entry in self._begun.load(end).items()}

    def is_written_down(self) -> None:
        self._waiting.delete_soon()

    def is_done(self) -> None:
        if self._begun is not None:
            self._begun.delete_soon()
            self._begun = None

    def _batch(self, end: Offsets) -> StoredOffsets:
        digest = hashlib.sha256(json.dumps(to_json(end)).encode()).hexdigest()
        return StoredOffsets(self._link, f"{self._group}.first-{digest[:12]}")
