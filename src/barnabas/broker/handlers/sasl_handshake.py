"""SaslHandshake: a client names its SASL mechanism.

Versions: 0–1. After version 0 bare tokens follow, after version 1 SaslAuthenticate.
Behaviour: on a SASL listener, ``broker/access/authentication.py`` answers before the request reaches this handler. A
request that reaches it comes on a listener without SASL, or before a new authentication is due: ILLEGAL_SASL_STATE.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, CONTROLLER, Api
from barnabas.broker.requests.request import Request
from barnabas.model import errors
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(request: Request, message: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=errors.ILLEGAL_SASL_STATE.code)


API: Final = Api(ApiKey.SASL_HANDSHAKE, handle, at=CLIENT | CONTROLLER, needs=permissions.anyone)
