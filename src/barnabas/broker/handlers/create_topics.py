"""CreateTopics: make topics, with partitions placed by the controller or as the client says.

Versions: 2–7.
Behaviour: each topic succeeds or fails alone. The answer comes when the topics can be written to on this broker.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.model.errors import ApiError
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse


async def handle(request: Request, message: CreateTopicsRequest) -> CreateTopicsResponse:
    broker = request.broker
    response = await broker.controller_apis.answer(message)
    assert isinstance(response, CreateTopicsResponse)
    await broker.replicas.caught_up(broker.controller.image.offset)
    return response


def refuse(message: CreateTopicsRequest, error: ApiError) -> CreateTopicsResponse:
    row = CreateTopicsResponse.CreatableTopicResult
    return CreateTopicsResponse(
        topics=[
            row(name=topic.name, error_code=error.error.code, error_message=error.message) for topic in message.topics
        ]
    )
