"""AddRaftVoter: a replica that follows the quorum becomes one of its voters (KIP-853).

Versions: 0–1.
Behaviour: one change at a time; the replica must have caught up, and answers come when the change is committed, or in
version 1 as soon as it is written if that is asked for.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.wire.message import Message
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest


async def handle(request: Request, message: AddRaftVoterRequest) -> Message:
    return await request.broker.raft.handle(message)
