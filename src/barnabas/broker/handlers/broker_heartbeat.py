"""BrokerHeartbeat: a broker says that it lives, how far it has read, and what it wants.

Versions: 0–2.
Behaviour: whoever is silent for a session is fenced; who wants to go is told when all its leaderships have moved.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.wire.message import Message
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest


async def handle(request: Request, message: BrokerHeartbeatRequest) -> Message:
    answer = await request.broker.controller_apis.answer(message)
    if request.broker.life_watch is not None:
        request.broker.life_watch.heard(message.broker_id, message.broker_epoch, request.connection)
    return answer
