"""Settings of Kafka's clients that govern nothing here, and those for what is not offered: each name is known.

Files written for Java's clients name them. One that has no effect is taken, and the log and the reference say why; one
that would change what a client does is refused unless it says what is so anyway, with what to use instead. Nothing
that guards a connection is among those without effect. ``settings.py`` asks for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from barnabas.model.settings import Kind, Setting

_CODE: Final = "Java's classes do not run here"
_SERDE: Final = f"{_CODE}; give the client a serde instead: key= and value=, see barnabas.serdes"
_INTERCEPTORS: Final = f"{_CODE}; do it in Python, around send and poll"
_METRICS: Final = "the clients keep no metrics of their own"
_KERBEROS: Final = "GSSAPI is not among the mechanisms"
_JAVA: Final = "it names a part of the Java platform"
_PEM: Final = "stores are PEM files, or PEM texts in ssl.keystore.key and ssl.truststore.certificates"
_STORES: Final = "a PEM file has no password of its own; that of the key is ssl.key.password"
_RENEWAL: Final = "a token is asked for when a connection needs one and the last has no more than a fifth of its life"
_LOGIN: Final = "request.timeout.ms is how long a token is waited for, and a connection is dialled again as any other"
_ASSERTION: Final = "tokens are had by client id and secret, or from a function: sasl_oauthbearer_token_provider"
_HANDLER: Final = f"{_CODE}; tokens of your own come from a function: sasl_oauthbearer_token_provider"
_CHECKS: Final = "the broker checks tokens"
_SHARE: Final = "share groups are not offered"
_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer"

# Name, type, and why it has no effect.
_UNUSED: Final[tuple[tuple[str, Kind, str], ...]] = (
    ("auto.include.jmx.reporter", Kind.BOOLEAN, _METRICS),
    ("enable.metrics.push", Kind.BOOLEAN, "the clients push no metrics to brokers (KIP-714)"),
    ("metadata.max.idle.ms", Kind.LONG, "a topic that was written to stays known"),
    (
        "metadata.recovery.rebootstrap.trigger.ms",
        Kind.LONG,
        "bootstrap.servers are asked as soon as no broker that is known answers",
    ),
    ("metrics.num.samples", Kind.INT, _METRICS),
    ("metrics.recording.level", Kind.STRING, _METRICS),
    ("metrics.sample.window.ms", Kind.LONG, _METRICS),
    ("partitioner.availability.timeout.ms", Kind.LONG, "a partition is left when it has no leader"),
    ("partitioner.rack.aware", Kind.BOOLEAN, "keyless records go to partitions wherever they are led"),
    ("retries", Kind.INT, "calls are repeated until default.api.timeout.ms is over"),
    ("sasl.kerberos.kinit.cmd", Kind.STRING, _KERBEROS),
    ("sasl.kerberos.min.time.before.relogin", Kind.LONG, _KERBEROS),
    ("sasl.kerberos.service.name", Kind.STRING, _KERBEROS),
    ("sasl.kerberos.ticket.renew.jitter", Kind.DOUBLE, _KERBEROS),
    ("sasl.kerberos.ticket.renew.window.factor", Kind.DOUBLE, _KERBEROS),
    ("sasl.login.connect.timeout.ms", Kind.INT, _LOGIN),
    ("sasl.login.read.timeout.ms", Kind.INT, _LOGIN),
    ("sasl.login.retry.backoff.max.ms", Kind.LONG, _LOGIN),
    ("sasl.login.retry.backoff.ms", Kind.LONG, _LOGIN),
    ("sasl.login.refresh.buffer.seconds", Kind.SHORT, _RENEWAL),
    ("sasl.login.refresh.min.period.seconds", Kind.SHORT, _RENEWAL),
    ("sasl.login.refresh.window.factor", Kind.DOUBLE, _RENEWAL),
    ("sasl.login.refresh.window.jitter", Kind.DOUBLE, _RENEWAL),
    ("sasl.oauthbearer.assertion.claim.aud", Kind.STRING, _ASSERTION),
    ("sasl.oauthbearer.assertion.claim.exp.seconds", Kind.INT, _ASSERTION),
    ("sasl.oauthbearer.assertion.claim.iss", Kind.STRING, _ASSERTION),
    ("sasl.oauthbearer.assertion.claim.jti.include", Kind.BOOLEAN, _ASSERTION),
    ("sasl.oauthbearer.assertion.claim.nbf.seconds", Kind.INT, _ASSERTION),
    ("sasl.oauthbearer.assertion.claim.sub", Kind.STRING, _ASSERTION),
    ("sasl.oauthbearer.clock.skew.seconds", Kind.INT, _CHECKS),
    ("sasl.oauthbearer.expected.audience", Kind.LIST, _CHECKS),
    ("sasl.oauthbearer.expected.issuer", Kind.STRING, _CHECKS),
    ("sasl.oauthbearer.jwks.endpoint.refresh.ms", Kind.LONG, _CHECKS),
    ("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", Kind.LONG, _CHECKS),
    ("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", Kind.LONG, _CHECKS),
    ("sasl.oauthbearer.jwks.endpoint.url", Kind.STRING, _CHECKS),
    ("sasl.oauthbearer.scope.claim.name", Kind.STRING, _CHECKS),
    ("sasl.oauthbearer.sub.claim.name", Kind.STRING, _CHECKS),
    ("share.acknowledgement.mode", Kind.STRING, _SHARE),
    ("share.acquire.mode", Kind.STRING, _SHARE),
    ("ssl.keymanager.algorithm", Kind.STRING, _JAVA),
    ("ssl.protocol", Kind.STRING, "ssl.enabled.protocols says which versions are spoken"),
    ("ssl.provider", Kind.STRING, _JAVA),
    ("ssl.secure.random.implementation", Kind.STRING, _JAVA),
    ("ssl.trustmanager.algorithm", Kind.STRING, _JAVA),
)

# Name, type, the values that change nothing, and what to do instead of any other.
_UNOFFERED: Final[tuple[tuple[str, Kind, tuple[Any, ...], str], ...]] = (
    ("bootstrap.controllers", Kind.LIST, (), "the brokers answer for their controllers; name bootstrap.servers"),
    ("client.dns.lookup", Kind.STRING, ("use_all_dns_ips",), "all addresses of a name are tried"),
    ("config.providers", Kind.LIST, (), "values are what they say, and name no other place"),
    ("interceptor.classes", Kind.LIST, (), _INTERCEPTORS),
    ("key.deserializer", Kind.CLASS, (), _SERDE),
    ("key.serializer", Kind.CLASS, (), _SERDE),
    ("metric.reporters", Kind.LIST, (("org.apache.kafka.common.metrics.JmxReporter",),), f"{_CODE}, and {_METRICS}"),
    ("sasl.client.callback.handler.class", Kind.CLASS, (), _CODE),
    ("sasl.login.callback.handler.class", Kind.CLASS, (f"{_OAUTH}.OAuthBearerLoginCallbackHandler",), _HANDLER),
    ("sasl.login.class", Kind.CLASS, (), _CODE),
    ("sasl.oauthbearer.assertion.algorithm", Kind.STRING, ("RS256",), _ASSERTION),
    ("sasl.oauthbearer.assertion.file", Kind.STRING, (), _ASSERTION),
    ("sasl.oauthbearer.assertion.private.key.file", Kind.STRING, (), _ASSERTION),
    ("sasl.oauthbearer.assertion.private.key.passphrase", Kind.PASSWORD, (), _ASSERTION),
    ("sasl.oauthbearer.assertion.template.file", Kind.STRING, (), _ASSERTION),
    ("sasl.oauthbearer.header.urlencode", Kind.BOOLEAN, (False,), "client id and secret are sent as they are"),
    ("sasl.oauthbearer.jwt.retriever.class", Kind.CLASS, (f"{_OAUTH}.DefaultJwtRetriever",), _HANDLER),
    (
        "sasl.oauthbearer.jwt.validator.class",
        Kind.CLASS,
        (f"{_OAUTH}.DefaultJwtValidator",),
        "the broker checks tokens",
    ),
    ("security.providers", Kind.STRING, (), _CODE),
    ("ssl.cipher.suites", Kind.LIST, (), "the TLS library's own choice of suites is used"),
    ("ssl.engine.factory.class", Kind.CLASS, (), _CODE),
    ("ssl.keystore.password", Kind.PASSWORD, (), _STORES),
    ("ssl.keystore.type", Kind.STRING, ("PEM",), _PEM),
    ("ssl.truststore.password", Kind.PASSWORD, (), _STORES),
    ("ssl.truststore.type", Kind.STRING, ("PEM",), _PEM),
    (
        "transaction.two.phase.commit.enable",
        Kind.BOOLEAN,
        (False,),
        "hand_over lets another process end a transaction, within transaction.timeout.ms",
    ),
    ("value.deserializer", Kind.CLASS, (), _SERDE),
    ("value.serializer", Kind.CLASS, (), _SERDE),
)


def unused_settings() -> Iterator[Setting]:
    """Those that may say anything."""
    for name, kind, reason in _UNUSED:
        yield Setting(name=name, kind=kind, default=None, doc=f"No effect: {reason}.", unused=True)


def unoffered_settings() -> Iterator[Setting]:
    """Those that may only say what is so anyway."""
    for name, kind, harmless, reason in _UNOFFERED:
        yield Setting(
            name=name,
            kind=kind,
            default=harmless[0] if harmless else None,
            doc=f"Not offered: {reason}.",
            check=_only(harmless, reason),
            sensitive=kind is Kind.PASSWORD,
        )


def _only(harmless: tuple[Any, ...], reason: str) -> Callable[[Any], str | None]:
    return lambda value: None if value in (*harmless, "", (), None) else f"this is not offered: {reason}"
