"""DeleteTopics: remove topics by name or, from version 6 on, by id.

Versions: 1–6.
Behaviour: each topic succeeds or fails alone; files vanish after ``file.delete.delay.ms``.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.controller.requests import submit
from barnabas.broker.requests.request import Request
from barnabas.metadata.controller import delete_topics
from barnabas.model.errors import ApiError
from barnabas.model.ids import ZERO_UUID, Uuid
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
