"""How whoever dials proves who it is, after TLS and before all else: by PLAIN, SCRAM or a token.

Clients and the links between brokers share it. ``session`` calls it, and calls it again where sessions end; what it
sends passes requests that wait because the channel is held. The other side of the exchange is the broker's
``sign_in``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from barnabas.model import errors
from barnabas.model.errors import ApiError, error_of
from barnabas.security.exchange import SignInFailed
from barnabas.security.scram import MECHANISMS, NONCE_BYTES, ScramClient
from barnabas.transport.channel import Channel
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

HANDSHAKE_VERSION: Final = 1
STEP_VERSION: Final = 1
OAUTHBEARER: Final = "OAUTHBEARER"


@dataclass(frozen=True, slots=True)
class Credentials:
    mechanism: str
    username: str
    password: str = field(repr=False)


async def sign_in(channel: Channel, credentials: Credentials, chance: Callable[[int], int]) -> int:
    """How many milliseconds it lasts, 0 for as long as the connection. ApiError if the listener does not let us in.

    ``chance`` gives a number below its argument.
    """
    mechanism = credentials.mechanism
    offered = await channel.post(SaslHandshakeRequest(mechanism=mechanism), HANDSHAKE_VERSION)
    assert isinstance(offered, SaslHandshakeResponse)
    if offered.error_code == errors.UNSUPPORTED_SASL_MECHANISM.code:
        names = ", ".join(offered.mechanisms) or "no way of signing in"
        raise ApiError(error_of(offered.error_code), f"{channel.host}:{channel.port} offers {names}, not {mechanism}.")
    if offered.error_code != errors.NONE.code:
        raise ApiError(error_of(offered.error_code), f"{channel.host}:{channel.port} takes no sign-in now.")
    if mechanism == OAUTHBEARER:
        # A refusal is told in two steps (RFC 7628, 3.2.3): what is wrong, and the error after we have heard it.
        last = await _step(channel, f"n,,\1auth=Bearer {credentials.password}\1\1".encode())
        if wrong := bytes(last.auth_bytes):
            await _step(channel, b"\1")
            raise ApiError(errors.SASL_AUTHENTICATION_FAILED, f"{channel.host}:{channel.port}: {wrong!r}")
    elif mechanism in MECHANISMS:
        nonce = bytes(chance(256) for _ in range(NONCE_BYTES))
        client = ScramClient(MECHANISMS[mechanism], credentials.username, credentials.password, nonce=nonce)
        try:
            challenge = await _step(channel, client.first())
            proof = await asyncio.to_thread(client.final, bytes(challenge.auth_bytes))  # slow by design
            last = await _step(channel, proof)
            client.check(bytes(last.auth_bytes))
        except SignInFailed as error:
            raise ApiError(errors.SASL_AUTHENTICATION_FAILED, f"{channel.host}:{channel.port}: {error}.") from error
    else:
        last = await _step(channel, f"\0{credentials.username}\0{credentials.password}".encode())
    return last.session_lifetime_ms


async def _step(channel: Channel, token: bytes) -> SaslAuthenticateResponse:
    answer = await channel.post(SaslAuthenticateRequest(auth_bytes=token), STEP_VERSION)
    assert isinstance(answer, SaslAuthenticateResponse)
    if answer.error_code != errors.NONE.code:
        reason = answer.error_message or error_of(answer.error_code).text
        raise ApiError(error_of(answer.error_code), f"{channel.host}:{channel.port}: {reason}")
    return answer
