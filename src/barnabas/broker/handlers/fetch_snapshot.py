"""FetchSnapshot: a member of the quorum that is far behind downloads a snapshot, piece by piece.

Versions: 0–1.
Behaviour: pieces of at most 1 MiB.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.wire.message import Message
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest


async def handle(request: Request, message: FetchSnapshotRequest) -> Message:
    return await request.broker.raft.handle(message)
