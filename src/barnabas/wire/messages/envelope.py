"""Envelope: a broker forwards a client's request to the controller with the principal it authenticated.

The principal travels as DefaultPrincipalData behind an int16 version.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, binary, boolean, int16, string


class EnvelopeRequest(Message, api=ApiKey.ENVELOPE, versions=range(1), flexible=0):
    request_data: bytes = binary()
    request_principal: bytes | None = binary(nullable=True)
    client_host_address: bytes = binary()


class EnvelopeResponse(Message, api=ApiKey.ENVELOPE, versions=range(1), flexible=0):
    response_data: bytes | None = binary(nullable=True, default=None)
    error_code: int = int16()


class DefaultPrincipalData(Message, versions=range(1), flexible=0):
    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()
