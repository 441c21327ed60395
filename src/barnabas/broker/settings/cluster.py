"""The settings that make a node one of several: its roles, its listeners for other nodes, the quorum, its heartbeats.

The quorum's own timings are declared in ``raft.settings`` and come along here; what is spoken on a listener is in
``security_settings``. The broker's settings hold one :class:`ClusterSettings`; a single node needs none of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from barnabas.broker.settings.endpoints import PORT_MAX
from barnabas.model.declared import Declared, named
from barnabas.model.settings import InvalidSetting, Kind, SettingTable, setting
from barnabas.raft.settings import RaftSettings

BROKER_ROLE: Final = "broker"
CONTROLLER_ROLE: Final = "controller"
CONTROLLER_LISTENERS_DEFAULT: Final = ("CONTROLLER",)


class Server(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_server(text: str) -> Server:
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) <= PORT_MAX):
        raise InvalidSetting(f"{text!r} is not host:port")
    return Server(host.removeprefix("[").removesuffix("]"), int(port))


def _servers_problem(value: Sequence[str]) -> str | None:
    try:
        for text in value:
            parse_server(text)
    except InvalidSetting as error:
        return str(error)
    return None


def parse_voters(value: Sequence[str]) -> dict[int, Server]:
    """The addresses of the voters by their ids, from ``id@host:port``."""
    voters: dict[int, Server] = {}
    for text in value:
        number, at, address = text.partition("@")
        if not (at and number.isascii() and number.isdigit()):
            raise InvalidSetting(f"{text!r} is not id@host:port")
        if int(number) in voters:
            raise InvalidSetting(f"voter {number} is there twice")
        voters[int(number)] = parse_server(address)
    return voters


def _voters_problem(value: Sequence[str]) -> str | None:
    try:
        parse_voters(value)
    except InvalidSetting as error:
        return str(error)
    return None


def _roles_problem(value: Sequence[str]) -> str | None:
    if not value:
        return "a node is a broker, a controller or both"
    return None if len(set(value)) == len(value) else "a role is there twice"


def _names_problem(value: Sequence[str]) -> str | None:
    if not value:
        return "at least one name is needed"
    return None if len(set(value)) == len(value) else "a listener is there twice"


# Settings whose values are combined into one field of ClusterSettings.
_COMBINED: Final = SettingTable(
    (
        setting(
            "controller.quorum.bootstrap.servers",
            Kind.LIST,
            (),
            "Controllers, as host:port of their controller listeners, that are asked which cluster to join.",
            check=_servers_problem,
        ),
        setting(
            "controller.quorum.voters",
            Kind.LIST,
            (),
            "The first controllers, as id@host:port. If there is no cluster yet, the one with the lowest id founds it "
            "and the others join it as voters; from then on the voters are kept in the metadata log.",
            check=_voters_problem,
        ),
        setting(
            "inter.broker.listener.name",
            Kind.STRING,
            None,
            "The listener by which brokers reach each other; without it, the first that is not for controllers.",
        ),
        setting(
            "security.inter.broker.protocol",
            Kind.STRING,
            None,
            "The listener by which brokers reach each other, by the protocol that it is named after.",
            choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        ),
        setting(
            "barnabas.new.cluster",
            Kind.BOOLEAN,
            False,
            "Whether a node with empty directories may found a cluster although it has servers to ask for one.",
        ),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings(Declared):
    roles: tuple[str, ...] = named(
        "process.roles",
        Kind.LIST,
        (BROKER_ROLE, CONTROLLER_ROLE),
        "What this node is: a broker, a controller, or both.",
        choices=(BROKER_ROLE, CONTROLLER_ROLE),
        check=_roles_problem,
    )
    controller_listener_names: tuple[str, ...] = named(
        "controller.listener.names",
        Kind.LIST,
        CONTROLLER_LISTENERS_DEFAULT,
        "Which of the listeners are for controllers; the first is the one by which this node reaches the others.",
        check=_names_problem,
        convert=lambda names: tuple(name.upper() for name in names),
    )
    heartbeat_interval_ms: int = named(
        "broker.heartbeat.interval.ms", Kind.INT, 2000, "How often a broker tells the controller of itself.", minimum=1
    )
    session_timeout_ms: int = named(
        "broker.session.timeout.ms",
        Kind.INT,
        9000,
        "After how long a silence the controller fences a broker.",
        minimum=1,
    )
    registration_timeout_ms: int = named(
        "initial.broker.registration.timeout.ms",
        Kind.INT,
        60_000,
        "How long a starting broker tries to register before it gives up.",
        minimum=1,
    )
    has_controlled_shutdown: bool = named(
        "controlled.shutdown.enable",
        Kind.BOOLEAN,
        True,
        "Whether a broker that is stopped first lets others lead its partitions.",
    )
    idle_interval_ms: int = named(
        "metadata.max.idle.interval.ms",
        Kind.INT,
        500,
        "How often the active controller writes a record when there is nothing else to write; 0 means never.",
        minimum=0,
    )
    bootstrap_servers: tuple[Server, ...]
    inter_broker_listener_name: str | None  # None on a node that is no broker
    may_found_cluster: bool
    raft: RaftSettings

    @property
    def is_broker(self) -> bool:
        return BROKER_ROLE in self.roles

    @property
    def is_controller(self) -> bool:
        return CONTROLLER_ROLE in self.roles

    def is_for_controllers(self, listener_name: str) -> bool:
        return listener_name in self.controller_listener_names

    @classmethod
    def of(
        cls, values: Mapping[str, Any], listener_names: Sequence[str], *, at_start: Sequence[str], node_id: int
    ) -> ClusterSettings:
        """From parsed settings by name and the names of all listeners; InvalidSetting if they cannot go together.

        ``at_start``: the listeners that the node was started with; others may have come since.
        """
        given = _COMBINED.filled(values)
        voters = parse_voters(given["controller.quorum.voters"])
        others = [server for number, server in voters.items() if number != node_id]
        named_servers = [parse_server(text) for text in given["controller.quorum.bootstrap.servers"]]
        raft = RaftSettings.of_values(values)
        made = cls.of_values(
            values,
            bootstrap_servers=tuple(dict.fromkeys([*named_servers, *others])),
            inter_broker_listener_name=None,
            may_found_cluster=given["barnabas.new.cluster"] or node_id == min(voters, default=None),
            raft=raft,
        )
        _check_voters(made.roles, node_id, voters)
        for_controllers = made.controller_listener_names
        _check_listeners(made.roles, listener_names, for_controllers, has_servers=bool(made.bootstrap_servers))
        if made.heartbeat_interval_ms * 2 > made.session_timeout_ms:
            raise InvalidSetting("broker.heartbeat.interval.ms must be at most half of broker.session.timeout.ms")
        if given["inter.broker.listener.name"] and given["security.inter.broker.protocol"]:
            raise InvalidSetting("inter.broker.listener.name and security.inter.broker.protocol: only one may be set")
        first = next((name for name in at_start if name not in for_controllers), None)
        chosen = given["inter.broker.listener.name"] or given["security.inter.broker.protocol"] or first
        return replace(
            made,
            inter_broker_listener_name=_inter_broker(chosen, listener_names, for_controllers),
            raft=replace(raft, auto_join_enable=raft.auto_join_enable and made.is_controller),
        )


CLUSTER_SETTINGS: Final = SettingTable([*ClusterSettings.table(), *_COMBINED, *RaftSettings.table()])


def _check_voters(roles: Sequence[str], node_id: int, voters: Mapping[int, Server]) -> None:
    if not voters:
        return
    if CONTROLLER_ROLE in roles and node_id not in voters:
        raise InvalidSetting(f"controller.quorum.voters: node {node_id} is a controller and must be one of the voters")
    if CONTROLLER_ROLE not in roles and node_id in voters:
        raise InvalidSetting(f"controller.quorum.voters: node {node_id} is no controller and cannot be a voter")


def _check_listeners(
    roles: Sequence[str], listener_names: Sequence[str], for_controllers: Sequence[str], *, has_servers: bool
) -> None:
    others = [name for name in listener_names if name not in for_controllers]
    has_controller_listener = len(others) < len(listener_names)
    wanted = " or ".join(f"{name}://host:port" for name in for_controllers)
    if BROKER_ROLE in roles and not others:
        raise InvalidSetting("listeners: a broker needs one that is not among controller.listener.names")
    if CONTROLLER_ROLE not in roles:
        if has_controller_listener:
            raise InvalidSetting("listeners: only a controller listens on one of controller.listener.names")
        if not has_servers:
            raise InvalidSetting("controller.quorum.bootstrap.servers: a node that is no controller needs one to ask")
    elif BROKER_ROLE not in roles and others:
        raise InvalidSetting(f"listeners: nobody serves {others[0]} on a node that is only a controller")
    elif not has_controller_listener and (has_servers or BROKER_ROLE not in roles):
        raise InvalidSetting(f"listeners: a controller among others needs a listener for them: add {wanted}")


def _inter_broker(chosen: str | None, listener_names: Sequence[str], for_controllers: Sequence[str]) -> str | None:
    others = [name for name in listener_names if name not in for_controllers]
    if chosen is None:
        return others[0] if others else None
    if chosen.upper() not in others:
        raise InvalidSetting(
            f"inter.broker.listener.name: {chosen} is none of the broker's listeners {', '.join(others)}, but the one "
            "by which brokers reach each other"
        )
    return chosen.upper()
