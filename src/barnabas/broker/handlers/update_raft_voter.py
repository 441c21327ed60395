"""UpdateRaftVoter: a voter tells the leader of the quorum where it listens and what it speaks.

Versions: 0.
Behaviour: decided by the Raft machine.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.wire.message import Message
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest


async def handle(request: Request, message: UpdateRaftVoterRequest) -> Message:
    return await request.broker.raft.handle(message)
