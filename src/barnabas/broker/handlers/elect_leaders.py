"""ElectLeaders: give partitions their preferred leaders back, or any live one where that is asked for.

Versions: 0–2 (1 and up can ask for an unclean election).
Behaviour: each partition succeeds or fails alone; asked about all of them, those that need no election are left out.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.controller_requests import submit
from barnabas.broker.request import Request
from barnabas.metadata.controller import elect_leaders
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse


async def handle(request: Request, message: ElectLeadersRequest) -> ElectLeadersResponse:
    return await submit(request.broker, lambda image, facts: elect_leaders(image, message, facts))
