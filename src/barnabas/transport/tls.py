"""TLS for listeners and clients: a context from PEM files or PEM texts, version 1.2 and up.

Which listener has which keys is decided by the broker's settings. The standard library reads keys from files alone, so
a key given as text is in a temporary file, readable by its owner only, while it is being loaded.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from barnabas.model.settings import InvalidSetting

CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
PROTOCOLS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Where keys and certificates are: in a file each, or given as PEM text."""

    key_store: str | None = None
    certificate_chain: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    trust_store: str | None = None
    trusted_certificates: str | None = field(default=None, repr=False)


def server_context(
    files: TlsFiles, *, client_auth: str = "none", protocols: Sequence[str] = tuple(PROTOCOLS)
) -> ssl.SSLContext:
    """InvalidSetting, with a sentence, if the files cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = min(PROTOCOLS[name] for name in protocols)
    context.maximum_version = max(PROTOCOLS[name] for name in protocols)
    context.options |= ssl.OP_NO_RENEGOTIATION
    _load_key(context, files)
    _load_trust(context, files)
    if client_auth != "none" and files.trust_store is None and files.trusted_certificates is None:
        raise InvalidSetting(
            f"ssl.client.auth={client_auth} needs ssl.truststore.location or ssl.truststore.certificates: whose "
            "certificates are to be trusted?"
        )
    context.verify_mode = CLIENT_AUTH[client_auth]
    return context


def client_context(files: TlsFiles, *, checks_host: bool = True) -> ssl.SSLContext:
    """What a client needs to talk to a TLS listener; without a trust store it trusts whom the system trusts."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = checks_host
    _load_trust(context, files)
    if files.key_store is not None or files.key is not None:
        _load_key(context, files)
    return context


def _load_key(context: ssl.SSLContext, files: TlsFiles) -> None:
    password = files.key_password or ""  # never None: the library would ask on the terminal
    if files.key is not None and files.certificate_chain is not None:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(f"{files.key}\n{files.certificate_chain}\n")
            file.flush()
            _load_chain(context, file.name, password, named="ssl.keystore.key")
    elif files.key_store is not None:
        _load_chain(context, files.key_store, password, named=f"ssl.keystore.location={files.key_store}")
    else:
        raise InvalidSetting(
            "a TLS listener needs ssl.keystore.location, a PEM file with the key and its certificates, or "
            "ssl.keystore.key and ssl.keystore.certificate.chain"
        )


def _load_chain(context: ssl.SSLContext, path: str, password: str, *, named: str) -> None:
    try:
        context.load_cert_chain(path, password=password)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise InvalidSetting(f"{named} cannot be used: {_reason(error)}") from error


def _load_trust(context: ssl.SSLContext, files: TlsFiles) -> None:
    try:
        if files.trusted_certificates is not None:
            context.load_verify_locations(cadata=files.trusted_certificates)
        elif files.trust_store is not None:
            context.load_verify_locations(cafile=files.trust_store)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise InvalidSetting(f"the trusted certificates cannot be used: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        # The library's words for a file that holds no PEM, a wrong password, or a key of another certificate.
        return error.reason or "it is not PEM, or its password is wrong"
    return getattr(error, "strerror", None) or str(error)
