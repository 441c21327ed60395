"""CreateTopics: create topics, with partitions placed by the controller or as the request says.

Versions: 2–7.
Behaviour: each topic succeeds or fails alone. The response is sent when this broker can accept records for the topics.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import audit, permissions
from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.controller.requests import fresh_ids, placement_seed, submit
from barnabas.broker.requests.api import CONTROLLER, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.metadata.topics import create_topics
from barnabas.model.errors import ApiError
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse


async def handle(request: Request, message: CreateTopicsRequest) -> CreateTopicsResponse:
    ids, seed = fresh_ids(request.broker), placement_seed(request.broker)
    return await submit(
        request.broker, lambda image, facts: create_topics(image, message, facts, topic_ids=ids, seed=seed)
    )


def refuse(message: CreateTopicsRequest, error: ApiError) -> CreateTopicsResponse:
    row = CreateTopicsResponse.CreatableTopicResult
    return CreateTopicsResponse(
        topics=[
            row(name=topic.name, error_code=error.error.code, error_message=error.message) for topic in message.topics
        ]
    )


def _needs(request: GuardedRequest, message: CreateTopicsRequest) -> Message | None:
    """CREATE on the cluster or on each topic."""
    allowed, denied = permissions.parted(
        message.topics, lambda topic: permissions.may_create_topic(request, topic.name)
    )
    refused = refuse(CreateTopicsRequest(topics=denied), permissions.DENIED).topics
    return permissions.split(request, message, "topics", allowed, refused, CreateTopicsResponse, "topics")


API: Final = Api(
    ApiKey.CREATE_TOPICS,
    handle,
    at=CONTROLLER,
    portions=(Portions("topics", "topics"),),
    needs=_needs,
    refuse=refuse,
    is_forwarded=True,
    audit=audit.topics,
)
