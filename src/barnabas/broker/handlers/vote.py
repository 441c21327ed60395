"""Vote: a voter of the quorum asks for our vote, or whether we would give it.

Versions: 0–2 (2 has pre-votes).
Behaviour: decided by the Raft machine; a vote is durable before it is answered.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.wire.message import Message
from barnabas.wire.messages.vote import VoteRequest


async def handle(request: Request, message: VoteRequest) -> Message:
    return await request.broker.raft.handle(message)
