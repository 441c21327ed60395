"""DeleteTopics: remove topics by name or, from version 6 on, by id.

Versions: 1–6.
Behaviour: each topic succeeds or fails alone; files vanish after ``file.delete.delay.ms``.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.controller_requests import submit
from barnabas.broker.request import Request
from barnabas.metadata.controller import delete_topics
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse


async def handle(request: Request, message: DeleteTopicsRequest) -> DeleteTopicsResponse:
    return await submit(request.broker, lambda image, facts: delete_topics(image, message, facts))
