"""Kafka's settings for what is not offered here: each may keep its default, and is refused with a sentence otherwise.

Files written for Kafka name them, mostly as they are anyway. Where a setting would guard something, or name code to
run, nothing but its default may be given; those that only tune what is not there are in ``unused_settings``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from barnabas.model.settings import Kind, Setting, Update

_CODE: Final = "no code is loaded because a setting names it"
_PEM: Final = "key and trust stores are PEM files, and only a key has a password: ssl.key.password"
_TIERS: Final = "tiered storage is not offered"
_TOKENS: Final = "delegation tokens are not offered"
_PEM_BUILDER: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
_JWT: Final = "org.apache.kafka.common.security.oauthbearer"
_LOGIN: Final = "nodes sign in to each other by PLAIN and SCRAM"

# Name, type, default, whether Kafka lets it change while running, and why it can only be its default.
_ROWS: Final[tuple[tuple[str, Kind, Any, Update, str], ...]] = (
    ("alter.config.policy.class.name", Kind.CLASS, None, Update.READ_ONLY, _CODE),
    ("create.topic.policy.class.name", Kind.CLASS, None, Update.READ_ONLY, _CODE),
    ("client.quota.callback.class", Kind.CLASS, None, Update.READ_ONLY, _CODE),
    ("principal.builder.class", Kind.CLASS, _PEM_BUILDER, Update.PER_BROKER, _CODE),
    ("sasl.client.callback.handler.class", Kind.CLASS, None, Update.READ_ONLY, _CODE),
    ("sasl.login.callback.handler.class", Kind.CLASS, None, Update.READ_ONLY, _CODE),
    ("sasl.login.class", Kind.CLASS, None, Update.READ_ONLY, _CODE),
    ("sasl.server.callback.handler.class", Kind.CLASS, None, Update.READ_ONLY, _CODE),
    ("sasl.oauthbearer.jwt.retriever.class", Kind.CLASS, f"{_JWT}.DefaultJwtRetriever", Update.READ_ONLY, _CODE),
    ("sasl.oauthbearer.jwt.validator.class", Kind.CLASS, f"{_JWT}.DefaultJwtValidator", Update.READ_ONLY, _CODE),
    ("security.providers", Kind.STRING, None, Update.READ_ONLY, _CODE),
    ("ssl.engine.factory.class", Kind.CLASS, None, Update.PER_BROKER, _CODE),
    ("config.providers", Kind.LIST, (), Update.CLUSTER_WIDE, "values are what they say, and name no other place"),
    ("ssl.cipher.suites", Kind.LIST, (), Update.PER_BROKER, "the library's own choice of suites is used"),
    ("ssl.keystore.password", Kind.PASSWORD, None, Update.PER_BROKER, _PEM),
    ("ssl.truststore.password", Kind.PASSWORD, None, Update.PER_BROKER, _PEM),
    ("ssl.allow.san.changes", Kind.BOOLEAN, False, Update.READ_ONLY, "new keys are checked by those who dial them"),
    ("ssl.allow.dn.changes", Kind.BOOLEAN, False, Update.READ_ONLY, "new keys are checked by those who dial them"),
    (
        "sasl.jaas.config",
        Kind.PASSWORD,
        None,
        Update.PER_BROKER,
        "as in Kafka it is given for a listener and a way of signing in: listener.name.NAME.plain.sasl.jaas.config",
    ),
    ("sasl.oauthbearer.client.credentials.client.secret", Kind.PASSWORD, None, Update.READ_ONLY, _LOGIN),
    ("sasl.oauthbearer.assertion.private.key.passphrase", Kind.PASSWORD, None, Update.READ_ONLY, _LOGIN),
    ("delegation.token.secret.key", Kind.PASSWORD, None, Update.READ_ONLY, _TOKENS),
    ("remote.log.storage.system.enable", Kind.BOOLEAN, False, Update.READ_ONLY, _TIERS),
    ("follower.fetch.last.tiered.offset.enable", Kind.BOOLEAN, False, Update.CLUSTER_WIDE, _TIERS),
    ("cordoned.log.dirs", Kind.LIST, (), Update.PER_BROKER, "a directory is in use or it is not in log.dirs"),
    ("early.start.listeners", Kind.LIST, None, Update.READ_ONLY, "listeners for clients open when the broker answers"),
    ("metadata.log.dir", Kind.STRING, None, Update.READ_ONLY, "metadata are kept in the first of log.dirs"),
    ("offsets.topic.compression.codec", Kind.INT, 0, Update.READ_ONLY, "committed offsets are not compressed"),
    (
        "transaction.two.phase.commit.enable",
        Kind.BOOLEAN,
        False,
        Update.READ_ONLY,
        "a transaction that nobody ends is ended after its time",
    ),
)


def unoffered_settings() -> Iterator[Setting]:
    for name, kind, default, update, reason in _ROWS:
        yield Setting(
            name=name,
            kind=kind,
            default=default,
            doc=f"No effect here: it can only be left as it is, because {reason}.",
            update=update,
            sensitive=kind is Kind.PASSWORD,
            check=_only(default, reason),
            unused=True,
        )


def _only(default: Any, reason: str) -> Callable[[Any], str | None]:
    return lambda value: None if value in (default, default or "") else f"this is not offered: {reason}"
