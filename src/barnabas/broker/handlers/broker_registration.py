"""BrokerRegistration: a starting broker makes itself known and is given its epoch.

Versions: 0–4.
Behaviour: a new process is registered fenced; while the process before it is heard of, it is refused with
DUPLICATE_BROKER_REGISTRATION.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.wire.message import Message
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest


async def handle(request: Request, message: BrokerRegistrationRequest) -> Message:
    return await request.broker.controller_apis.answer(message)
