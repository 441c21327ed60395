"""CreatePartitions: add partitions to topics.

Versions: 0–3.
Behaviour: each topic succeeds or fails alone; existing records stay in their partitions.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import audit, permissions
from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.controller.requests import placement_seed, submit
from barnabas.broker.requests.api import CONTROLLER, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.metadata.partitions import create_partitions
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse


async def handle(request: Request, message: CreatePartitionsRequest) -> CreatePartitionsResponse:
    seed = placement_seed(request.broker)
    return await submit(request.broker, lambda image, facts: create_partitions(image, message, seed=seed))


def refuse(message: CreatePartitionsRequest, error: ApiError) -> CreatePartitionsResponse:
    row = CreatePartitionsResponse.CreatePartitionsTopicResult
    return CreatePartitionsResponse(
        results=[
            row(name=topic.name, error_code=error.error.code, error_message=error.message) for topic in message.topics
        ]
    )


def _needs(request: GuardedRequest, message: CreatePartitionsRequest) -> Message | None:
    """ALTER on each topic."""
    may = request.asker.may
    allowed, denied = permissions.parted(message.topics, lambda row: may(Operation.ALTER, ResourceType.TOPIC, row.name))
    refused = refuse(CreatePartitionsRequest(topics=denied), permissions.DENIED).results
    return permissions.split(request, message, "topics", allowed, refused, CreatePartitionsResponse, "results")


API: Final = Api(
    ApiKey.CREATE_PARTITIONS,
    handle,
    at=CONTROLLER,
    portions=(Portions("topics", "results"),),
    needs=_needs,
    refuse=refuse,
    is_forwarded=True,
    audit=audit.topics,
)
