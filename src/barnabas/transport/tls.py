"""TLS for listeners and clients: a context from PEM files or PEM texts, version 1.2 and up.

Which listener has which keys is decided by the broker's settings. The standard library reads keys from files alone, so
a key given as text is in a temporary file, readable by its owner only, while it is being loaded.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.model.settings import InvalidSetting
from barnabas.transport.java_stores import advice, kind_of
from barnabas.transport.tls_authorities import name_authorities

CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
HANDSHAKE_FLIGHTS_MAX: Final = 4  # each side speaks at most so often before both have said everything
# OpenSSL's reasons to end a handshake whose first bytes are not TLS; for these there is no alert to send.
NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST"})
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


class ReplaceableContext(ssl.SSLContext):
    """What a loop holds on to for the life of a listener or a link: every new connection gets the current context.

    Connections that are there keep what they began with. The standard library can add certificates to a context and
    can take none away, so new files make a new context.
    """

    current: ssl.SSLContext

    @classmethod
    def of(cls, context: ssl.SSLContext) -> ReplaceableContext:
        made = cls(context.protocol)
        made.current = context
        made.check_hostname = context.check_hostname  # asked by whoever chooses the name to check
        return made

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        return self.current.wrap_bio(*arguments, **options)


class OutspokenEnd(ssl.SSLObject):
    """The server's end of a connection that tells the client why it is refused.

    A handshake that fails leaves an alert to be sent, which asyncio and uvloop drop with the connection. So they hear
    first that it goes on, for which they send what there is, and of the failure when the client has answered.
    """

    _refusal: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        if self._refusal is not None:
            raise self._refusal
        try:
            super().do_handshake()
        except ssl.SSLWantReadError:
            raise
        except ssl.SSLError as error:
            if error.reason in NOT_TLS:
                raise  # the client would not understand an alert, and may wait for a response of another protocol
            self._refusal = error
            raise ssl.SSLWantReadError from error


def check_chain(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """InvalidSetting unless a node with ``client`` could reach one with ``server``: a handshake in memory, no host."""
    server_in, client_in = ssl.MemoryBIO(), ssl.MemoryBIO()
    client.check_hostname = False
    ends = [server.wrap_bio(server_in, client_in, server_side=True), client.wrap_bio(client_in, server_in)]
    for _ in range(HANDSHAKE_FLIGHTS_MAX):
        try:
            for end in ends:
                with suppress(ssl.SSLWantReadError):
                    end.do_handshake()
        except ssl.SSLError as error:
            raise InvalidSetting(
                f"other nodes would not be let in, or not trust this one: {getattr(error, 'verify_message', '')}"
                f"{'' if hasattr(error, 'verify_message') else error.reason}"
            ) from error


def server_context(
    files: TlsFiles, *, client_auth: str = "none", protocols: Sequence[str] = tuple(PROTOCOLS)
) -> ssl.SSLContext:
    """InvalidSetting, with a sentence, if the files cannot be used.

    A client that is asked for a certificate is told which authorities are trusted, as Java does it: one with several
    keys chooses by that, and one that has none of them shows none.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = OutspokenEnd
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
    if client_auth != "none":
        name_authorities(context, _trusted(files))
    return context


def client_context(files: TlsFiles, *, checks_host: bool = True) -> ssl.SSLContext:
    """What a client needs to talk to a TLS listener; only without a trust store it trusts whom the system trusts."""
    names_trusted = files.trust_store is not None or files.trusted_certificates is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if names_trusted else ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = checks_host
    _load_trust(context, files)
    if files.key_store is not None or files.key is not None or files.certificate_chain is not None:
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
            "TLS with a key of one's own needs ssl.keystore.location, a PEM file with the key and its certificates, or "
            "ssl.keystore.key and ssl.keystore.certificate.chain"
        )


def _load_chain(context: ssl.SSLContext, path: str, password: str, *, named: str) -> None:
    try:
        context.load_cert_chain(path, password=password)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise InvalidSetting(f"{named} cannot be used: {_reason(error, 'keystore', path)}") from error


def _load_trust(context: ssl.SSLContext, files: TlsFiles) -> None:
    try:
        if files.trusted_certificates is not None:
            context.load_verify_locations(cadata=files.trusted_certificates)
        elif files.trust_store is not None:
            context.load_verify_locations(cafile=files.trust_store)
    except (ssl.SSLError, OSError, ValueError) as error:
        reason = _reason(error, "truststore", files.trust_store)
        raise InvalidSetting(f"the trusted certificates cannot be used: {reason}") from error


def _trusted(files: TlsFiles) -> str:
    if files.trusted_certificates is not None:
        return files.trusted_certificates
    with open(files.trust_store or "", encoding="ascii", errors="replace") as file:
        return file.read()


def _reason(error: Exception, store: str, path: str | None) -> str:
    kind = kind_of(_first_bytes(path))
    if kind is not None:
        return f"it is a {kind} store; {advice(store, kind, path or '')}"
    if isinstance(error, ssl.SSLError):
        # The library's words for a file that holds no PEM, a wrong password, or a key of another certificate.
        return error.reason or "it is not PEM, or its password is wrong"
    return getattr(error, "strerror", None) or str(error)


def _first_bytes(path: str | None) -> bytes:
    try:
        with open(path or "", "rb") as file:
            return file.read(4)
    except OSError:
        return b""
