"""DeleteShareGroupOffsets: delete the offsets of topics of a share group without members.

Versions: 0.
Behaviour: as Kafka's. Each topic succeeds or fails alone. A later member starts the topic as a new one.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.coordinators import share_groups
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError
from barnabas.model.ids import Uuid
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)

Topic = DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic


async def handle(request: Request, message: DeleteShareGroupOffsetsRequest) -> DeleteShareGroupOffsetsResponse:
    if not message.group_id:
        raise ApiError(errors.INVALID_GROUP_ID)
    broker, by_name = request.broker, request.broker.image.topics.by_name
    states = await share_groups.states(broker, message.group_id)
    ids = {topic.topic_name: by_name[topic.topic_name].id for topic in message.topics if topic.topic_name in by_name}
    failed = await share_groups.delete(broker, message.group_id, frozenset(ids.values()))
    failures: dict[Uuid, ApiError] = {topic_id: error for (topic_id, _), error in failed.items()}
    response = DeleteShareGroupOffsetsResponse()
    for topic in message.topics:
        topic_id = ids.get(topic.topic_name)
        if topic_id is None:
            response.responses.append(_refused(topic, errors.UNKNOWN_TOPIC_OR_PARTITION))
        elif topic_id not in states.initialized and topic_id not in states.deleting:
            text = "There is no offset information to delete."
            response.responses.append(_refused(topic, errors.UNKNOWN_TOPIC_OR_PARTITION, text, topic_id))
        elif topic_id in failures:
            failure = failures[topic_id]
            response.responses.append(_refused(topic, failure.error, failure.message, topic_id))
        else:
            response.responses.append(Topic(topic_name=topic.topic_name, topic_id=topic_id))
    return response


def _refused(
    topic: DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic,
    error: WireError,
    text: str | None = None,
    topic_id: Uuid | None = None,
) -> Topic:
    return Topic(
        topic_name=topic.topic_name,
        topic_id=topic_id or Uuid(bytes(16)),
        error_code=error.code,
        error_message=text or error.text,
    )


_ROWS: Final = permissions.Rows(
    "topics",
    Operation.READ,
    ResourceType.TOPIC,
    DeleteShareGroupOffsetsResponse,
    "responses",
    lambda row, error: _refused(row, error),
    lambda row, _: str(row.topic_name),
)


API: Final = Api(
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    handle,
    at=CLIENT,
    needs=permissions.all_of(permissions.group(Operation.DELETE), _ROWS.check),
    audit=lambda message: [message.group_id],
)
