"""UnregisterBroker: remove the registration of a broker that will not return.

Versions: 0.
Behaviour: the broker leads no partition and is in no ISR afterwards; replicas assigned to it stay assigned.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.controller.requests import submit
from barnabas.broker.requests.api import CONTROLLER, Api
from barnabas.broker.requests.request import Request
from barnabas.metadata.registrations import unregister_broker
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


async def handle(request: Request, message: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    return await submit(request.broker, lambda image, facts: unregister_broker(image, message, facts))


API: Final = Api(
    ApiKey.UNREGISTER_BROKER,
    handle,
    at=CONTROLLER,
    needs=permissions.cluster(Operation.ALTER),
    is_forwarded=True,
    audit=lambda message: [str(message.broker_id)],
)
