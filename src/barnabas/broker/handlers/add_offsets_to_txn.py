"""AddOffsetsToTxn: the offsets of a group become a part of a transaction.

Versions: 0–4. Before version 2 a fenced producer is told INVALID_PRODUCER_EPOCH. Producers of transactions version 2 do
not send it: TxnOffsetCommit implies it.
Behaviour: the partition of the topic of offsets to which the group belongs is added; its marker settles the commits.
Differs from Kafka: while the markers of the last transaction are being written, a client's request waits for them
(`add.partitions.to.txn.retry.backoff.max.ms`) before it is answered with CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.coordinators.transaction_calls import add_for_client
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.runtime.effects import ProducerIdEpoch
from barnabas.coordinator.runtime.partitioning import partition_of
from barnabas.coordinator.transactions.requests import AddPartitions
from barnabas.model import errors
from barnabas.model.ids import OFFSETS_TOPIC, TopicPartition
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FENCED_SINCE: Final = 2


async def handle(request: Request, message: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    topic = request.broker.image.topics.by_name.get(OFFSETS_TOPIC)
    # Some clients look for the group's coordinator only afterwards, and with that the topic is made.
    count = request.broker.settings.offsets_topic_num_partitions if topic is None else len(topic.partitions)
    partition = TopicPartition(OFFSETS_TOPIC, partition_of(message.group_id, count))
    outcome = await add_for_client(
        request.broker,
        AddPartitions(
            transactional_id=message.transactional_id,
            producer=ProducerIdEpoch(message.producer_id, message.producer_epoch),
            partitions=frozenset({partition}),
            version=0,
        ),
    )
    error = outcome.error
    if request.version < FENCED_SINCE and error is errors.PRODUCER_FENCED:
        error = errors.INVALID_PRODUCER_EPOCH
    return AddOffsetsToTxnResponse(error_code=error.code)


API: Final = Api(
    ApiKey.ADD_OFFSETS_TO_TXN,
    handle,
    at=CLIENT,
    needs=permissions.all_of(permissions.transactional_id(Operation.WRITE), permissions.group(Operation.READ)),
)
