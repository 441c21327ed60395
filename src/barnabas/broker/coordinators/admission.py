"""May this write be a part of that transaction? Asked by a leader before it takes what a transactional producer sends.

In version 2 of transactions the leader itself makes the partition a part of the transaction; in version 1 the
producer has done so and the leader asks whether that is true. Either way nothing that comes late can open a
transaction in a log that nobody would ever end. Produce and TxnOffsetCommit ask here; the coordinator answers.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Final

from barnabas.broker.coordinators import transaction_calls
from barnabas.broker.requests.services import Services
from barnabas.coordinator.runtime.effects import ProducerIdEpoch
from barnabas.coordinator.transactions.state import EPOCH_BUMP_SINCE
from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError
from barnabas.model.ids import TopicPartition
from barnabas.storage.log import PartitionLog

_PASSING: Final = (errors.COORDINATOR_LOAD_IN_PROGRESS, errors.COORDINATOR_NOT_AVAILABLE, errors.NOT_COORDINATOR)


class Manner(enum.Enum):
    """How much the producer that asks knows of version 2."""

    VERIFY = enum.auto()  # nothing: it is told what it may know from before
    VERIFY_ABORTABLE = enum.auto()  # it knows that a transaction can be lost without the producer
    ADD = enum.auto()  # everything

    @property
    def version(self) -> int:
        return EPOCH_BUMP_SINCE if self is Manner.ADD else 0


class Guards:
    """How often a producer's transactions had ended in some logs before the coordinator was asked about it.

    A marker that arrives between the question and the append ends the transaction of which the coordinator spoke; in
    version 1 the epoch does not tell. In version 2 it does: a marker raises it, and the log refuses what is older. And
    there a marker may well arrive meanwhile: that of the transaction before, while this one waits for its end.
    """

    def __init__(self, producer_id: int, logs: Iterable[PartitionLog], manner: Manner) -> None:
        self._producer_id = producer_id
        self._has_telling_epoch = manner is Manner.ADD
        # A log that moves to another directory hands its producers on.
        self._counts = [(log.producers, log.producers.ended_count(producer_id)) for log in logs]

    def hold(self, log: PartitionLog) -> bool:
        """Whether this log was asked about, and its answer still holds as far as the log itself cannot tell."""
        for each, count in self._counts:
            if each is log.producers:
                return self._has_telling_epoch or log.producers.ended_count(self._producer_id) == count
        return False


async def admit(
    broker: Services,
    transactional_id: str,
    producer: ProducerIdEpoch,
    partitions: frozenset[TopicPartition],
    manner: Manner,
) -> dict[TopicPartition, WireError]:
    """What the coordinator says of each partition, in words that the producer understands."""
    if manner is Manner.ADD:
        found = await _add(broker, transactional_id, producer, partitions)
    elif broker.settings.transactions.is_verifying:
        found = await transaction_calls.verify(broker, transactional_id, producer, partitions)
    else:
        return dict.fromkeys(sorted(partitions), errors.NONE)
    return {partition: _as_producers_say(error, manner) for partition, error in found.items()}


async def _add(
    broker: Services, transactional_id: str, producer: ProducerIdEpoch, partitions: frozenset[TopicPartition]
) -> dict[TopicPartition, WireError]:
    """Make the partitions a part of the transaction; while the one before is being ended, a little patience helps."""
    settings = broker.settings.transactions
    clock = broker.world.clock
    deadline_ms = clock.monotonic_ms() + settings.retry_ms_max
    while True:
        said = await transaction_calls.add_partitions(broker, transactional_id, producer, partitions)
        if errors.CONCURRENT_TRANSACTIONS not in said.values() or clock.monotonic_ms() >= deadline_ms:
            return said
        await broker.transactions.until_ended(transactional_id, timeout_ms=settings.retry_ms)


def _as_producers_say(error: WireError, manner: Manner) -> WireError:
    if error is errors.PRODUCER_FENCED:
        return errors.INVALID_PRODUCER_EPOCH
    if error is errors.TRANSACTION_ABORTABLE and manner is Manner.VERIFY:
        return errors.INVALID_TXN_STATE
    return error


def as_produce_says(error: WireError, manner: Manner) -> ApiError:
    """As an answer to Produce: what will pass is an error that every producer knows how to repeat."""
    if error in _PASSING or (error is errors.CONCURRENT_TRANSACTIONS and manner is not Manner.ADD):
        return ApiError(errors.NOT_ENOUGH_REPLICAS, f"the transaction could not be verified: {error.name}")
    if error is errors.INVALID_TXN_STATE:
        return ApiError(error, "the partition is not a part of the transaction")
    return ApiError(error)
