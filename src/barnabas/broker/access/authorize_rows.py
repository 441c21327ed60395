"""Requests of many rows, each of which is allowed or refused alone: which rows, by which right, refused how.

A row that is refused is taken out of the request and answered beside what the handler says of the others, so that
nothing of the answer tells whether the thing exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from barnabas.broker.access.guarded_request import ERRORS, GuardedRequest
from barnabas.broker.requests.amended_request import AmendedRequest
from barnabas.metadata.image import ClusterImage
from barnabas.model.errors import WireError
from barnabas.model.ids import ZERO_UUID
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.message import Message
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from barnabas.wire.messages.delete_groups import DeleteGroupsResponse
from barnabas.wire.messages.delete_records import DeleteRecordsResponse
from barnabas.wire.messages.describe_groups import DescribeGroupsResponse
from barnabas.wire.messages.describe_producers import DescribeProducersResponse
from barnabas.wire.messages.describe_transactions import DescribeTransactionsResponse
from barnabas.wire.messages.list_offsets import ListOffsetsResponse
from barnabas.wire.messages.offset_commit import OffsetCommitResponse
from barnabas.wire.messages.offset_delete import OffsetDeleteResponse
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from barnabas.wire.messages.produce import ProduceResponse
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitResponse

T = TypeVar("T")
Refuse: TypeAlias = "Callable[[Any, WireError], Message]"


def topic_name(row: Any, image: ClusterImage) -> str | None:
    """The name of a row's topic; None for an id that nobody has, about which there is nothing to hide."""
    topic_id = getattr(row, "topic_id", ZERO_UUID)
    if topic_id == ZERO_UUID:
        name: str | None = row.topic if hasattr(row, "topic") else row.name
        return name or ""
    found = image.topics.by_id.get(topic_id)
    return None if found is None else found.name


def itself(row: Any, _: ClusterImage) -> str:
    return str(row)


@dataclass(frozen=True, slots=True)
class Rows:
    field: str  # of the request
    operation: Operation
    kind: ResourceType
    response: type[Message]
    answers: str  # field of the response
    refuse: Refuse
    name_of: Callable[[Any, ClusterImage], str | None] = topic_name

    def apply(self, request: GuardedRequest, message: Any, *, whole: WireError | None = None) -> Message | None:
        """Take out what is refused; a message is the whole answer. ``whole``: every row is refused, with this."""
        asker, image = request.asker, request.image
        allowed, refused = [], []
        for row in getattr(message, self.field):
            name = self.name_of(row, image)
            if whole is not None:
                refused.append(self.refuse(row, whole))
            elif name is None or asker.may(self.operation, self.kind, name):
                allowed.append(row)
            else:
                refused.append(self.refuse(row, ERRORS[self.kind]))
        return split(request, message, self.field, allowed, refused, self.response, self.answers)


