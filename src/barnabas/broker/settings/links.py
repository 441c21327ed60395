"""How this node proves who it is where it dials other nodes: the way of signing in, user and password, host names.

As in Kafka the same sections that describe a listener describe who dials it: the login is in ``username`` and
``password`` of its ``sasl.jaas.config``, trust and key are the listener's. ``security_settings`` takes these settings
in, ``link_security`` makes connections of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.model.settings import InvalidSetting, Kind, Setting, SettingTable
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


LINK_SETTINGS: Final = SettingTable(
    (
        Setting(
            name="sasl.mechanism.inter.broker.protocol",
            kind=Kind.STRING,
            default=None,
            doc="How brokers sign in to each other; without it, in the one way that a login is given for.",
            choices=tuple(MODULES),
        ),
        Setting(
            name="sasl.mechanism.controller.protocol",
            kind=Kind.STRING,
            default=None,
            doc="How nodes sign in to controllers; without it, in the one way that a login is given for.",
            choices=tuple(MODULES),
        ),
        Setting(
            name="ssl.endpoint.identification.algorithm",
            kind=Kind.STRING,
            default=HTTPS,
            doc="Whether the certificate of a node that is dialled must name its host: https, or empty for no.",
            choices=(HTTPS, ""),
        ),
        *(
            Setting(
                name=_jaas(mechanism),
                kind=Kind.PASSWORD,
                default=None,
                doc=f"The login by {mechanism}: ScramLoginModule required username=NAME password=PASSWORD;",
                sensitive=True,
                check=_check(mechanism),
            )
            for mechanism in SCRAM_MECHANISMS
        ),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """What holds where a listener of this kind is dialled."""

    inter_broker_mechanism: str | None
    controller_mechanism: str | None
    checks_host: bool
    logins: Mapping[str, Credentials] = field(repr=False)  # by mechanism

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> LinkSettings:
        logins = {}
        for mechanism in MODULES:
            text = values.get(_jaas(mechanism))
            login = parse_login(mechanism, text) if text else None
            if login is not None:
                logins[mechanism] = login
        return cls(
            inter_broker_mechanism=values["sasl.mechanism.inter.broker.protocol"],
            controller_mechanism=values["sasl.mechanism.controller.protocol"],
            checks_host=values["ssl.endpoint.identification.algorithm"] == HTTPS,
            logins=logins,
        )
