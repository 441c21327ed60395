"""ControllerRegistration: a controller tells the active one where it listens and what it supports.

Versions: 0.
Behaviour: kept in the metadata log, so that features are only raised where all controllers know them.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.wire.message import Message
from barnabas.wire.messages.controller_registration import ControllerRegistrationRequest


async def handle(request: Request, message: ControllerRegistrationRequest) -> Message:
    return await request.broker.controller_apis.answer(message)
