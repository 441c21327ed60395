"""The part of a consumer that deals with its group's stored offsets: commit, committed, and what the ends are.

Positions live in the consumer itself; requests are those of ``commits.py`` and ``offsets.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.coordinators import Coordinator, KeyKind
from barnabas.client.errors import CommitFailed, NoGroup
from barnabas.client.group.commits import Commits, GroupMetadata, OffsetAndMetadata, check_storable
from barnabas.client.group.consumer_group import Group
from barnabas.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ListedOffset, list_offsets
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import NO_OFFSET, TopicPartition
from barnabas.transport.lane import retrieved

_MOVED_ON = frozenset({errors.ILLEGAL_GENERATION, errors.UNKNOWN_MEMBER_ID, errors.REBALANCE_IN_PROGRESS})


class StoredOffsets:
    settings: ConsumerSettings
    cluster: Cluster
    _group: Group | None
    _alone: Commits | None = None  # for a consumer that assigns by hand and stores all the same

    @property
    def assignment(self) -> list[TopicPartition]:
        raise NotImplementedError

    def position(self, partition: TopicPartition) -> int:
        raise NotImplementedError

    def epoch_before(self, partition: TopicPartition, offset: int) -> int:
        raise NotImplementedError

    @property
    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The positions of all partitions that have one, as they are committed: with the leader epoch before them."""
        offsets = {place: self.position(place) for place in self.assignment}
        return self._with_epochs({place: offset for place, offset in offsets.items() if offset != NO_OFFSET})

    def _with_epochs(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        check_storable(offsets)
        return {
            place: entry
            if isinstance(entry, OffsetAndMetadata)
            else OffsetAndMetadata(entry, leader_epoch=self.epoch_before(place, entry))
            for place, entry in offsets.items()
        }

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Store these offsets, or the positions of all partitions, and wait until that is done."""
        entries = self.positions if offsets is None else self._with_epochs(offsets)
        try:
            if self._group is not None:
                await self._group.commit(entries, timeout_ms=timeout_ms)
            else:
                await self._commits().commit(self.group_metadata, entries, timeout_ms=timeout_ms)
        except ApiError as error:
            if error.error in _MOVED_ON:
                raise CommitFailed(f"the group has moved on; poll, and go on from there ({error})") from error
            raise

    def commit_soon(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None
    ) -> asyncio.Task[None]:
        """Start to store positions as they are now; await what this answers to learn how it went, or do not."""
        entries = self.positions if offsets is None else self._with_epochs(offsets)
        task = asyncio.get_running_loop().create_task(self.commit(entries), name="commit")
        task.add_done_callback(retrieved)
        return task

    async def committed(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has stored for these partitions, or for those assigned; None where it has nothing."""
        wanted = self.assignment if partitions is None else list(partitions)
        return await self._commits().fetch(self._group_id(), wanted)

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self._edges(partitions, EARLIEST_TIMESTAMP)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self._edges(partitions, LATEST_TIMESTAMP)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset | None]:
        """The first record that is not older than each time; None where there is none."""
        listed = await list_offsets(self.cluster, timestamps, isolation_level=self.settings.isolation_level)
        return {place: None if entry.offset == NO_OFFSET else entry for place, entry in listed.items()}

    @property
    def group_metadata(self) -> GroupMetadata:
        """Who commits, for a transaction that stores offsets."""
        return self._group.session.member if self._group is not None else GroupMetadata(self._group_id())

    async def _edges(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        wanted = dict.fromkeys(partitions, timestamp)
        listed = await list_offsets(self.cluster, wanted, isolation_level=self.settings.isolation_level)
        return {place: entry.offset for place, entry in listed.items()}

    def _commits(self) -> Commits:
        if self._group is not None:
            return self._group.commits
        if self._alone is None:
            self._alone = Commits(self.cluster, Coordinator(self.cluster, KeyKind.GROUP, self._group_id()))
        return self._alone

    def _group_id(self) -> str:
        if not self.settings.group_id:
            raise NoGroup("stored offsets need group.id: it is the group that keeps them")
        return self.settings.group_id
