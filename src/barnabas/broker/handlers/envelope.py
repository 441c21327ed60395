"""Envelope: a request of a client that another broker has forwarded, with the principal of the client.

Versions: 0.
Behaviour: only the controller's listener accepts it, only with CLUSTER_ACTION, and only with an API that is forwarded;
the client's own permissions are checked as if it had sent the request itself. Later requests on the same connection are
handled meanwhile.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Final

from barnabas.broker.access import permissions
from barnabas.broker.access.authorizer import Asker
from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.access.refusals import refusal
from barnabas.broker.controller.forwarding import LOST, answered, decode_principal
from barnabas.broker.requests.api import CONTROLLER, Api, Route
from barnabas.broker.requests.request import Deferred, Request
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed
from barnabas.observe.log import logger
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.frame import decode_request_header
from barnabas.wire.message import Message, decode
from barnabas.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

log = logger("envelope")

SIZE_BYTES: Final = 4


class _Forwarded(GuardedRequest):
    """The request in the envelope, with the principal of the client that sent it."""

    __slots__ = ()

    def __init__(self, outer: Request, header: Any, message: EnvelopeRequest) -> None:
        super().__init__(outer.broker, outer.connection, header)
        assert outer.broker.authorizer is not None
        principal = decode_principal(message.request_principal)
        self.asker = Asker(outer.broker.authorizer, str(principal), str(ip_address(message.client_host_address)))


def handle(request: Request, message: EnvelopeRequest) -> Deferred:
    deferred = request.defer()
    kept = EnvelopeRequest(
        request_data=bytes(message.request_data),
        request_principal=None if message.request_principal is None else bytes(message.request_principal),
        client_host_address=bytes(message.client_host_address),
    )
    # A request that was begun is decided even if its connection closes.
    request.broker.tasks.start(_serve(deferred, kept), "envelope")
    return deferred


async def _serve(deferred: Deferred, message: EnvelopeRequest) -> None:
    try:
        data = await _open(deferred.request, message)
        deferred.answer(EnvelopeResponse(response_data=data))
    except ApiError as error:
        deferred.answer(EnvelopeResponse(error_code=error.error.code))
    except Malformed as error:
        log.warning("an envelope holds no request that is understood", reason=error)
        deferred.answer(EnvelopeResponse(error_code=errors.INVALID_REQUEST.code))
    finally:
        deferred.hang_up()  # changes nothing if it was answered


async def _open(outer: Request, message: EnvelopeRequest) -> bytes:
    header, position = decode_request_header(message.request_data)
    route = outer.broker.controller_routes.get(header.api_key)
    if route is None or not route.api.is_forwarded:
        raise ApiError(errors.INVALID_REQUEST, f"API {header.api_key} is not forwarded")
    if header.api_version not in route.versions:
        raise ApiError(errors.UNSUPPORTED_VERSION)
    if len(message.client_host_address) not in (4, 16):
        raise ApiError(errors.INVALID_REQUEST, "the client's address is none")
    body = decode(route.request, header.api_version, message.request_data, position)
    if outer.broker.authorizer is None:
        decode_principal(message.request_principal)
        request = Request(outer.broker, outer.connection, header)
    else:
        request = _Forwarded(outer, header, message)
    parts: list[Any] = request.encode(await _answer(route, request, body))
    return b"".join(parts)[SIZE_BYTES:]


async def _answer(route: Route, request: Request, body: Message) -> Message:
    try:
        if request.asker is not None:
            refused = permissions.check(route.api.needs, request, body)
            if refused is not None:
                return refused
        return await answered(route.handle, request, body)
    except ApiError as error:
        if error.error in LOST:
            raise  # the broker that forwarded it finds the controller that leads now
        return refusal(route, body, error, request.version)


API: Final = Api(ApiKey.ENVELOPE, handle, at=CONTROLLER, needs=permissions.cluster(Operation.CLUSTER_ACTION))
