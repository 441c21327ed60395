"""What any client can be told, and how a client's settings are declared: typed, with Kafka's names and defaults.

Each setting is declared once, as a field: ``ProducerSettings(linger_ms=5)`` in Python and ``linger.ms`` in a mapping
read by :meth:`Settings.of`. Those of producers and consumers alone are in modules of their own. What a setting does
is decided where it is read, never here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self, TypeAlias, TypeVar

from barnabas.model.settings import INT32_MAX, InvalidSetting, Kind, Setting, SettingTable

DEFAULT_PORT: Final = 9092
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL_MECHANISMS: Final = ("", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")

TokenProvider: TypeAlias = Callable[[], str | Awaitable[str]]

S = TypeVar("S", bound="Settings")

_TEXTS: Final = (Kind.STRING, Kind.PASSWORD, Kind.CLASS)
_TYPES: Final[Mapping[Kind, tuple[str, tuple[type, ...]]]] = {
    Kind.BOOLEAN: ("True or False", (bool,)),
    Kind.SHORT: ("a whole number", (int,)),
    Kind.INT: ("a whole number", (int,)),
    Kind.LONG: ("a whole number", (int,)),
    Kind.DOUBLE: ("a number", (int, float)),
    Kind.LIST: ("a tuple of texts", (tuple,)),
    **dict.fromkeys(_TEXTS, ("a text", (str,))),
}
_ALIASES: Final = {"all": "-1"}  # acks=all is how everyone writes it
_OTHER_NAMES: Final = {"partitioner": "partitioner.class"}  # as librdkafka has it


def setting(kind: Kind, default: Any, doc: str, **limits: Any) -> Any:
    return field(default=default, metadata=facts(kind, doc, **limits))


def facts(kind: Kind, doc: str, **limits: Any) -> Mapping[str, Any]:
    return {"kind": kind, "doc": doc, "limits": limits}


def secret(doc: str) -> Any:
    """One that is never printed."""
    return field(default="", repr=False, metadata=facts(Kind.PASSWORD, doc, sensitive=True))


def milliseconds(default: int, doc: str, *, minimum: int = 0, maximum: int = INT32_MAX) -> Any:
    return setting(Kind.INT, default, doc, minimum=minimum, maximum=maximum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The part that every client shares: how to reach a cluster and how patient to be with it."""

    bootstrap_servers: tuple[str, ...] = setting(Kind.LIST, ("127.0.0.1:9092",), "Where to ask for the cluster first.")
    client_id: str = setting(Kind.STRING, "barnabas", "The name under which brokers log and limit this client.")
    request_timeout_ms: int = milliseconds(30_000, "How long to wait for one answer before the connection is dropped.")
    default_api_timeout_ms: int = milliseconds(60_000, "How long a call may go on trying.")
    retry_backoff_ms: int = milliseconds(100, "The pause before the first retry; it doubles from there.")
    retry_backoff_max_ms: int = milliseconds(1_000, "The longest pause before a retry.")
    reconnect_backoff_ms: int = milliseconds(50, "The pause before a broker is dialled again; it doubles from there.")
    reconnect_backoff_max_ms: int = milliseconds(1_000, "The longest pause before a broker is dialled again.")
    socket_connection_setup_timeout_ms: int = milliseconds(10_000, "How long dialling a broker may take.", minimum=1)
    socket_connection_setup_timeout_max_ms: int = milliseconds(
        30_000, "The longest that dialling may take: the time doubles with every broker that cannot be dialled."
    )
    connections_max_idle_ms: int = setting(
        Kind.LONG, 540_000, "How long a connection may be idle before it is closed; -1 for ever.", minimum=-1
    )
    send_buffer_bytes: int = setting(
        Kind.INT, -1, "The size of a socket's buffer for what is sent; -1 leaves it to the system.", minimum=-1
    )
    receive_buffer_bytes: int = setting(
        Kind.INT, -1, "The size of a socket's buffer for what comes; -1 leaves it to the system.", minimum=-1
    )
    metadata_recovery_strategy: str = setting(
        Kind.STRING,
        "rebootstrap",
        "Whether bootstrap.servers are asked again when no broker that is known answers.",
        choices=("rebootstrap", "none"),
    )
    metadata_max_age_ms: int = milliseconds(300_000, "When to ask for the cluster's picture again without a reason.")
    receive_frame_max_bytes: int = setting(
        Kind.INT, 128 * 1024 * 1024, "The largest answer that is accepted.", minimum=1024, maximum=INT32_MAX
    )

    security_protocol: str = setting(
        Kind.STRING,
        "PLAINTEXT",
        "What is spoken with brokers: in the clear or by TLS, signed in or not.",
        choices=PROTOCOLS,
    )
    sasl_mechanism: str = setting(Kind.STRING, "", "How to sign in.", choices=SASL_MECHANISMS)
    sasl_username: str = setting(Kind.STRING, "", "Who signs in.")
    sasl_password: str = secret("The password of who signs in.")
    sasl_jaas_config: str = secret("Who signs in, in Java's notation: the login module, username and password.")
    sasl_oauthbearer_token_endpoint_url: str = setting(
        Kind.STRING, "", "Where to get tokens for OAUTHBEARER, by client id and secret."
    )
    sasl_oauthbearer_client_credentials_client_id: str = setting(Kind.STRING, "", "Who asks for a token.")
    sasl_oauthbearer_client_credentials_client_secret: str = secret("The secret of who asks for a token.")
    sasl_oauthbearer_scope: str = setting(Kind.STRING, "", "What the token is to be good for.")
    # No text can say it, so it is in no table: a function, or a coroutine function, that answers with a token.
    sasl_oauthbearer_token_provider: TokenProvider | None = field(default=None, repr=False, compare=False)
    ssl_endpoint_identification_algorithm: str = setting(
        Kind.STRING,
        "https",
        "Whether a broker's certificate must bear the name that was dialled: https or nothing.",
        choices=("https", "HTTPS", ""),
    )
    ssl_enabled_protocols: tuple[str, ...] = setting(
        Kind.LIST, TLS_VERSIONS, "The versions of TLS that are spoken.", choices=TLS_VERSIONS
    )
    ssl_truststore_certificates: str = setting(Kind.STRING, "", "The certificates to trust, as PEM text.")
    ssl_keystore_certificate_chain: str = setting(Kind.STRING, "", "This client's certificates, as PEM text.")
    ssl_keystore_key: str = secret("This client's private key, as PEM text.")
    ssl_truststore_location: str = setting(
        Kind.STRING, "", "A PEM file with the certificates to trust; without one, those that the system trusts."
    )
    ssl_keystore_location: str = setting(
        Kind.STRING, "", "A PEM file with this client's key and certificates, where brokers ask for them."
    )
    ssl_key_password: str = secret("The password of an encrypted private key.")

    @property
    def has_tls(self) -> bool:
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def has_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL_")

    def __post_init__(self) -> None:
        for setting in self.table():
            value = _typed(setting, getattr(self, setting.attribute))
            object.__setattr__(self, setting.attribute, value)
            if value is not None:
                setting.checked(value)
        for server in self.bootstrap_servers:
            address_of(server)
        if not self.bootstrap_servers:
            raise InvalidSetting("bootstrap.servers is empty: name at least one host:port")
        if not self.ssl_enabled_protocols:
            raise InvalidSetting("ssl.enabled.protocols is empty: name at least one")
        if self.sasl_jaas_config:
            self._read_login()
        if self.has_sasl:
            self._check_login()

    def _read_login(self) -> None:
        from barnabas.client.settings.login import login_of

        for attribute, value in login_of(self.sasl_jaas_config, self.sasl_mechanism).items():
            if not getattr(self, attribute):
                object.__setattr__(self, attribute, value)

    def _check_login(self) -> None:
        if self.sasl_mechanism != "OAUTHBEARER":
            if not (self.sasl_mechanism and self.sasl_username):
                raise InvalidSetting(
                    f"security.protocol={self.security_protocol} needs sasl.mechanism and sasl.username"
                )
        elif bool(self.sasl_oauthbearer_token_endpoint_url) == (self.sasl_oauthbearer_token_provider is not None):
            raise InvalidSetting(
                "sasl.mechanism=OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url, or in Python "
                "sasl_oauthbearer_token_provider, and not both"
            )
        elif self.sasl_oauthbearer_token_endpoint_url and not self.sasl_oauthbearer_client_credentials_client_id:
            raise InvalidSetting(
                "sasl.oauthbearer.token.endpoint.url needs sasl.oauthbearer.client.credentials.client.id"
            )

    @classmethod
    def table(cls) -> SettingTable:
        return SettingTable(
            _declared(entry.name, entry.default, entry.metadata) for entry in fields(cls) if entry.metadata
        )

    @classmethod
    def known(cls) -> SettingTable:
        """These, and all others that Kafka's clients have: they have no effect here, or are refused with a reason."""
        from barnabas.client.settings.unused import unoffered_settings, unused_settings

        declared = cls.table()
        others = (*unused_settings(), *unoffered_settings())
        return SettingTable((*declared, *(each for each in others if each.name not in declared)))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """From Kafka's names (``linger.ms``) or ours (``linger_ms``), values as text or typed."""
        attributes = {entry.name for entry in fields(cls)}
        found: dict[str, Any] = {}
        table = cls.table()
        for given, value in values.items():
            name = given.replace("_", ".")
            name = _OTHER_NAMES.get(name, name)
            if name not in table and name.replace(".", "_") in attributes:  # what no text can say
                found[name.replace(".", "_")] = value
                continue
            if name not in table:
                table = cls.known()
                if name not in table:
                    _advise(given)
            setting = table[name]
            read = _read(setting, value) if isinstance(value, str) else value
            if setting.attribute in attributes:
                found[setting.attribute] = read
                continue
            setting.checked(read)
            if setting.unused:
                _say_unused(setting)
        return cls(**found)