def parted(rows: Iterable[T], is_allowed: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Those that are allowed, and those that are not."""
    allowed: list[T] = []
    refused: list[T] = []
    for row in rows:
        (allowed if is_allowed(row) else refused).append(row)
    return allowed, refused


def split(
    request: AmendedRequest,
    message: Any,
    field: str,
    allowed: list[Any],
    refused: list[Any],
    response: type[Message],
    answers: str,
) -> Message | None:
    if not refused:
        return None
    if not allowed:
        answer = response()
        setattr(answer, answers, refused)
        return answer
    setattr(message, field, allowed)
    request.when_answered(lambda answer: getattr(answer, answers).extend(refused))
    return None


def partitions(
    row_class: Any,
    part_class: Any,
    *,
    name: str = "name",
    parts: str = "partitions",
    index: str = "partition_index",
    answer_parts: str = "partitions",
    **values: Any,
) -> Refuse:
    """Refuses a topic by refusing each of its partitions."""

    def refuse(row: Any, error: WireError) -> Message:
        found = [
            part_class(
                **{index: part if isinstance(part, int) else getattr(part, index)}, error_code=error.code, **values
            )
            for part in getattr(row, parts)
        ]
        same = {name: getattr(row, name)}
        if hasattr(row, "topic_id") and hasattr(row_class, "topic_id"):
            same["topic_id"] = row.topic_id
        answer: Message = row_class(**same, **{answer_parts: found})
        return answer

    return refuse


PRODUCE: Final = Rows(
    "topic_data",
    Operation.WRITE,
    ResourceType.TOPIC,
    ProduceResponse,
    "responses",
    partitions(
        ProduceResponse.TopicProduceResponse,
        ProduceResponse.PartitionProduceResponse,
        parts="partition_data",
        index="index",
        answer_parts="partition_responses",
        base_offset=-1,
    ),
)
LIST_OFFSETS: Final = Rows(
    "topics",
    Operation.DESCRIBE,
    ResourceType.TOPIC,
    ListOffsetsResponse,
    "topics",
    partitions(ListOffsetsResponse.ListOffsetsTopicResponse, ListOffsetsResponse.ListOffsetsPartitionResponse),
)
OFFSET_FOR_LEADER_EPOCH: Final = Rows(
    "topics",
    Operation.DESCRIBE,
    ResourceType.TOPIC,
    OffsetForLeaderEpochResponse,
    "topics",
    partitions(
        OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult,
        OffsetForLeaderEpochResponse.EpochEndOffset,
        name="topic",
        index="partition",
    ),
)
DELETE_RECORDS: Final = Rows(
    "topics",
    Operation.DELETE,
    ResourceType.TOPIC,
    DeleteRecordsResponse,
    "topics",
    partitions(
        DeleteRecordsResponse.DeleteRecordsTopicResult,
        DeleteRecordsResponse.DeleteRecordsPartitionResult,
        low_watermark=-1,
    ),
)
OFFSET_COMMIT: Final = Rows(
    "topics",
    Operation.READ,
    ResourceType.TOPIC,
    OffsetCommitResponse,
    "topics",
    partitions(OffsetCommitResponse.OffsetCommitResponseTopic, OffsetCommitResponse.OffsetCommitResponsePartition),
)
TXN_OFFSET_COMMIT: Final = Rows(
    "topics",
    Operation.READ,
    ResourceType.TOPIC,
    TxnOffsetCommitResponse,
    "topics",
    partitions(
        TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic, TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition
    ),
)
OFFSET_DELETE: Final = Rows(
    "topics",
    Operation.READ,
    ResourceType.TOPIC,
    OffsetDeleteResponse,
    "topics",
    partitions(OffsetDeleteResponse.OffsetDeleteResponseTopic, OffsetDeleteResponse.OffsetDeleteResponsePartition),
)
DESCRIBE_PRODUCERS: Final = Rows(
    "topics",
    Operation.READ,
    ResourceType.TOPIC,
    DescribeProducersResponse,
    "topics",
    partitions(
        DescribeProducersResponse.TopicResponse, DescribeProducersResponse.PartitionResponse, parts="partition_indexes"
    ),
)
DESCRIBE_TRANSACTIONS: Final = Rows(
    "transactional_ids",
    Operation.DESCRIBE,
    ResourceType.TRANSACTIONAL_ID,
    DescribeTransactionsResponse,
    "transaction_states",
    lambda row, error: DescribeTransactionsResponse.TransactionState(transactional_id=row, error_code=error.code),
    itself,
)
DESCRIBE_GROUPS: Final = Rows(
    "groups",
    Operation.DESCRIBE,
    ResourceType.GROUP,
    DescribeGroupsResponse,
    "groups",
    lambda row, error: DescribeGroupsResponse.DescribedGroup(group_id=row, error_code=error.code),
    itself,
)
CONSUMER_GROUP_DESCRIBE: Final = Rows(
    "group_ids",
    Operation.DESCRIBE,
    ResourceType.GROUP,
    ConsumerGroupDescribeResponse,
    "groups",
    lambda row, error: ConsumerGroupDescribeResponse.DescribedGroup(group_id=row, error_code=error.code),
    itself,
)
DELETE_GROUPS: Final = Rows(
    "groups_names",
    Operation.DELETE,
    ResourceType.GROUP,
    DeleteGroupsResponse,
    "results",
    lambda row, error: DeleteGroupsResponse.DeletableGroupResult(group_id=row, error_code=error.code),
    itself,
)
