"""How this node proves who it is where it dials other nodes: the way of signing in, user and password, host names.

As in Kafka the same sections that describe a listener describe who dials it: the login is in ``username`` and
``password`` of its ``sasl.jaas.config``, trust and key are the listener's. ``security_settings`` takes these settings
in, ``link_security`` makes connections of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.model.declared import Declared, named
from barnabas.model.settings import InvalidSetting, Kind, SettingTable, setting
from barnabas.security.plain import LOGIN_MODULE as PLAIN_MODULE
from barnabas.security.plain import MECHANISM as PLAIN
from barnabas.security.plain import parse_options
from barnabas.security.scram import MECHANISMS as SCRAM_MECHANISMS
from barnabas.transport.sign_in import Credentials

SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
MODULES: Final = {PLAIN: PLAIN_MODULE, **dict.fromkeys(SCRAM_MECHANISMS, SCRAM_MODULE)}
HTTPS: Final = "https"


def parse_login(mechanism: str, text: str) -> Credentials | None:
    """The login that a line of login configuration holds, if it holds one."""
    options = parse_options(text, module=MODULES[mechanism])
    if "username" not in options:
        return None
    return Credentials(mechanism, options["username"], options.get("password", ""))


def _check(mechanism: str) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        try:
            parse_login(mechanism, value)
        except InvalidSetting as error:
            return str(error)
        return None

    return check


def _jaas(mechanism: str) -> str:
    return f"{mechanism.lower()}.sasl.jaas.config"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings(Declared):
    """What holds where a listener of this kind is dialled."""

    inter_broker_mechanism: str | None = named(
        "sasl.mechanism.inter.broker.protocol",
        Kind.STRING,
        None,
        "How brokers sign in to each other; without it, in the one way that a login is given for.",
        choices=tuple(MODULES),
    )
    controller_mechanism: str | None = named(
        "sasl.mechanism.controller.protocol",
        Kind.STRING,
        None,
        "How nodes sign in to controllers; without it, in the one way that a login is given for.",
        choices=tuple(MODULES),
    )
    checks_host: bool = named(
        "ssl.endpoint.identification.algorithm",
        Kind.STRING,
        HTTPS,
        "Whether the certificate of a node that is dialled must name its host: https, or empty for no.",
        choices=(HTTPS, ""),
        convert=lambda algorithm: algorithm == HTTPS,
    )
    logins: Mapping[str, Credentials] = field(repr=False)  # by mechanism

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> LinkSettings:
        logins = {}
        for mechanism in MODULES:
            text = values.get(_jaas(mechanism))
            login = parse_login(mechanism, text) if text else None
            if login is not None:
                logins[mechanism] = login
        return cls.of_values(values, logins=logins)


LINK_SETTINGS: Final = SettingTable(
    (
        *LinkSettings.table(),
        *(
            setting(
                _jaas(mechanism),
                Kind.PASSWORD,
                None,
                f"The login by {mechanism}: ScramLoginModule required username=NAME password=PASSWORD;",
                sensitive=True,
                check=_check(mechanism),
            )
            for mechanism in SCRAM_MECHANISMS
        ),
    )
)
