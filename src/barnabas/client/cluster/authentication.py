"""The security settings of a client as the transport needs them: a TLS context, and the credentials for SASL.

``transport.session`` authenticates, and does so again where sessions expire. ``connections`` imports this module only
for listeners that require TLS or SASL.
"""

from __future__ import annotations

from ssl import SSLContext

from barnabas.client.cluster.tokens import Tokens
from barnabas.client.settings.client import Settings
from barnabas.transport.sign_in import OAUTHBEARER, Credentials
from barnabas.transport.tls import PROTOCOLS, TlsFiles, client_context


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


async def credentials(settings: Settings, tokens: Tokens | None) -> Credentials:
    """Return what authenticates this client; raises NoToken if a token is needed and cannot be fetched."""
    if settings.sasl_mechanism == OAUTHBEARER:
        secret = await (tokens or Tokens(settings)).token()
    else:
        secret = settings.sasl_password
    return Credentials(settings.sasl_mechanism, settings.sasl_username, secret)
