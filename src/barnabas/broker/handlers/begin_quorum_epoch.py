"""BeginQuorumEpoch: the new leader of the quorum says that it leads.

Versions: 0–1.
Behaviour: decided by the Raft machine.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.wire.message import Message
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest


async def handle(request: Request, message: BeginQuorumEpochRequest) -> Message:
    return await request.broker.raft.handle(message)
