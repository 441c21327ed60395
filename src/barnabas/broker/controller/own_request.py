"""A request of this node's broker to the controller of the same node: the handler runs without the network.

The handlers are those of the controllers' listeners, so an API behaves the same wherever the active controller is.
"""

from __future__ import annotations

from barnabas.broker.access.refusals import refusal
from barnabas.broker.controller.forwarding import answered
from barnabas.broker.controller.link import MOVED
from barnabas.broker.requests.request import Request
from barnabas.broker.requests.services import Services
from barnabas.model.errors import ApiError
from barnabas.wire.frame import RequestHeader
from barnabas.wire.message import Message


class OwnRequest(Request):
    """It has no connection; a handler that uses the connection checks for this class first."""

    __slots__ = ()

    def __init__(self, broker: Services, message: Message) -> None:
        assert message.api_key is not None
        self.broker = broker
        self.header = RequestHeader(message.api_key, message.versions[-1], correlation_id=0, client_id=None)
        self.version = self.header.api_version


async def answer_own(broker: Services, message: Message) -> Message:
    """The response, with an error of the whole request in it, as in a response from the network.

    ApiError(NOT_CONTROLLER) if another node has become the active controller.
    """
    request = OwnRequest(broker, message)
    route = broker.controller_routes[request.header.api_key]
    try:
        return await answered(route.handle, request, message)
    except ApiError as error:
        if error.error in MOVED:
            raise
        return refusal(route, message, error, request.version)
