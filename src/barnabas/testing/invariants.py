"""What must hold in a replicated cluster at every moment: looked at from outside, over the shoulders of all nodes.

- one leader to a partition's epoch, and one to an epoch of the quorum;
- what one replica holds below its high watermark, every replica holds there, batch for batch;
- whoever leads in the newest epoch has everything that was ever below a high watermark;
- the committed metadata of all nodes is one log.

Nothing is changed by looking. Tests call :meth:`Invariants.check` as often as they can afford.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from barnabas.broker.node import Node
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.replication.partition import Partition
from barnabas.storage.log import PartitionLog
from barnabas.wire.batch import BatchHeader, iterate

SLICE_BYTES: Final = 1 << 20


class BrokenInvariant(AssertionError):
    pass


class Batch(NamedTuple):
    last_offset: int
    leader_epoch: int
    crc: int
    size_bytes: int


class Invariants:
    def __init__(self) -> None:
        self._leaders: dict[tuple[Uuid, int, int], int] = {}  # topic, partition, epoch
        self._quorum_leaders: dict[int, int] = {}  # by epoch
        self._committed: dict[tuple[Uuid, int], dict[int, Batch]] = {}  # by base offset
        self._committed_end: dict[tuple[Uuid, int], int] = {}
        self._checked: dict[tuple[int, PartitionLog], int] = {}  # up to where each life of a replica was compared
        self.batches_compared = 0

    def check(self, nodes: Mapping[int, Node]) -> None:
        started = {number: node for number, node in nodes.items() if hasattr(node, "services")}
        for number, node in sorted(started.items()):
            self._check_quorum(number, node)
            for partition in sorted(node.services.replicas, key=lambda each: each.id):
                self._check_leader(number, partition)
                self._check_committed(number, partition)
        for number, node in sorted(started.items()):
            for partition in node.services.replicas:
                self._check_complete(number, partition)

    def _check_quorum(self, number: int, node: Node) -> None:
        raft = node.services.raft
        if raft.is_leader:
            epoch = raft.leader.epoch
            other = self._quorum_leaders.setdefault(epoch, number)
            if other != number:
                raise BrokenInvariant(f"nodes {other} and {number} both lead the quorum's epoch {epoch}")

    def _check_leader(self, number: int, partition: Partition) -> None:
        if partition.is_leader:
            key = (partition.topic_id, partition.id.partition, partition.leader_epoch)
            other = self._leaders.setdefault(key, number)
            if other != number:
                raise BrokenInvariant(f"{other} and {number} both lead {partition.id} in epoch {key[2]}")

    def _check_committed(self, number: int, partition: Partition) -> None:
        key = (partition.topic_id, partition.id.partition)
        known = self._committed.setdefault(key, {})
        log = partition.log
        offset = max(self._checked.get((number, log), log.log_start_offset), log.log_start_offset)
        for header in headers(log, offset, log.high_watermark):
            batch = Batch(header.last_offset, header.leader_epoch, header.crc, header.size_bytes)
            seen = known.setdefault(header.base_offset, batch)
            self.batches_compared += 1
            if seen != batch:
                raise BrokenInvariant(
                    f"{partition.id} at {header.base_offset}: node {number} has {batch}, but {seen} was committed"
                )
            offset = header.next_offset
        self._checked[number, log] = offset
        self._committed_end[key] = max(self._committed_end.get(key, 0), offset)

    def _check_complete(self, number: int, partition: Partition) -> None:
        key = (partition.topic_id, partition.id.partition)
        if not partition.is_leader or partition.leader_epoch < self._newest_epoch(key):
            return  # a leader that has been deposed may not know it yet
        end = self._committed_end.get(key, 0)
        if partition.log.end_offset < end:
            raise BrokenInvariant(
                f"node {number} leads {partition.id} in epoch {partition.leader_epoch} and ends at "
                f"{partition.log.end_offset}, but {end} was committed"
            )

    def _newest_epoch(self, key: tuple[Uuid, int]) -> int:
        return max((epoch for *place, epoch in self._leaders if tuple(place) == key), default=-1)


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
            batches = [
                Batch(header.last_offset, header.leader_epoch, header.crc, header.size_bytes)
                for header in headers(log, log.log_start_offset, log.high_watermark)
            ]
            other = first.setdefault(partition.id, (number, batches, log.high_watermark))
            if other[1:] != (batches, log.high_watermark):
                found.append(
                    f"{partition.id}: node {other[0]} has {len(other[1])} batches up to {other[2]}, "
                    f"node {number} has {len(batches)} up to {log.high_watermark}"
                )
    return found
