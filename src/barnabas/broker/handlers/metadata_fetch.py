"""Fetch on a controller's listener: the replicas of the quorum, voters and brokers alike, read the metadata log.

Versions: 4–18.
Behaviour: only the metadata partition is served; a fetch acknowledges all before its offset, and waits for news.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.requests.request import Request
from barnabas.security.acl import Operation
from barnabas.wire.message import Message
from barnabas.wire.messages.fetch import FetchRequest


async def handle(request: Request, message: FetchRequest) -> Message:
    if isinstance(request, GuardedRequest):
        request.require_cluster(Operation.CLUSTER_ACTION)
    return await request.broker.raft.handle(message)
