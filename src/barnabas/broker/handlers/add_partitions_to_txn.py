"""AddPartitionsToTxn: partitions become a part of a transaction, which begins with the first of them.

Versions: 0–5. Up to 3 a producer of transactions version 1 sends it; from 4 on other brokers do, for several
transactions at once, and may merely ask whether partitions are a part of one. Before version 2 a fenced producer is
told INVALID_PRODUCER_EPOCH.
Behaviour: one partition that does not exist, or that clients may not write to, fails the whole transaction; the others
of it are then answered with OPERATION_NOT_ATTEMPTED.
Differs from Kafka: while the markers of the last transaction are being written, a client's request waits for them
(`add.partitions.to.txn.retry.backoff.max.ms`) before it is answered with CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from barnabas.broker.access import permissions
from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.coordinators.transaction_calls import add_for_client
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.coordinator.runtime.effects import ProducerIdEpoch
from barnabas.coordinator.transactions.requests import AddPartitions, VerifyPartitions
from barnabas.coordinator.transactions.state import EPOCH_BUMP_SINCE
from barnabas.metadata.topic_names import is_internal
from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import TopicPartition
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

Transaction: TypeAlias = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
TopicResult: TypeAlias = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult

BROKERS_SINCE: Final = 4
FENCED_SINCE: Final = 2


async def handle(request: Request, message: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    if request.version < BROKERS_SINCE:
        transaction = Transaction(
            transactional_id=message.v3_and_below_transactional_id,
            producer_id=message.v3_and_below_producer_id,
            producer_epoch=message.v3_and_below_producer_epoch,
            topics=message.v3_and_below_topics,
        )
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await _add(request, transaction))
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResponse.AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=await _add(request, transaction)
            )
            for transaction in message.transactions
        ]
    )


async def _add(request: Request, transaction: Transaction) -> list[TopicResult]:
    wanted = [TopicPartition(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    wrong = {partition: error for partition in wanted if (error := _problem(request, partition)) is not errors.NONE}
    if wrong:
        found = {partition: wrong.get(partition, errors.OPERATION_NOT_ATTEMPTED) for partition in wanted}
    else:
        found = await _ask(request, transaction, frozenset(wanted))
    return [
        TopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=found[TopicPartition(topic.name, index)].code
                )
                for index in topic.partitions
            ],
        )
        for topic in transaction.topics
    ]


def _problem(request: Request, partition: TopicPartition) -> WireError:
    if request.version < BROKERS_SINCE and is_internal(partition.topic):
        return errors.TOPIC_AUTHORIZATION_FAILED
    topic = request.broker.image.topics.by_name.get(partition.topic)
    if topic is None or not 0 <= partition.partition < len(topic.partitions):
        return errors.UNKNOWN_TOPIC_OR_PARTITION
    return errors.NONE


async def _ask(
    request: Request, transaction: Transaction, partitions: frozenset[TopicPartition]
) -> dict[TopicPartition, WireError]:
    producer = ProducerIdEpoch(transaction.producer_id, transaction.producer_epoch)
    if transaction.verify_only:
        return await request.broker.transactions.verify(
            VerifyPartitions(transactional_id=transaction.transactional_id, producer=producer, partitions=partitions)
        )
    addition = AddPartitions(
        transactional_id=transaction.transactional_id,
        producer=producer,
        partitions=partitions,
        # A broker that adds for a producer does so because the producer speaks version 2.
        version=EPOCH_BUMP_SINCE if request.version >= BROKERS_SINCE else 0,
    )
    if request.version < BROKERS_SINCE:
        error = (await add_for_client(request.broker, addition)).error
    else:
        # The broker that sent it waits by itself, and other transactions share its connection.
        error = (await request.broker.transactions.add_partitions(addition)).error
    if request.version < FENCED_SINCE and error is errors.PRODUCER_FENCED:
        error = errors.INVALID_PRODUCER_EPOCH
    return dict.fromkeys(sorted(partitions), error)


def _needs(request: GuardedRequest, message: AddPartitionsToTxnRequest) -> Message | None:
    """WRITE on the transactional id and on each topic; CLUSTER_ACTION for the versions that brokers send."""
    if request.version >= BROKERS_SINCE:
        request.require_cluster(Operation.CLUSTER_ACTION)
        return None
    transactional_id = message.v3_and_below_transactional_id
    whole = permissions.denial(request, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    wrong = {
        topic.name: whole or permissions.denial(request, Operation.WRITE, ResourceType.TOPIC, topic.name)
        for topic in message.v3_and_below_topics
    }
    if not any(wrong.values()):
        return None
    # One topic without permission fails all of them, as one that does not exist does.
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            TopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                        partition_index=index,
                        partition_error_code=(wrong[topic.name] or errors.OPERATION_NOT_ATTEMPTED).code,
                    )
                    for index in topic.partitions
                ],
            )
            for topic in message.v3_and_below_topics
        ]
    )


API: Final = Api(
    ApiKey.ADD_PARTITIONS_TO_TXN,
    handle,
    at=CLIENT,
    portions=(
        Portions("transactions.topics.partitions", "results_by_transaction.topic_results.results_by_partition"),
        Portions("v3_and_below_topics.partitions", "results_by_topic_v3_and_below.results_by_partition"),
    ),
    needs=_needs,
)
