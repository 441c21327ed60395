"""Batches of a Produce request that belong to a transaction: which must be admitted first, and whether one still may.

Most do not ask at all: once a partition is a part of the open transaction its log knows. Only the handler of Produce
calls this; the question itself is put by ``admission``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from barnabas.broker.coordinators.admission import Guards, Manner, admit, as_produce_says
from barnabas.broker.requests.services import Services
from barnabas.coordinator.runtime.effects import ProducerIdEpoch
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.replication.partition import Partition
from barnabas.storage.log import PartitionLog
from barnabas.transport.buffers import SCRATCH_BYTES
from barnabas.wire.batch import HEADER_BYTES, TRANSACTIONAL, BatchHeader
from barnabas.wire.messages.produce import ProduceRequest

Place: TypeAlias = tuple[int, int]  # of topic and partition in the request
FindPartition: TypeAlias = Callable[[ProduceRequest.TopicProduceData, int], Partition]

ADD_SINCE: Final = 12
ABORTABLE_SINCE: Final = 11

_ATTRIBUTES_LOW_BYTE: Final = 22
_PRODUCER: Final = struct.Struct(">qh")
_PRODUCER_POSITION: Final = 43


class Unadmitted(NamedTuple):
    """A batch that would open a transaction in its log."""

    place: Place
    partition: Partition
    producer: ProducerIdEpoch


class Admission:
    """What the coordinator said: who is refused, and who may append as long as no marker has come between."""

    def __init__(self, refused: dict[Place, ApiError], guards: Guards | None) -> None:
        self.refused = refused
        self._guards = guards

    def covers(self, log: PartitionLog) -> bool:
        return self._guards is not None and self._guards.hold(log)


NOBODY: Final = Admission({}, None)


def manner_of(version: int) -> Manner:
    if version >= ADD_SINCE:
        return Manner.ADD
    return Manner.VERIFY_ABORTABLE if version >= ABORTABLE_SINCE else Manner.VERIFY


def unadmitted(message: ProduceRequest, find: FindPartition) -> list[Unadmitted]:
    """The batches about which the coordinator must be asked. They are not checked yet: only their headers are read."""
    found = []
    for place, topic in enumerate(message.topic_data):
        for number, data in enumerate(topic.partition_data):
            records = data.records
            if records is None or len(records) < HEADER_BYTES or not records[_ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL:
                continue
            producer = ProducerIdEpoch(*_PRODUCER.unpack_from(records, _PRODUCER_POSITION))
            try:
                partition = find(topic, data.index)
            except ApiError:
                continue  # said again, and told, when it is to be appended
            if not partition.log.producers.has_open_transaction(*producer):
                found.append(Unadmitted((place, number), partition, producer))
    return found


def keep(message: ProduceRequest) -> None:
    """Copy what lies in memory that is used again as soon as the handler waits."""
    for topic in message.topic_data:
        for data in topic.partition_data:
            if data.records is not None and len(data.records) <= SCRATCH_BYTES:
                data.records = bytearray(data.records)


async def ask(broker: Services, transactional_id: str, batches: Iterable[Unadmitted], manner: Manner) -> Admission:
    batches = list(batches)
    producers = {batch.producer for batch in batches}
    if len(producers) != 1:
        error = ApiError(errors.INVALID_PRODUCER_ID_MAPPING, "one request holds batches of several producers")
        return Admission({batch.place: error for batch in batches}, None)
    (producer,) = producers
    guards = Guards(producer.producer_id, [batch.partition.log for batch in batches], manner)
    partitions = frozenset(batch.partition.id for batch in batches)
    answers = await admit(broker, transactional_id, producer, partitions, manner)
    refused = {
        batch.place: as_produce_says(answers[batch.partition.id], manner)
        for batch in batches
        if answers[batch.partition.id] is not errors.NONE
    }
    return Admission(refused, guards)


def check(log: PartitionLog, header: BatchHeader, transactional_id: str | None, admission: Admission) -> None:
    """The last word before the append: ApiError if the batch would open a transaction that nobody ends."""
    if transactional_id is None:
        raise ApiError(
            errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a batch of a transaction comes with a transactional id"
        )
    if log.producers.has_open_transaction(header.producer_id, header.producer_epoch) or admission.covers(log):
        return
    raise ApiError(errors.INVALID_TXN_STATE, "the batch belongs to no open transaction")
