"""What of a client's settings is needed to get through a listener's door: TLS files, user and password.

The exchange itself, and doing it again where sessions end, is ``transport.session``'s, which brokers use among
themselves too. ``connections`` imports this only for listeners that ask for it.
"""

from __future__ import annotations

from collections.abc import Callable
from ssl import SSLContext

from barnabas.client.cluster.tokens import Tokens
from barnabas.client.settings.client import Settings
from barnabas.transport.channel import Channel
from barnabas.transport.session import Session
from barnabas.transport.sign_in import OAUTHBEARER, Credentials
from barnabas.transport.tls import PROTOCOLS, TlsFiles, client_context


def tls_of(settings: Settings) -> SSLContext | None:
    return tls_context(settings) if settings.has_tls else None


def tls_context(settings: Settings) -> SSLContext:
    context = client_context(
        TlsFiles(
            key_store=settings.ssl_keystore_location or None,
            key=settings.ssl_keystore_key or None,
            certificate_chain=settings.ssl_keystore_certificate_chain or None,
            key_password=settings.ssl_key_password or None,
            trust_store=settings.ssl_truststore_location or None,
            trusted_certificates=settings.ssl_truststore_certificates or None,
        ),
        checks_host=bool(settings.ssl_endpoint_identification_algorithm),
    )
    versions = [PROTOCOLS[name] for name in settings.ssl_enabled_protocols]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    return context


async def sign_in(channel: Channel, settings: Settings, chance: Callable[[int], int], tokens: Tokens) -> None:
    """ApiError if the broker does not let us in."""

    async def prove() -> Credentials:
        is_token = settings.sasl_mechanism == OAUTHBEARER
        secret = await tokens.token() if is_token else settings.sasl_password
        return Credentials(settings.sasl_mechanism, settings.sasl_username, secret)

    await Session(channel, prove, chance, timeout_ms=settings.request_timeout_ms).begin()
