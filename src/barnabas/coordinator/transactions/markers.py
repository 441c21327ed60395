"""The markers that end a transaction in its partitions: what they are, and who writes those of the partitions here.

A marker is a control batch of one record. In a partition of group offsets it also settles the offsets that were
committed in the transaction, so there it goes through the group coordinator. When to write markers, and how often to
try, is the business of ``marker_delivery``; WriteTxnMarkers brings those of coordinators on other brokers.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, Protocol

from barnabas.coordinator.runtime.effects import ProducerIdEpoch
from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError
from barnabas.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from barnabas.replication.replicas import Replicas
from barnabas.storage.transactions import ABORT, COMMIT
from barnabas.storage.validate import Origin, Rules, validate
from barnabas.wire.records import encode_batch
from barnabas.world.clock import Clock
from barnabas.world.disk import DiskFailure

MARKER_VERSION: Final = 0
_KEY: Final = struct.Struct(">hh")  # version, type
_VALUE: Final = struct.Struct(">hi")  # version, coordinator epoch

AppendMarker = Callable[[int, bytearray, int], Awaitable[None]]  # partition, batch, version of the transaction


class Marker(NamedTuple):
    """The same for every partition of a transaction."""

    producer: ProducerIdEpoch
    is_commit: bool
    coordinator_epoch: int
    version: int

    def encode(self, now_ms: int) -> bytearray:
        key = _KEY.pack(MARKER_VERSION, COMMIT if self.is_commit else ABORT)
        value = _VALUE.pack(MARKER_VERSION, self.coordinator_epoch)
        return encode_batch(
            [(now_ms, key, value, ())],
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            is_transactional=True,
            is_control=True,
        )


class MarkerSender(Protocol):
    """Brings a marker to partitions, wherever they are led, and says what became of each."""

    async def send(self, marker: Marker, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, WireError]: ...


class LocalMarkers:
    """Markers in the partitions that this broker leads."""

    def __init__(self, replicas: Replicas, clock: Clock, append_to_offsets: AppendMarker) -> None:
        self._replicas = replicas
        self._clock = clock
        self._append_to_offsets = append_to_offsets

    async def send(self, marker: Marker, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, WireError]:
        # Together: each waits for its replicas.
        said = await asyncio.gather(*(self.write(marker, partition) for partition in partitions))
        return dict(zip(partitions, said, strict=True))

    async def write(self, marker: Marker, partition: TopicPartition) -> WireError:
        """Return when the marker counts: NONE, or why there is none."""
        try:
            if partition.topic == OFFSETS_TOPIC:
                self._check_known(partition)
                batch = marker.encode(self._clock.wall_ms())
                await self._append_to_offsets(partition.partition, batch, marker.version)
            else:
                await self._append(marker, partition)
        except ApiError as error:
            return error.error
        except DiskFailure:
            return errors.KAFKA_STORAGE_ERROR
        return errors.NONE

    def _check_known(self, partition: TopicPartition) -> None:
        """A partition is gone only if the picture that says so is the one that has transactions."""
        topics = self._replicas.image.topics.by_name
        topic = topics.get(partition.topic)
        if topic is not None and partition.partition < len(topic.partitions):
            return
        if TRANSACTIONS_TOPIC not in topics:
            raise ApiError(errors.NOT_LEADER_OR_FOLLOWER, "this broker does not know the cluster yet")
        raise ApiError(errors.UNKNOWN_TOPIC_OR_PARTITION)

    async def _append(self, marker: Marker, key: TopicPartition) -> None:
        self._check_known(key)
        partition = self._replicas.leader(key.topic, key.partition)
        now_ms = self._clock.wall_ms()
        rules = Rules.of(partition.log.settings, origin=Origin.COORDINATOR)
        validated = validate(marker.encode(now_ms), rules, now_ms=now_ms)
        appended = partition.append(
            validated, is_waiting_for_all=True, now_ms=now_ms, transaction_version=marker.version
        )
        if not await partition.acknowledged(appended.last_offset):
            raise ApiError(errors.NOT_LEADER_OR_FOLLOWER)
