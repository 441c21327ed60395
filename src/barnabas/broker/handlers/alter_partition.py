"""AlterPartition: a leader asks the controller to change its ISR.

Versions: 2–3.
Behaviour: the epochs in the request must be the newest; each partition succeeds or fails alone.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.wire.message import Message
from barnabas.wire.messages.alter_partition import AlterPartitionRequest


async def handle(request: Request, message: AlterPartitionRequest) -> Message:
    return await request.broker.controller_apis.answer(message)
