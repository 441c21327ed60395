"""SaslHandshake: a client names the mechanism by which it signs in.

Versions: 0–1. After version 0 bare tokens follow, after version 1 SaslAuthenticate.
Behaviour: on a listener that asks for sign-in, ``broker/access/authentication.py`` answers before a request gets
here. What gets here comes where nobody signs in, or from one that has signed in and need not do so again:
ILLEGAL_SASL_STATE.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.model import errors
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(request: Request, message: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=errors.ILLEGAL_SASL_STATE.code)
