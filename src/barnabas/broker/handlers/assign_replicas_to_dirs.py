"""AssignReplicasToDirs: a broker says in which of its directories its replicas lie.

Versions: 0.
Behaviour: each replica succeeds or fails alone; one in a directory that is offline leaves the ISR.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.wire.message import Message
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest


async def handle(request: Request, message: AssignReplicasToDirsRequest) -> Message:
    return await request.broker.controller_apis.answer(message)
