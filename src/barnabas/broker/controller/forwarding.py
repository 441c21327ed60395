"""Requests that only the active controller can answer: handled here if this node is active, else sent in an envelope.

The envelope contains the principal of the client, so the controller checks the permissions again (KIP-590). An API is
forwarded if it declares ``is_forwarded``; ``handlers.envelope`` is the receiving side.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from ipaddress import ip_address
from struct import Struct
from typing import Any, Final

from barnabas.broker.access.guarded_request import principal_of
from barnabas.broker.requests.request import Request
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed
from barnabas.security.principal import Principal
from barnabas.wire.frame import decode_response, encode_request
from barnabas.wire.message import Message, decode, encode
from barnabas.wire.messages import response_of
from barnabas.wire.messages.envelope import DefaultPrincipalData, EnvelopeRequest, EnvelopeResponse

FORWARD_LANE: Final = "forward"
TIMEOUT_MS: Final = 30_000
TIMEOUT_MS_MIN: Final = 100  # a client that does not want to wait still wants an answer
SIZE_BYTES: Final = 4
UNSPECIFIED: Final = bytes(4)
PRINCIPAL_VERSION: Final = 0
_VERSION: Final = Struct(">h")
# What a handler raises when the leadership was lost under its hands.
LOST: Final = (errors.NOT_CONTROLLER, errors.NOT_LEADER_OR_FOLLOWER)


def forwarded(handle: Callable[[Request, Any], Any]) -> Callable[[Request, Any], Awaitable[Message]]:
    """A handler that runs ``handle`` on the active controller."""

    async def handle_or_forward(request: Request, message: Any) -> Message:
        here = partial(answered, handle, request, message)
        there = partial(_forward, request, message)
        asked_ms = getattr(message, "timeout_ms", TIMEOUT_MS)
        timeout_ms = min(max(asked_ms, TIMEOUT_MS_MIN), TIMEOUT_MS)
        return await request.broker.controller_link.reach(here, there, timeout_ms=timeout_ms)

    return handle_or_forward


async def answered(handle: Callable[[Request, Any], Any], request: Request, message: Any) -> Message:
    """The response of a handler, which may be a coroutine; a handler that defers its answer cannot be forwarded."""
    answer = handle(request, message)
    if inspect.isawaitable(answer):
        answer = await answer
    assert isinstance(answer, Message)
    return answer


async def _forward(request: Request, message: Message, node_id: int) -> Message:
    header = request.header
    frame = b"".join(
        encode_request(  # type: ignore[arg-type]  # a request to the controller holds no slices of files
            message, header.api_version, correlation_id=header.correlation_id, client_id=header.client_id
        )
    )
    envelope = EnvelopeRequest(
        request_data=frame[SIZE_BYTES:],
        request_principal=encode_principal(principal_of(request.broker, request.connection)),
        client_host_address=packed_address(request.connection.peer[0]),
    )
    link = request.broker.controller_link
    answer = await link.send(node_id, envelope, lane=FORWARD_LANE, timeout_ms=TIMEOUT_MS)
    assert isinstance(answer, EnvelopeResponse)
    if answer.error_code != errors.NONE.code:
        raise _refusal(answer.error_code)
    assert message.api_key is not None
    correlation_id, response = decode_response(
        response_of(message.api_key), header.api_version, answer.response_data or b""
    )
    if correlation_id != header.correlation_id:
        raise Malformed(f"node {node_id} answered request {correlation_id} in the envelope of {header.correlation_id}")
    return response


def packed_address(host: str) -> bytes:
    """The bytes of a client's address; of no address in particular if it did not come by IP."""
    try:
        address = ip_address(host)
    except ValueError:
        return UNSPECIFIED
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).packed


def _refusal(code: int) -> ApiError:
    error = errors.error_of(code)
    if error in (errors.UNSUPPORTED_VERSION, *LOST):
        return ApiError(error)
    # As Kafka: that brokers do not trust each other is nothing that a client could do something about.
    return ApiError(errors.UNKNOWN_SERVER_ERROR, f"the controller did not take the request: {error.name}")


def encode_principal(principal: Principal) -> bytes:
    data = DefaultPrincipalData(type=principal.kind, name=principal.name)
    return _VERSION.pack(PRINCIPAL_VERSION) + bytes(encode(data, PRINCIPAL_VERSION))


def decode_principal(data: bytes | None) -> Principal:
    """PRINCIPAL_DESERIALIZATION_FAILURE if nobody can be made out."""
    try:
        if data is None or len(data) < _VERSION.size:
            raise Malformed("no principal")
        (version,) = _VERSION.unpack_from(data)
        known = decode(DefaultPrincipalData, version, data, _VERSION.size)
    except Malformed as error:
        raise ApiError(errors.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from error
    return Principal(known.type, known.name)
