"""The settings of OAUTHBEARER: where the keys of the issuer are, and what its tokens must say; declared once.

Without a source of keys, or without an issuer and an audience to expect, a listener that offers the mechanism does not
start: it would believe anybody. None of them can be changed from afar.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from barnabas.http.client import parse_url
from barnabas.model.declared import Declared, named
from barnabas.model.settings import InvalidSetting, Kind, SettingTable, setting
from barnabas.security.oauthbearer import MECHANISM, Expectations
from barnabas.security.plain import parse_options

PREFIX: Final = "sasl.oauthbearer."
KEY_FILE: Final = "barnabas.sasl.oauthbearer.jwks.file"
KEY_URL: Final = f"{PREFIX}jwks.endpoint.url"
# What a file written for Kafka says so that tokens are checked at all; here they always are.
LOGIN_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
CHECKERS: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
)


def _url_problem(value: Any) -> str | None:
    if str(value).startswith("file:"):
        return f"a file is named in {KEY_FILE}, by its path"
    try:
        parse_url(value)
    except InvalidSetting as error:
        return str(error)
    return None


def _login_problem(value: Any) -> str | None:
    try:
        parse_options(value, module=LOGIN_MODULE)
    except InvalidSetting as error:
        return str(error)
    return None


def _or_none_at_all(values: tuple[str, ...] | None) -> tuple[str, ...]:
    return values or ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSettings(Declared):
    url: str | None = named(
        KEY_URL,
        Kind.STRING,
        None,
        "Where the issuer of tokens shows its keys (JWKS), by http or https.",
        check=_url_problem,
    )
    file: str | None = named(KEY_FILE, Kind.STRING, None, "A file with the keys of the issuer of tokens (JWKS).")
    refresh_ms: int = named(
        f"{PREFIX}jwks.endpoint.refresh.ms", Kind.LONG, 3_600_000, "How often the keys are looked at again.", minimum=1
    )
    retry_ms: int = named(
        f"{PREFIX}jwks.endpoint.retry.backoff.ms",
        Kind.LONG,
        100,
        "How soon the keys are asked for again after a failure; it doubles each time.",
        minimum=1,
    )
    retry_ms_max: int = named(
        f"{PREFIX}jwks.endpoint.retry.backoff.max.ms", Kind.LONG, 10_000, "The longest such wait.", minimum=1
    )
    audiences: tuple[str, ...] = named(
        f"{PREFIX}expected.audience", Kind.LIST, None, "For whom tokens must be; one of these.", convert=_or_none_at_all
    )
    issuer: str | None = named(f"{PREFIX}expected.issuer", Kind.STRING, None, "From whom tokens must be.")
    subject_claim: str = named(f"{PREFIX}sub.claim.name", Kind.STRING, "sub", "Which claim names the user.")
    scope_claim: str = named(f"{PREFIX}scope.claim.name", Kind.STRING, "scope", "Which claim holds the scope.")
    skew_ms: int = named(
        f"{PREFIX}clock.skew.seconds",
        Kind.INT,
        30,
        "By how much the issuer's clock may differ.",
        minimum=0,
        convert=lambda seconds: seconds * 1000,
    )

    @property
    def expected(self) -> Expectations:
        """What a token must say to be believed."""
        return Expectations(
            issuer=self.issuer or None,
            audiences=self.audiences,
            subject_claim=self.subject_claim,
            scope_claim=self.scope_claim,
            skew_ms=self.skew_ms,
        )

    def check(self, listener: str) -> None:
        """InvalidSetting if anybody could make a token that would be believed."""
        offered = f"{MECHANISM} is offered on the listener {listener}, but"
        if (self.url is None) == (self.file is None):
            raise InvalidSetting(f"{offered} there must be one source of keys: set {KEY_URL} or {KEY_FILE}")
        if self.expected.issuer is None or not self.expected.audiences:
            raise InvalidSetting(
                f"{offered} it does not say whose tokens are believed: set {PREFIX}expected.issuer and "
                f"{PREFIX}expected.audience"
            )


# What files for Kafka set so that tokens are checked; here they always are.
OAUTH_SETTINGS: Final = SettingTable(
    (
        *OAuthSettings.table(),
        setting(
            "oauthbearer.sasl.server.callback.handler.class",
            Kind.STRING,
            None,
            "Who checks tokens: as in Kafka, but they are checked without it too.",
            choices=CHECKERS,
        ),
        setting(
            "oauthbearer.sasl.jaas.config",
            Kind.PASSWORD,
            None,
            "As in Kafka: OAuthBearerLoginModule required;",
            sensitive=True,
            check=_login_problem,
        ),
    )
)