def _advise(name: str) -> None:
    """InvalidSetting with what to use instead, if it is a name of other clients."""
    from barnabas.client.settings.foreign import advice

    instead = advice(name)
    if instead is not None:
        raise InvalidSetting(f"{name} is what other clients have; instead: {instead}")


def _say_unused(setting: Setting) -> None:
    from barnabas.observe.log import logger

    logger("client").warning("setting_without_effect", name=setting.name, why=setting.doc)


def settled(kind: type[S], given: S | None) -> S:
    """The settings that a client was given, or the defaults; a mapping, as other clients take it, is not one."""
    if given is None:
        return kind()
    if not isinstance(given, kind):
        raise InvalidSetting(
            f"{kind.__name__} are wanted, not {type(given).__name__}: {kind.__name__}.of reads a mapping"
        )
    return given


def _read(setting: Setting, text: str) -> Any:
    return setting.parse(_ALIASES.get(text, text))


def _typed(setting: Setting, value: Any) -> Any:
    """The value, which a text may stand for as it does in a file; InvalidSetting if it is of another type.

    A string is a sequence of strings too, and "false" is true: nobody means that.
    """
    if isinstance(value, str) and setting.kind not in _TEXTS:
        return _read(setting, value)
    if isinstance(value, list) and setting.kind is Kind.LIST:
        return tuple(value)
    what, types = _TYPES[setting.kind]
    is_number = isinstance(value, bool) and bool not in types
    if (value is None and setting.default is None) or (isinstance(value, types) and not is_number):
        return value
    said = "" if setting.sensitive else f"={value!r}"
    raise InvalidSetting(f"{setting.name}{said} is not {what}")


def _declared(attribute: str, default: Any, metadata: Mapping[str, Any]) -> Setting:
    return Setting(
        name=attribute.replace("_", "."),
        kind=metadata["kind"],
        default=default,
        doc=metadata["doc"],
        **metadata["limits"],
    )


def address_of(server: str) -> tuple[str, int]:
    """``host``, ``host:port`` or ``[v6]:port``; a scheme like PLAINTEXT:// is allowed and dropped."""
    text = server.rpartition("://")[2]
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        port = rest[1:] if rest.startswith(":") else ("" if bracket and not rest else "?")
    else:
        host, _, port = text.partition(":")
    port = port or str(DEFAULT_PORT)
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise InvalidSetting(f"bootstrap.servers: {server!r} is not host:port")
    return host, int(port)
