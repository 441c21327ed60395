"""What of a client's settings is needed to get through a listener's door: TLS files, user and password.

The exchange itself is ``transport.sign_in``, which brokers use among themselves too. ``connections`` imports this only
for listeners that ask for it.
"""

from __future__ import annotations

from collections.abc import Callable
from ssl import SSLContext

from barnabas.client.settings import Settings
from barnabas.transport import sign_in as exchange
from barnabas.transport.channel import Channel
from barnabas.transport.tls import TlsFiles, client_context


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
    if settings.has_sasl:
        credentials = exchange.Credentials(settings.sasl_mechanism, settings.sasl_username, settings.sasl_password)
        await exchange.sign_in(channel, credentials, chance)
