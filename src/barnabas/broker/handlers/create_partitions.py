"""CreatePartitions: give topics more partitions.

Versions: 0–3.
Behaviour: each topic succeeds or fails alone; existing records stay where they are.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.controller.requests import placement_seed, submit
from barnabas.broker.requests.request import Request
from barnabas.metadata.controller import create_partitions
from barnabas.model.errors import ApiError
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
