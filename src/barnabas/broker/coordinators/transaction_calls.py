"""Questions to the coordinator of a transactional id from the leaders of partitions, wherever that coordinator is.

A leader asks before it lets a batch into a transaction (see ``admission``). Here the coordinator is found: in this
process, or on the broker that leads its partition, over AddPartitionsToTxn. Nothing is tried twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.broker.requests.services import Services
from barnabas.coordinator.runtime.effects import ProducerIdEpoch
from barnabas.coordinator.runtime.partitioning import partition_of
from barnabas.coordinator.transactions.requests import AddPartitions, Outcome, VerifyPartitions
from barnabas.coordinator.transactions.state import EPOCH_BUMP_SINCE
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed, WireError, error_of
from barnabas.model.ids import TRANSACTIONS_TOPIC, TopicPartition
from barnabas.transport.channel import PeerGone
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

LANE: Final = "transactions"

Said = dict[TopicPartition, WireError]


async def add_partitions(
    broker: Services, transactional_id: str, producer: ProducerIdEpoch, partitions: frozenset[TopicPartition]
) -> Said:
    """Make the partitions a part of the producer's transaction, as version 2 of transactions has leaders do."""
    coordinator = coordinator_of(broker, transactional_id)
    if coordinator != broker.broker_id:
        return await _send(broker, coordinator, transactional_id, producer, sorted(partitions), verify_only=False)
    request = AddPartitions(
        transactional_id=transactional_id, producer=producer, partitions=partitions, version=EPOCH_BUMP_SINCE
    )
    return dict.fromkeys(sorted(partitions), (await broker.transactions.add_partitions(request)).error)


async def add_for_client(broker: Services, request: AddPartitions) -> Outcome:
    """Add partitions for a client of version 1, which sends AddPartitionsToTxn and AddOffsetsToTxn itself.

    While the markers of its last transaction are being written, the broker waits for them as long as it does for
    version 2 before it answers CONCURRENT_TRANSACTIONS.
    """
    settings, clock = broker.settings.transactions, broker.world.clock
    deadline_ms = clock.monotonic_ms() + settings.retry_ms_max
    while True:
        outcome = await broker.transactions.add_partitions(request)
        if outcome.error is not errors.CONCURRENT_TRANSACTIONS or clock.monotonic_ms() >= deadline_ms:
            return outcome
        await broker.transactions.until_ended(request.transactional_id, timeout_ms=settings.retry_ms)


async def verify(
    broker: Services, transactional_id: str, producer: ProducerIdEpoch, partitions: frozenset[TopicPartition]
) -> Said:
    """Whether the producer has made the partitions a part of its transaction."""
    coordinator = coordinator_of(broker, transactional_id)
    if coordinator != broker.broker_id:
        return await _send(broker, coordinator, transactional_id, producer, sorted(partitions), verify_only=True)
    return await broker.transactions.verify(
        VerifyPartitions(transactional_id=transactional_id, producer=producer, partitions=partitions)
    )


def coordinator_of(broker: Services, transactional_id: str) -> int:
    """The broker that keeps the state of an id, as far as this one knows; itself where nobody is known to."""
    topic = broker.image.topics.by_name.get(TRANSACTIONS_TOPIC)
    if topic is None:
        return broker.broker_id
    leader = topic.partitions[partition_of(transactional_id, len(topic.partitions))].leader
    return leader if leader in broker.broker_links else broker.broker_id


async def _send(
    broker: Services,
    coordinator: int,
    transactional_id: str,
    producer: ProducerIdEpoch,
    partitions: Sequence[TopicPartition],
    *,
    verify_only: bool,
) -> Said:
    topics: dict[str, AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = {}
    for name, index in partitions:
        topic = topics.setdefault(name, AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name))
        topic.partitions.append(index)
    transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        verify_only=verify_only,
        topics=list(topics.values()),
    )
    try:
        answer = await broker.broker_links.send(
            coordinator, AddPartitionsToTxnRequest(transactions=[transaction]), lane=LANE
        )
    except (PeerGone, TimeoutError, Malformed, ApiError):
        return dict.fromkeys(partitions, errors.COORDINATOR_NOT_AVAILABLE)
    assert isinstance(answer, AddPartitionsToTxnResponse)
    if answer.error_code:
        return dict.fromkeys(partitions, error_of(answer.error_code))
    said = {
        TopicPartition(topic.name, row.partition_index): error_of(row.partition_error_code)
        for result in answer.results_by_transaction
        for topic in result.topic_results
        for row in topic.results_by_partition
    }
    return {partition: said.get(partition, errors.COORDINATOR_NOT_AVAILABLE) for partition in partitions}
