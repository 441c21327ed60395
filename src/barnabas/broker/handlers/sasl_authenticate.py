"""SaslAuthenticate: one step of a sign-in.

Versions: 0–2. From version 1 on the answer says after what time the client must sign in again.
Behaviour: on a listener that asks for sign-in, ``broker/access/authentication.py`` answers before a request gets
here. What gets here comes where nobody signs in, or from one that has signed in already: ILLEGAL_SASL_STATE.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.model import errors
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(request: Request, message: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=errors.ILLEGAL_SASL_STATE.code,
        error_message="no sign-in is under way on this connection",
    )
