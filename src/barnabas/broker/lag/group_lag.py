"""How far groups are behind: in records, and in time.

In records it is where reading ends less what is committed. In time it is the newest record's timestamp less that of the
first record that the group has not read, as ``barnabas group describe`` has it; beside it stands how long that record
has been waiting. The time of a record never changes, so it is looked up once, and few times in one asking. What this
broker has no log of, ``far_lag`` asks others about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.broker.lag.remote_lag import Committed, FarLags, Hosted
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.coordinator.runtime.runtime import CoordinatorRuntime
from barnabas.model.errors import CorruptBatch
from barnabas.model.ids import NO_TIMESTAMP
from barnabas.storage.log import PartitionLog
from barnabas.storage.timestamps import newest_timestamp, time_of_record
from barnabas.transport.links import Links
from barnabas.world.clock import Clock
from barnabas.world.disk import DiskFailure, FileClosed
from barnabas.world.timers import Timers

ROWS_MAX: Final = 50_000  # partitions of groups that one asking tells of
LOOK_UPS_MAX: Final = 2_000  # times of records that one asking reads from the logs

Times = dict[tuple[PartitionLog, int], int]  # of the first record from an offset on


class Lag(NamedTuple):
    """One partition of one group. What cannot be told is None: nobody has said it yet, or its turn is another time."""

    group_id: str
    topic: str
    partition: int
    committed: int
    records: int | None
    behind_ms: int | None
    waiting_ms: int | None


class GroupLags:
    def __init__(
        self, runtime: CoordinatorRuntime, *, replicas: Hosted, links: Links, clock: Clock, timers: Timers
    ) -> None:
        self._runtime = runtime
        self._replicas = replicas
        self._clock = clock
        self._far = FarLags(self._committed, replicas=replicas, links=links, clock=clock, timers=timers)
        self._times: Times = {}  # those of the last asking
        self.left_out = 0  # how many partitions the last asking did not tell of

    async def stop(self) -> None:
        await self._far.stop()

    def members(self) -> Iterator[tuple[str, int]]:
        """Each group whose coordinator is here, and how many members it has."""
        for shard in self._shards():
            for group_id in sorted(shard.groups):
                group = shard.groups.get(group_id)
                if group is not None:
                    yield group_id, len(group.members)

    def states(self) -> Counter[str]:
        """How many groups whose coordinator is here are in which state, by Kafka's words."""
        return Counter(group.state_name for shard in self._shards() for group in shard.groups.values())

    def rows(self) -> Iterator[Lag]:
        """Everything that the groups here have committed; others may be served between one row and the next."""
        left_out = told = 0
        look_ups = _LookUps(self._times)
        now_ms = self._clock.wall_ms()
        for committed in self._committed():
            if told >= ROWS_MAX:
                left_out += 1
                continue
            told += 1
            yield self._row(committed, now_ms, look_ups)
        self._times = look_ups.found
        self.left_out = left_out + self._far.left_out

    def _committed(self) -> Iterator[Committed]:
        for shard in self._shards():
            for group_id in sorted(shard.groups):
                for topic, partitions in sorted(shard.offsets.of_group(group_id).items()):
                    for index in sorted(partitions):
                        committed = shard.offsets.get(group_id, topic, index)
                        if committed is not None:
                            yield Committed(group_id, topic, index, committed.offset)

    def _shards(self) -> Iterator[GroupShard]:
        for index in self._runtime.active:
            if index in self._runtime.active:
                shard = self._runtime.shard(index)
                assert isinstance(shard, GroupShard)
                yield shard

    def _row(self, committed: Committed, now_ms: int, look_ups: _LookUps) -> Lag:
        partition = self._replicas.by_name.get((committed.topic, committed.partition))
        if partition is None:
            self._far.look()
            far = self._far.of(committed)
            if far is None:
                return Lag(*committed, None, None, None)
            return _lag(committed, far.records, far.unread_ms, far.newest_ms, now_ms)
        log = partition.log
        records = max(log.high_watermark - committed.offset, 0)
        if not records:
            return Lag(*committed, 0, 0, 0)
        unread_ms = look_ups.time_of(log, max(committed.offset, log.log_start_offset))
        newest_ms = newest_timestamp(log.segments.from_offset(log.log_start_offset))
        return _lag(committed, records, unread_ms, newest_ms, now_ms)


def _lag(committed: Committed, records: int, unread_ms: int | None, newest_ms: int, now_ms: int) -> Lag:
    if unread_ms is None:
        return Lag(*committed, records, None, None)
    if unread_ms == NO_TIMESTAMP:
        return Lag(*committed, records, 0, 0)
    return Lag(*committed, records, max(newest_ms - unread_ms, 0), max(now_ms - unread_ms, 0))


class _LookUps:
    """The times that one asking needs: those of the last one where nothing has moved, and a few from the logs."""

    def __init__(self, known: Times) -> None:
        self._known = known
        self._left = LOOK_UPS_MAX
        self.found: Times = {}

    def time_of(self, log: PartitionLog, offset: int) -> int | None:
        """The time of the first record from an offset on, −1 if there is none; None if that was not looked up."""
        key = (log, offset)
        found = self.found.get(key)
        if found is None:
            found = self._known.get(key)
        if found is None:
            if not self._left:
                return None
            self._left -= 1
            try:
                found = time_of_record(log.segments.from_offset(offset), offset)
            except (CorruptBatch, DiskFailure, FileClosed):
                return None
            if found is None:
                return NO_TIMESTAMP  # only ends of transactions are left, or nothing is; that may change
        self.found[key] = found
        return found
