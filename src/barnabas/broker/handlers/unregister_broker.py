"""UnregisterBroker: a broker that will not come back is taken out of the cluster.

Versions: 0.
Behaviour: it leads nothing and is in sync with nothing from then on; replicas assigned to it stay assigned.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.controller.requests import submit
from barnabas.broker.requests.request import Request
from barnabas.metadata.controller import unregister_broker
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


async def handle(request: Request, message: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    return await submit(request.broker, lambda image, facts: unregister_broker(image, message, facts))
