"""DeleteTopics: delete topics by name or, from version 6 on, by id.

Versions: 1–6.
Behaviour: each topic succeeds or fails alone; its files are removed after ``file.delete.delay.ms``.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import audit, permissions
from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.controller.requests import submit
from barnabas.broker.requests.api import CONTROLLER, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.metadata.topic_deletion import delete_topics
from barnabas.model.errors import ApiError
from barnabas.model.ids import ZERO_UUID, Uuid
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse


async def handle(request: Request, message: DeleteTopicsRequest) -> DeleteTopicsResponse:
    return await submit(request.broker, lambda image, facts: delete_topics(image, message, facts))


def refuse(message: DeleteTopicsRequest, error: ApiError) -> DeleteTopicsResponse:
    wanted: list[tuple[str | None, Uuid]] = [(name, ZERO_UUID) for name in message.topic_names]
    wanted += [(topic.name, topic.topic_id) for topic in message.topics]
    return DeleteTopicsResponse(
        responses=[
            DeleteTopicsResponse.DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=error.error.code, error_message=error.message
            )
            for name, topic_id in wanted
        ]
    )


def _needs(request: GuardedRequest, message: DeleteTopicsRequest) -> Message | None:
    """DELETE on each topic."""

    def may_delete(name: str | None) -> bool:
        return name is None or request.asker.may(Operation.DELETE, ResourceType.TOPIC, name)

    message.topic_names, names = permissions.parted(message.topic_names, may_delete)
    message.topics, rows = permissions.parted(
        message.topics, lambda row: may_delete(permissions.topic_name(row, request.image))
    )
    refused = refuse(DeleteTopicsRequest(topic_names=names, topics=rows), permissions.DENIED).responses
    if not refused:
        return None
    if not message.topics and not message.topic_names:
        return DeleteTopicsResponse(responses=refused)
    request.when_answered(lambda answer: answer.responses.extend(refused))
    return None


API: Final = Api(
    ApiKey.DELETE_TOPICS,
    handle,
    at=CONTROLLER,
    portions=(Portions("topics", "responses"), Portions("topic_names", "responses")),
    needs=_needs,
    refuse=refuse,
    is_forwarded=True,
    audit=lambda message: [*message.topic_names, *audit.topics(message)],
)
