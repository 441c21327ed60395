"""AllocateProducerIds: a broker asks for a block of producer ids.

Versions: 0.
Behaviour: blocks of 1000, never the same twice.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.wire.message import Message
from barnabas.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest


async def handle(request: Request, message: AllocateProducerIdsRequest) -> Message:
    return await request.broker.controller_apis.answer(message)
