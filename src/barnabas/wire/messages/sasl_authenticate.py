"""SaslAuthenticate: one step of a SASL exchange.

Version 1 tells how long the session lasts before the client must authenticate again.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, binary, int16, int64, string


class SaslAuthenticateRequest(Message, api=ApiKey.SASL_AUTHENTICATE, versions=range(3), flexible=2):
    auth_bytes: bytes = binary()


class SaslAuthenticateResponse(Message, api=ApiKey.SASL_AUTHENTICATE, versions=range(3), flexible=2):
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
    auth_bytes: bytes = binary()
    session_lifetime_ms: int = int64(since=1, ignorable=True)
