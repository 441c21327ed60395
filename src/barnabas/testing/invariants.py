"""What must hold in a replicated cluster at every moment: looked at from outside, over the shoulders of all nodes.

- One leader to an epoch: of a partition, and of the quorum, there also when it comes back under its old name.
- Logs match: an epoch and an offset name one batch, with one batch before it, wherever it was ever written.
- What lies below any replica's high watermark is committed: whoever comes that far has the same batches there, and
  whoever leads in the newest epoch has all of them.
- The high watermark never goes back, in the form in which Kafka promises it. A replica's own one only grows while its
  process lives: nobody cuts a log below it. A new leader may know less of it than the old one told clients, but by the
  time its own one has reached the end of what it inherited, it has passed everything that was ever told.
- All of it holds for the metadata log of the quorum, too: the committed metadata of all nodes are one log.

Nothing is changed by looking. :meth:`Invariants.look` reads only what was written to one node since it last looked, so
that it may be called after every event on that node; a log is read again from its start when it was cut. Batches of
compacted logs change, so such logs must not be cleaned while this looks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from barnabas.broker.node.node import Node
from barnabas.model.ids import METADATA_TOPIC_ID, TopicPartition, Uuid
from barnabas.storage.log import PartitionLog
from barnabas.wire.batch import BatchHeader, iterate

SLICE_BYTES: Final = 1 << 20
NO_EPOCH: Final = -1

Place = tuple[int, int]  # leader epoch, base offset


class BrokenInvariant(AssertionError):
    pass


class Batch(NamedTuple):
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    size_bytes: int

    @classmethod
    def of(cls, header: BatchHeader) -> Batch:
        return cls(header.base_offset, header.last_offset, header.leader_epoch, header.crc, header.size_bytes)


class Leader(NamedTuple):
    number: int
    life: Node | None = None  # where it makes a difference


class Standing(NamedTuple):
    """Where a replica stands."""

    led_epoch: int  # NO_EPOCH unless it leads
    high_watermark: int
    end_offset: int
    cut_count: int
    inherited_end: int  # where the log ended when it began to lead


@dataclass(slots=True, eq=False)
class Life:
    """One replica while its process lives: how far it has been looked at."""

    number: int
    standing: Standing
    read_offset: int
    last: Batch | None = None  # the one before ``read_offset``, if it was seen
    uncommitted: deque[Batch] = field(default_factory=deque)


@dataclass(slots=True, eq=False)
class History:
    """All that was ever seen of one log, over all of its replicas."""

    name: str
    leaders: dict[int, Leader] = field(default_factory=dict)  # by epoch
    newest_epoch: int = NO_EPOCH
    written: dict[Place, tuple[Batch, Batch | None]] = field(default_factory=dict)  # with the batch before it
    committed: dict[int, Batch] = field(default_factory=dict)  # by base offset
    committed_end: int = 0

    def lead(self, epoch: int, leader: Leader) -> bool:
        """Whether somebody leads whom nobody saw leading."""
        is_new = epoch not in self.leaders
        other = self.leaders.setdefault(epoch, leader)
        if other != leader:
            raise BrokenInvariant(f"nodes {other.number} and {leader.number} both lead {self.name} in epoch {epoch}")
        self.newest_epoch = max(self.newest_epoch, epoch)
        return is_new

    def write(self, number: int, batch: Batch, before: Batch | None) -> None:
        place = (batch.leader_epoch, batch.base_offset)
        known, known_before = self.written.setdefault(place, (batch, before))
        if known != batch or (before is not None and known_before is not None and before != known_before):
            raise BrokenInvariant(
                f"{self.name}: node {number} has {batch} after {before}, but {known} after {known_before} was written"
            )
        if known_before is None:  # a log may have been seen first from its middle on
            self.written[place] = (known, before)

    def commit(self, number: int, batch: Batch) -> None:
        known = self.committed.setdefault(batch.base_offset, batch)
        if known != batch:
            raise BrokenInvariant(f"{self.name}: node {number} has {batch}, but {known} was committed")


class Invariants:
    def __init__(self) -> None:
        self._histories: dict[tuple[Uuid, int], History] = {}
        self._lives: dict[PartitionLog, Life] = {}
        self._seen: dict[PartitionLog, tuple[int, int, int, int]] = {}  # as long as it is so, nothing is to be judged
        self.batches_compared = 0

    def check(self, nodes: Mapping[int, Node]) -> None:
        for number, node in sorted(nodes.items()):
            self.look(number, node)

    def look(self, number: int, node: Node) -> None:
        """Judge what has changed on one node since it was last looked at."""
        services = getattr(node, "services", None)
        if services is None:
            return  # it has not come that far
        seen = self._seen
        raft = services.raft
        log = raft.partition_log
        if log is not None:
            led_epoch = raft.leader.epoch if raft.is_leader else NO_EPOCH
            now = (led_epoch, log.high_watermark, log.end_offset, log.cut_count)
            if seen.get(log) != now:
                seen[log] = now
                # A voter that comes back leads no epoch that it led before.
                leader = Leader(number, node)
                self._judge(number, log, Standing(*now, log.end_offset), (METADATA_TOPIC_ID, 0), leader=leader)
        for partition in services.replicas.by_name.values():
            log = partition.log
            led_epoch = partition.leader_epoch if partition.is_leader else NO_EPOCH
            now = (led_epoch, log.high_watermark, log.end_offset, log.cut_count)
            if seen.get(log) != now:
                seen[log] = now
                key = (partition.topic_id, partition.id.partition)
                self._judge(number, log, Standing(*now, partition.epoch_start_offset), key, leader=Leader(number))

    def _judge(
        self, number: int, log: PartitionLog, standing: Standing, key: tuple[Uuid, int], *, leader: Leader
    ) -> None:
        history = self._histories.setdefault(key, History(str(log.partition)))
        life = self._lives.setdefault(log, Life(number, standing, log.log_start_offset))
        if standing.high_watermark < life.standing.high_watermark:
            raise BrokenInvariant(
                f"the high watermark of {history.name} on node {number} went back from {life.standing.high_watermark} "
                f"to {standing.high_watermark}"
            )
        if standing.cut_count != life.standing.cut_count or life.read_offset < log.log_start_offset:
            life.read_offset, life.last = log.log_start_offset, None
            life.uncommitted.clear()
        life.standing = standing
        self._read(history, life, log)
        if standing.led_epoch != NO_EPOCH:
            _judge_leader(history, life, leader)

    def _read(self, history: History, life: Life, log: PartitionLog) -> None:
        """Every batch is read once when it is written, and compared again when it is committed."""
        for header in headers(log, life.read_offset, life.standing.end_offset):
            batch = Batch.of(header)
            history.write(life.number, batch, life.last)
            life.uncommitted.append(batch)
            life.last = batch
            life.read_offset = header.next_offset
        while life.uncommitted and life.uncommitted[0].last_offset < life.standing.high_watermark:
            history.commit(life.number, life.uncommitted.popleft())
            self.batches_compared += 1
        history.committed_end = max(history.committed_end, life.standing.high_watermark)


def _judge_leader(history: History, life: Life, leader: Leader) -> None:
    standing = life.standing
    is_new = history.lead(standing.led_epoch, leader)
    if standing.led_epoch < history.newest_epoch:
        return  # it has been deposed and may not know it yet
    end = history.committed_end
    who = f"node {life.number} leads {history.name} in epoch {standing.led_epoch}"
    if standing.end_offset < end:
        raise BrokenInvariant(f"{who} and ends at {standing.end_offset}, but {end} was committed")
    if is_new:
        has = {batch.base_offset: batch for batch in life.uncommitted}
        for base_offset, batch in history.committed.items():
            if base_offset >= standing.high_watermark and has.get(base_offset) != batch:
                raise BrokenInvariant(f"{who} and has {has.get(base_offset)}, but {batch} was committed")
    if standing.inherited_end <= standing.high_watermark < end:
        raise BrokenInvariant(f"{who} and tells clients of {standing.high_watermark}, who were told of {end} before")


def headers(log: PartitionLog, start: int, end: int) -> Iterator[BatchHeader]:
    """The batches from an offset up to another, which must both lie between two batches."""
    offset = start
    while offset < end:
        found = log.read(offset, size_bytes_max=SLICE_BYTES, end_offset_max=end, at_least_one=True)
        if found.records is None:
            return
        data = found.records.file.read(found.records.position, found.records.size_bytes)
        before = offset
        for _, header in iterate(data):
            yield header
            offset = header.next_offset
        if offset == before:
            return


def differences(nodes: Mapping[int, Node]) -> list[str]:
    """Where replicas differ below their high watermarks, when all is quiet: nothing, if all is well."""
    found: list[str] = []
    first: dict[TopicPartition, tuple[int, list[Batch], int]] = {}
    for number, node in sorted(nodes.items()):
        for partition in sorted(node.services.replicas, key=lambda each: each.id):
            log = partition.log
            batches = [Batch.of(header) for header in headers(log, log.log_start_offset, log.high_watermark)]
            other = first.setdefault(partition.id, (number, batches, log.high_watermark))
            if other[1:] != (batches, log.high_watermark):
                found.append(
                    f"{partition.id}: node {other[0]} has {len(other[1])} batches up to {other[2]}, "
                    f"node {number} has {len(batches)} up to {log.high_watermark}"
                )
    return found
