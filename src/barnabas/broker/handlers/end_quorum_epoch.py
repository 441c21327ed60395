"""EndQuorumEpoch: the leader of the quorum resigns and names who may follow it.

Versions: 0–1.
Behaviour: decided by the Raft machine.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.wire.message import Message
from barnabas.wire.messages.end_quorum_epoch import EndQuorumEpochRequest


async def handle(request: Request, message: EndQuorumEpochRequest) -> Message:
    return await request.broker.raft.handle(message)
