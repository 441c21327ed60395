"""SaslAuthenticate: one step of the authentication of a connection.

Versions: 0–2. From version 1 on the response contains the time after which the client must authenticate again.
Behaviour: on a SASL listener, ``broker/access/authentication.py`` answers before the request reaches this handler. A
request that reaches it comes on a listener without SASL or after authentication: ILLEGAL_SASL_STATE.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, CONTROLLER, Api
from barnabas.broker.requests.request import Request
from barnabas.model import errors
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(request: Request, message: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=errors.ILLEGAL_SASL_STATE.code,
        error_message="no sign-in is under way on this connection",
    )


API: Final = Api(ApiKey.SASL_AUTHENTICATE, handle, at=CLIENT | CONTROLLER, needs=permissions.anyone)
