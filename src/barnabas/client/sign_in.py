"""How a client proves who it is on a fresh connection: TLS if it is asked for, then PLAIN or SCRAM.

Called once for every connection, between agreeing on versions and the first request. Where sessions end, the broker
hangs up and the next connection signs in anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from ssl import SSLContext

from barnabas.client.settings import Settings
from barnabas.model import errors
from barnabas.model.errors import ApiError, error_of
from barnabas.security.exchange import SignInFailed
from barnabas.security.scram import MECHANISMS, NONCE_BYTES, ScramClient
from barnabas.transport.channel import Channel
from barnabas.transport.tls import TlsFiles, client_context
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

HANDSHAKE_VERSION = 1
STEP_VERSION = 1


def tls_of(settings: Settings) -> SSLContext | None:
    if not settings.has_tls:
        return None
    return client_context(
        TlsFiles(
            key_store=settings.ssl_keystore_location or None,
            key_password=settings.ssl_key_password or None,
            trust_store=settings.ssl_truststore_location or None,
        )
    )


async def sign_in(channel: Channel, settings: Settings, chance: Callable[[int], int]) -> None:
    """ApiError if the broker does not let us in."""
    if not settings.has_sasl:
        return
    mechanism = settings.sasl_mechanism
    offered = await channel.send(SaslHandshakeRequest(mechanism=mechanism), HANDSHAKE_VERSION)
    assert isinstance(offered, SaslHandshakeResponse)
    if offered.error_code != errors.NONE.code:
        names = ", ".join(offered.mechanisms) or "no way of signing in"
        raise ApiError(error_of(offered.error_code), f"{channel.host}:{channel.port} offers {names}, not {mechanism}.")
    if mechanism not in MECHANISMS:
        await _step(channel, f"\0{settings.sasl_username}\0{settings.sasl_password}".encode())
        return
    nonce = bytes(chance(256) for _ in range(NONCE_BYTES))
    client = ScramClient(MECHANISMS[mechanism], settings.sasl_username, settings.sasl_password, nonce=nonce)
    try:
        challenge = await _step(channel, client.first())
        proof = await asyncio.to_thread(client.final, challenge)  # slow by design
        client.check(await _step(channel, proof))
    except SignInFailed as error:
        raise ApiError(errors.SASL_AUTHENTICATION_FAILED, f"{channel.host}:{channel.port}: {error}.") from error


async def _step(channel: Channel, token: bytes) -> bytes:
    answer = await channel.send(SaslAuthenticateRequest(auth_bytes=token), STEP_VERSION)
    assert isinstance(answer, SaslAuthenticateResponse)
    if answer.error_code != errors.NONE.code:
        reason = answer.error_message or error_of(answer.error_code).text
        raise ApiError(error_of(answer.error_code), f"{channel.host}:{channel.port}: {reason}")
    return bytes(answer.auth_bytes)
