"""TxnOffsetCommit: a producer stores a group's offsets as a part of its transaction.

Versions: 0–5. From version 5 on the coordinator of the group makes its partition a part of the transaction itself;
before that it asks whether the producer has done so. Before version 2 COORDINATOR_LOAD_IN_PROGRESS is not known.
Behaviour: the offsets count once the transaction is committed; until then readers that ask for stable ones wait.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.coordinators.admission import Guards, Manner, admit
from barnabas.broker.handlers.topic_order import TopicOrder
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import ATOMIC_ROWS_MIN, Portions
from barnabas.broker.requests.request import Request
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.coordinator.runtime.effects import ProducerIdEpoch
from barnabas.metadata.image import ClusterImage
from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError
from barnabas.model.ids import OFFSETS_TOPIC, TopicPartition
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

ADD_SINCE: Final = 5
ABORTABLE_SINCE: Final = 4
LOADING_SINCE: Final = 2

RequestTopic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
ResponseTopic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic


async def handle(request: Request, message: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    order = TopicOrder(message.topics)
    known, refused = _sorted_out(request.broker.image, message.topics)
    if not known:
        return TxnOffsetCommitResponse(topics=order.arrange(refused))
    message.topics = known
    try:
        if not message.group_id:
            raise ApiError(errors.INVALID_GROUP_ID)
        response = await _commit(request, message)
    except ApiError as failure:
        error = failure.error
        if request.version < LOADING_SINCE and error is errors.COORDINATOR_LOAD_IN_PROGRESS:
            error = errors.COORDINATOR_NOT_AVAILABLE
        response = TxnOffsetCommitResponse(topics=[_answer(topic, error) for topic in known])
    response.topics = order.arrange([*response.topics, *refused])
    return response


async def _commit(request: Request, message: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    broker, groups = request.broker, request.broker.groups
    producer = ProducerIdEpoch(message.producer_id, message.producer_epoch)
    shard = groups.shard_of(message.group_id)
    groups.runtime.shard(shard)  # nobody is asked about a transaction before this broker is ready to take part
    partition = TopicPartition(OFFSETS_TOPIC, shard)
    log = broker.replicas.leader(*partition).log
    if not log.producers.has_open_transaction(*producer):
        manner = manner_of(request.version)
        guards = Guards(producer.producer_id, [log], manner)
        answers = await admit(broker, message.transactional_id, producer, frozenset({partition}), manner)
        if answers[partition] is not errors.NONE:
            raise ApiError(answers[partition])
        if not (guards.hold(log) or log.producers.has_open_transaction(*producer)):
            raise ApiError(errors.INVALID_TXN_STATE, "the transaction has ended meanwhile")
    topic_ids = groups.topic_ids(topic.name for topic in message.topics)
    response: TxnOffsetCommitResponse = await groups.ask(
        message.group_id, GroupRequest(message, request.version, topic_ids=topic_ids)
    )
    return response


def manner_of(version: int) -> Manner:
    if version >= ADD_SINCE:
        return Manner.ADD
    return Manner.VERIFY_ABORTABLE if version >= ABORTABLE_SINCE else Manner.VERIFY


def _sorted_out(image: ClusterImage, topics: list[RequestTopic]) -> tuple[list[RequestTopic], list[ResponseTopic]]:
    """The topics with the partitions that exist, and the answers for what does not."""
    known: list[RequestTopic] = []
    refused: list[ResponseTopic] = []
    for topic in topics:
        found = image.topics.by_name.get(topic.name)
        count = 0 if found is None else len(found.partitions)
        missing = [each for each in topic.partitions if not 0 <= each.partition_index < count]
        if missing:
            gone = RequestTopic(name=topic.name, partitions=missing)
            refused.append(_answer(gone, errors.UNKNOWN_TOPIC_OR_PARTITION))
        present = [each for each in topic.partitions if 0 <= each.partition_index < count]
        if present:
            known.append(RequestTopic(name=topic.name, partitions=present))
    return known, refused


def _answer(topic: RequestTopic, error: WireError) -> ResponseTopic:
    return ResponseTopic(
        name=topic.name,
        partitions=[
            TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                partition_index=each.partition_index, error_code=error.code
            )
            for each in topic.partitions
        ],
    )


_ROWS: Final = permissions.Rows(
    "topics",
    Operation.READ,
    ResourceType.TOPIC,
    TxnOffsetCommitResponse,
    "topics",
    permissions.partitions(ResponseTopic, TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition),
)


def _needs(request: GuardedRequest, message: TxnOffsetCommitRequest) -> Message | None:
    """WRITE on the transactional id, READ on the group and on each topic."""
    whole = permissions.denial(request, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, message.transactional_id)
    whole = whole or permissions.denial(request, Operation.READ, ResourceType.GROUP, message.group_id)
    return _ROWS.apply(request, message, whole)


API: Final = Api(
    ApiKey.TXN_OFFSET_COMMIT,
    handle,
    at=CLIENT,
    portions=(Portions("topics.partitions", "topics.partitions", ATOMIC_ROWS_MIN),),
    needs=_needs,
)
