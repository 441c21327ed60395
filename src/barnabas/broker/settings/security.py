"""The settings that say who may connect, how, and with which proof; declared once, and their values typed.

``listeners`` names addresses; ``listener.security.protocol.map`` says what is spoken on each. Most settings here may
be given for one listener alone, as ``listener.name.<name>.<setting>`` with the name in lower case, which wins over the
setting for all of them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from ssl import SSLContext
from typing import Any, Final

from barnabas.broker.settings.links import LINK_SETTINGS, LinkSettings
from barnabas.broker.settings.oauth import OAUTH_SETTINGS, OAuthSettings
from barnabas.model.declared import Declared, named
from barnabas.model.settings import InvalidSetting, Kind, Setting, SettingTable, Update, setting
from barnabas.security.oauthbearer import MECHANISM as OAUTHBEARER
from barnabas.security.plain import MECHANISM as PLAIN
from barnabas.security.plain import parse_users
from barnabas.security.principal import MappingRules, parse_principal
from barnabas.security.scram import MECHANISMS as SCRAM_MECHANISMS
from barnabas.transport.tls import CLIENT_AUTH, PROTOCOLS, TlsFiles, server_context

LISTENER_PREFIX: Final = "listener.name."
PROTOCOL_MAP: Final = "listener.security.protocol.map"
PEM: Final = "PEM"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"  # a name; nothing is loaded
SASL_MECHANISMS: Final = (PLAIN, *SCRAM_MECHANISMS, OAUTHBEARER)


class Protocol(enum.IntEnum):
    """What is spoken on a listener, by the number under which brokers register it."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def has_tls(self) -> bool:
        return self in (Protocol.SSL, Protocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        return self in (Protocol.SASL_PLAINTEXT, Protocol.SASL_SSL)


PROTOCOL_MAP_DEFAULT: Final = tuple(f"{protocol.name}:{protocol.name}" for protocol in Protocol)


def parse_protocol_map(entries: tuple[str, ...]) -> dict[str, Protocol]:
    found: dict[str, Protocol] = {}
    for entry in entries:
        name, colon, protocol = entry.partition(":")
        if not (name and colon and protocol.upper() in Protocol.__members__):
            known = ", ".join(Protocol.__members__)
            raise InvalidSetting(f"{entry!r} is not NAME:PROTOCOL with one of {known}")
        if name.upper() in found:
            raise InvalidSetting(f"the listener {name.upper()} is there twice")
        found[name.upper()] = Protocol[protocol.upper()]
    return found


def parse_super_users(text: str) -> tuple[str, ...]:
    return tuple(str(parse_principal(part.strip())) for part in text.split(";") if part.strip())


def _problem(parse: Callable[[Any], object]) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        try:
            parse(value)
        except InvalidSetting as error:
            return str(error)
        return None

    return check


# Keys and trust: new ones are taken up while running, listener by listener.
_KEYS: Final = (
    ("ssl.keystore.type", Kind.STRING, PEM, "The form of keys and certificates."),
    ("ssl.keystore.location", Kind.STRING, None, "A PEM file with the key and its chain of certificates."),
    ("ssl.keystore.certificate.chain", Kind.PASSWORD, None, "The certificates as PEM text."),
    ("ssl.keystore.key", Kind.PASSWORD, None, "The private key as PEM text (PKCS#8)."),
    ("ssl.key.password", Kind.PASSWORD, None, "The password of an encrypted private key."),
    ("ssl.truststore.type", Kind.STRING, PEM, "The form of trusted certificates."),
    ("ssl.truststore.location", Kind.STRING, None, "A PEM file with the certificates to trust."),
    ("ssl.truststore.certificates", Kind.PASSWORD, None, "The certificates to trust, as PEM text."),
)
KEY_SETTINGS: Final = frozenset(name for name, *_ in _KEYS)


def _key_settings() -> Iterator[Setting]:
    for name, kind, default, doc in _KEYS:
        yield setting(
            name,
            kind,
            default,
            doc,
            choices=(PEM,) if default == PEM else (),
            sensitive=kind is Kind.PASSWORD,
            update=Update.PER_BROKER,
        )


# Not about one listener, but about all of them or the broker as a whole.
_WHOLE_BROKER: Final = (
    PROTOCOL_MAP,
    "authorizer.class.name",
    "super.users",
    "allow.everyone.if.no.acl.found",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSecurity(Declared):
    """What holds on one listener."""

    name: str
    protocol: Protocol
    tls: TlsFiles
    oauth: OAuthSettings
    link: LinkSettings
    client_auth: str = named(
        "ssl.client.auth", Kind.STRING, "none", "Whether clients must show a certificate.", choices=tuple(CLIENT_AUTH)
    )
    tls_protocols: tuple[str, ...] = named(
        "ssl.enabled.protocols",
        Kind.LIST,
        tuple(PROTOCOLS),
        "The versions of TLS that are spoken.",
        choices=tuple(PROTOCOLS),
        check=lambda value: None if value else "name at least one",
    )
    mapping_rules: MappingRules = named(
        "ssl.principal.mapping.rules",
        Kind.STRING,
        "DEFAULT",
        "How the subject of a client's certificate becomes the name of its principal.",
        check=_problem(MappingRules),
        convert=MappingRules,
    )
    mechanisms: tuple[str, ...] = named(
        "sasl.enabled.mechanisms", Kind.LIST, (), "The ways of signing in that are offered.", choices=SASL_MECHANISMS
    )
    plain_users: Mapping[str, str] = named(
        "plain.sasl.jaas.config",
        Kind.PASSWORD,
        None,
        "The users of PLAIN, as Kafka writes them: PlainLoginModule required user_NAME=PASSWORD ...;",
        sensitive=True,
        check=_problem(parse_users),
        convert=lambda text: parse_users(text) if text else {},
    )
    frame_bytes_max: int = named(
        "sasl.server.max.receive.size", Kind.INT, 524_288, "The largest frame that is read before sign-in.", minimum=1
    )
    session_ms: int = named(
        "connections.max.reauth.ms",
        Kind.LONG,
        0,
        "After what time a client must sign in again; 0 means never.",
        minimum=0,
    )
    failure_delay_ms: int = named(
        "connection.failed.authentication.delay.ms",
        Kind.INT,
        100,
        "How long a client that failed to sign in waits for its answer.",
        minimum=0,
    )

    def check(self) -> None:
        """InvalidSetting if nobody could ever sign in."""
        if not self.protocol.has_sasl:
            return
        if not self.mechanisms:
            raise InvalidSetting(
                f"the listener {self.name} asks for sign-in: name sasl.enabled.mechanisms, of "
                f"{', '.join(SASL_MECHANISMS)}"
            )
        if PLAIN in self.mechanisms and not self.plain_users:
            raise InvalidSetting(
                f"PLAIN is offered on the listener {self.name}, but there is no user: name them in "
                f"{LISTENER_PREFIX}{self.name.lower()}.plain.sasl.jaas.config, as user_NAME=PASSWORD"
            )
        if OAUTHBEARER in self.mechanisms:
            self.oauth.check(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings(Declared):
    listeners: Mapping[str, ListenerSecurity]  # by name
    for_controllers: ListenerSecurity | None  # where controllers are dialled, whether this node listens there or not
    has_authorizer: bool = named(
        "authorizer.class.name",
        Kind.STRING,
        "",
        "Whether rights are checked: empty, or the name of Kafka's authorizer, which stands for ours.",
        choices=("", STANDARD_AUTHORIZER),
        convert=bool,
    )
    super_users: tuple[str, ...] = named(
        "super.users",
        Kind.STRING,
        "",
        "Principals that may do everything, as User:alice;User:bob.",
        check=_problem(parse_super_users),
        convert=parse_super_users,
    )
    is_open_without_rules: bool = named(
        "allow.everyone.if.no.acl.found",
        Kind.BOOLEAN,
        False,
        "Whether everybody may do everything to a resource that no rule is about.",
    )

    @classmethod
    def of(
        cls, names: tuple[str, ...], given: Mapping[str, str], *, for_controllers: tuple[str, ...] = ()
    ) -> SecuritySettings:
        """InvalidSetting, with a sentence, if a listener could not be served with what is given."""
        plain = {name: text for name, text in given.items() if name in SECURITY_SETTINGS}
        own = listener_settings(given)
        for name, texts in own.items():
            if name not in (*names, *for_controllers):
                first = f"{LISTENER_PREFIX}{name.lower()}.{next(iter(texts))}"
                raise InvalidSetting(f"{first}: there is no listener {name}")
        values = _values(plain)
        protocols = parse_protocol_map(values[PROTOCOL_MAP])
        if PROTOCOL_MAP not in plain and all(_is_plain(name) for name in names):
            # As Kafka: who has not said a word about security gets none between controllers either.
            protocols |= {name: Protocol.PLAINTEXT for name in for_controllers if name not in protocols}
        listeners = {}
        for name in names:
            if name not in protocols:
                raise InvalidSetting(
                    f"listeners: what is spoken on {name}? Say it in listener.security.protocol.map, as "
                    f"{name}:SASL_SSL or one of {', '.join(Protocol.__members__)}"
                )
            listeners[name] = _listener(name, protocols[name], {**plain, **own.get(name, {})})
            listeners[name].check()
        return cls.of_values(
            values,
            listeners=listeners,
            for_controllers=next(
                (
                    listeners.get(name) or _listener(name, protocols[name], {**plain, **own.get(name, {})})
                    for name in for_controllers[:1]
                    if name in protocols
                ),
                None,
            ),
        )


def _all_settings() -> Iterator[Setting]:
    every = [
        setting(
            PROTOCOL_MAP,
            Kind.LIST,
            PROTOCOL_MAP_DEFAULT,
            "What is spoken on each listener, as NAME:PROTOCOL; for one that is open it does not change.",
            check=_problem(parse_protocol_map),
            update=Update.PER_BROKER,
        ),
        *_key_settings(),
        *ListenerSecurity.table(),
        *OAUTH_SETTINGS,
        *SecuritySettings.table(),
        *LINK_SETTINGS,
    ]
    return (replace(each, per_listener=each.name not in _WHOLE_BROKER) for each in every)


SECURITY_SETTINGS: Final = SettingTable(_all_settings())


def listener_settings(given: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """What is given for single listeners: by the listener's name in upper case, then by setting."""
    found: dict[str, dict[str, str]] = {}
    for full, text in given.items():
        if not full.startswith(LISTENER_PREFIX):
            continue
        name, dot, setting = full.removeprefix(LISTENER_PREFIX).partition(".")
        if not dot or setting in _WHOLE_BROKER or setting not in SECURITY_SETTINGS:
            hint = SECURITY_SETTINGS.suggestion(setting)
            raise InvalidSetting(f"{full!r} cannot be set for one listener{hint}")
        found.setdefault(name.upper(), {})[setting] = text
    return found


def _is_plain(listener_name: str) -> bool:
    """Whether a listener that goes by the default map, or is named freely, speaks neither TLS nor SASL."""
    return listener_name not in Protocol.__members__ or Protocol[listener_name] is Protocol.PLAINTEXT


def tls_context(listener: ListenerSecurity) -> SSLContext | None:
    """None where TLS is not spoken. Files are read now: InvalidSetting says what is wrong with them."""
    if not listener.protocol.has_tls:
        return None
    return server_context(listener.tls, client_auth=listener.client_auth, protocols=listener.tls_protocols)


def _values(texts: Mapping[str, str]) -> dict[str, Any]:
    parsed = SECURITY_SETTINGS.parse(texts)
    return SECURITY_SETTINGS.filled(parsed)


def _listener(name: str, protocol: Protocol, texts: Mapping[str, str]) -> ListenerSecurity:
    values = _values(texts)
    return ListenerSecurity.of_values(
        values,
        name=name,
        protocol=protocol,
        tls=TlsFiles(
            key_store=values["ssl.keystore.location"],
            certificate_chain=values["ssl.keystore.certificate.chain"],
            key=values["ssl.keystore.key"],
            key_password=values["ssl.key.password"],
            trust_store=values["ssl.truststore.location"],
            trusted_certificates=values["ssl.truststore.certificates"],
        ),
        oauth=OAuthSettings.of_values(values),
        link=LinkSettings.of(values),
    )
