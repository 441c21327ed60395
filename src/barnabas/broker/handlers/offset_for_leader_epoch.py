"""OffsetForLeaderEpoch: the end offset of a leader epoch, by which a client detects truncation.

Versions: 2–4.
Behaviour: answers with the largest epoch that is not above the requested one, and the offset where the next one starts.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse


def handle(request: Request, message: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    response = OffsetForLeaderEpochResponse()
    for topic in message.topics:
        rows = []
        for asked in topic.partitions:
            row = OffsetForLeaderEpochResponse.EpochEndOffset(partition=asked.partition)
            rows.append(row)
            try:
                partition = request.broker.replicas.leader_in(topic.topic, asked.partition, asked.current_leader_epoch)
                row.leader_epoch, row.end_offset = partition.log.end_of_epoch(asked.leader_epoch)
            except ApiError as error:
                row.error_code = error.error.code
        response.topics.append(
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic=topic.topic, partitions=rows)
        )
    return response


_ROWS: Final = permissions.Rows(
    "topics",
    Operation.DESCRIBE,
    ResourceType.TOPIC,
    OffsetForLeaderEpochResponse,
    "topics",
    permissions.partitions(
        OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult,
        OffsetForLeaderEpochResponse.EpochEndOffset,
        name="topic",
        index="partition",
    ),
)


API: Final = Api(
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    handle,
    at=CLIENT,
    portions=(Portions("topics.partitions", "topics.partitions"),),
    needs=_ROWS.check,
)
