"""Who signs in, out of ``sasl.jaas.config``: the one line in which Java's clients have name, password and mechanism.

Only the notation is read; no login module is ever loaded. ``settings.py`` is the only caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.model.settings import InvalidSetting
from barnabas.security.plain import LOGIN_MODULE as PLAIN_MODULE
from barnabas.security.plain import parse_options

_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_OAUTH_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_MODULES: Final[Mapping[str, str]] = {
    "PLAIN": PLAIN_MODULE,
    "SCRAM-SHA-256": _SCRAM_MODULE,
    "SCRAM-SHA-512": _SCRAM_MODULE,
    "OAUTHBEARER": _OAUTH_MODULE,
}
_ATTRIBUTES: Final[Mapping[str, str]] = {
    "username": "sasl_username",
    "password": "sasl_password",
    "clientId": "sasl_oauthbearer_client_credentials_client_id",
    "clientSecret": "sasl_oauthbearer_client_credentials_client_secret",
    "scope": "sasl_oauthbearer_scope",
}


def login_of(text: str, mechanism: str) -> dict[str, str]:
    """Attributes of settings and their values. What is wrong with the line is said without showing any of it."""
    if mechanism not in _MODULES:
        raise InvalidSetting("sasl.jaas.config needs sasl.mechanism")
    try:
        options = parse_options(text, module=_MODULES[mechanism])
    except InvalidSetting as error:
        raise InvalidSetting(f"sasl.jaas.config: {error}") from None
    return {_ATTRIBUTES[name]: value for name, value in options.items() if name in _ATTRIBUTES}
