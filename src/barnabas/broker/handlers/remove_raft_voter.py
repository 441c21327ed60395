"""RemoveRaftVoter: a voter leaves the quorum (KIP-853).

Versions: 0.
Behaviour: one change at a time; a leader that is removed leads until the change is committed.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.wire.message import Message
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest


async def handle(request: Request, message: RemoveRaftVoterRequest) -> Message:
    return await request.broker.raft.handle(message)
