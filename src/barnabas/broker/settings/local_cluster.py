"""The settings of a whole cluster on one machine: one process to a broker, every broker a controller too.

`barnabas up --brokers 3` and the cluster for tests run what is described here; each node's settings are written to a
file, so that any one of them can also be started by hand. More than three brokers share the machine's first three
controllers: a larger quorum would be slower and no safer where one machine fails as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.broker.settings.profile import DEVELOPMENT

CONTROLLERS_MAX: Final = 3
REPLICAS_MAX: Final = 3
BROKERS_MAX: Final = 64
CONTROLLER_LISTENER: Final = "CONTROLLER"
CONFIG_FILE: Final = "server.properties"


class Address(NamedTuple):
    host: str
    port: int
    controller_port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def local_cluster(
    directory: str,
    addresses: Sequence[Address],
    *,
    overrides: Mapping[str, str] | None = None,
    controllers: int = CONTROLLERS_MAX,
) -> dict[int, dict[str, str]]:
    """The settings of every node, by node id; the first is the one that founds the cluster."""
    quorum = ",".join(f"{each.host}:{each.controller_port}" for each in addresses[:controllers])
    return {
        node_id: {
            **DEVELOPMENT,
            **_replication(len(addresses)),
            "node.id": str(node_id),
            "controller.listener.names": CONTROLLER_LISTENER,
            "controller.quorum.bootstrap.servers": quorum,
            "log.dirs": f"{directory}/broker-{node_id}",
            **_roles(each, is_controller=node_id <= controllers),
            **(overrides or {}),
        }
        for node_id, each in enumerate(addresses, 1)
    }


def _roles(address: Address, *, is_controller: bool) -> dict[str, str]:
    listeners = f"PLAINTEXT://{address}"
    if not is_controller:
        return {"process.roles": "broker", "listeners": listeners}
    return {
        "process.roles": "broker,controller",
        "listeners": f"{listeners},{CONTROLLER_LISTENER}://{address.host}:{address.controller_port}",
        "controller.quorum.auto.join.enable": "true",
    }


def _replication(brokers: int) -> dict[str, str]:
    """As many copies as there are brokers, up to three, of which one may be missing."""
    replicas = min(REPLICAS_MAX, brokers)
    in_sync = str(max(1, replicas - 1))
    return {
        "default.replication.factor": str(replicas),
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": in_sync,
    }


def properties_text(settings: Mapping[str, str]) -> str:
    """As a ``server.properties`` file."""
    return "".join(f"{name}={value}\n" for name, value in settings.items())
