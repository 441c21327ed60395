"""Three brokers of one kind as a peer: the same settings for both kinds, but for how a quorum is founded.

Every node is a broker and a controller, with a listener for the cluster itself and for tools, and, where a leg wants
clients to sign in, another one for them. Each broker stands in a rack of its own. Called through `conformance.brokers`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import dropwhile, islice, takewhile
from pathlib import Path

from bench.peers import Peer, PeerFailed
from bench.peers.barnabas import barnabas_command
from bench.probe import NotAnswering, free_port, wait_until_answering
from tools.kafka_jars import java_command

from conformance.security import Security

BROKERS = 3
ALL_READY_SECONDS_MAX = 240.0  # three virtual machines on a machine that may be busy
_HOST = "127.0.0.1"
_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
_FORMAT_SECONDS_MAX = 60
_FATAL = re.compile(r"\b(ERROR|FATAL)\b.*\bfatal\b", re.IGNORECASE)
_HEAP = ("-Xmx400M", "-Xms128M", "-XX:+UseSerialGC")
_REPLICATION = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "offsets.topic.num.partitions": "10",  # fifty of each on three nodes take a small machine long to make
    "transaction.state.log.num.partitions": "10",
}


@dataclass(frozen=True, slots=True)
class _Node:
    number: int
    directory: Path
    port: int
    controller_port: int
    client_port: int

    @property
    def properties(self) -> Path:
        return self.directory / "server.properties"


class Cluster(Peer):
    """What both kinds share; `bootstrap` is for tools, `client_bootstrap` for clients that sign in."""

    def __init__(self, settings: Mapping[str, str] | None = None, security: Security | None = None) -> None:
        super().__init__(settings)
        self.security = security
        ports = [self.port] + [free_port() for _ in range(3 * BROKERS - 1)]
        self.nodes = [
            _Node(
                number, self.data_dir / f"broker-{number}", ports[number - 1], *ports[2 * number + 1 : 2 * number + 3]
            )
            for number in range(1, BROKERS + 1)
        ]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{_HOST}:{node.port}" for node in self.nodes)

    @property
    def client_bootstrap(self) -> str:
        if self.security is None:
            return self.bootstrap
        return ",".join(f"{_HOST}:{node.client_port}" for node in self.nodes)

    @abstractmethod
    def quorum(self) -> dict[str, str]:
        """How the nodes find each other."""

    def write_properties(self) -> None:
        for node in self.nodes:
            node.directory.mkdir(parents=True, exist_ok=True)
            settings = {**self._settings_of(node), **self.quorum(), **_REPLICATION, **self.settings}
            node.properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def _settings_of(self, node: _Node) -> dict[str, str]:
        where = {"PLAINTEXT": node.port, "CONTROLLER": node.controller_port}
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
        more: Mapping[str, str] = {}
        if self.security is not None:
            where["CLIENTS"] = node.client_port
            protocols["CLIENTS"] = self.security.protocol
            more = {f"listener.name.clients.{name}": text for name, text in self.security.listener_settings.items()}
            more = {**more, **self.security.broker_settings}
        listeners = ",".join(f"{name}://{_HOST}:{port}" for name, port in where.items())
        return {
            "process.roles": "broker,controller",
            "node.id": str(node.number),
            "broker.rack": f"RACK{node.number}",
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(node.directory),
            **more,
        }

    def find_port(self) -> None:
        """All of them answer, and know of each other."""
        for node in self.nodes:
            wait_until_answering(_HOST, node.port, alive=self.is_alive, timeout_seconds=ALL_READY_SECONDS_MAX)
        deadline = time.monotonic() + ALL_READY_SECONDS_MAX
        while self._brokers_seen() < BROKERS:
            if time.monotonic() > deadline:
                raise NotAnswering(f"only {self._brokers_seen()} of {BROKERS} brokers came up")
            time.sleep(0.1)
        if self.security is not None:
            self.security.prepare(self.bootstrap)

    def _brokers_seen(self) -> int:
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        return len(admin.list_topics(timeout=10).brokers)


class KafkaCluster(Cluster):
    """Three nodes of Apache Kafka, a Java process each."""

    name = "kafka"

    def quorum(self) -> dict[str, str]:
        voters = ",".join(f"{node.number}@{_HOST}:{node.controller_port}" for node in self.nodes)
        share = "share.coordinator.state.topic."
        return {
            "controller.quorum.voters": voters,
            f"{share}replication.factor": "3",
            f"{share}min.isr": "2",
            # A node ends by itself when it has not found the others by then.
            "initial.broker.registration.timeout.ms": str(int(ALL_READY_SECONDS_MAX * 1000)),
        }

    def prepare(self) -> None:
        self.write_properties()
        for node in self.nodes:
            words = ("format", "-t", _CLUSTER_ID, "-c", str(node.properties))
            command = java_command("kafka.tools.StorageTool", *words)
            done = subprocess.run(command, capture_output=True, text=True, timeout=_FORMAT_SECONDS_MAX)
            if done.returncode != 0:
                raise PeerFailed(f"kafka's storage could not be formatted:\n{done.stdout}{done.stderr}")

    def command(self) -> list[str]:
        options = _HEAP if self.security is None else (*_HEAP, *self.security.java_options)
        commands = [java_command("kafka.Kafka", str(node.properties), options=options) for node in self.nodes]
        path = self.directory / "commands"
        path.write_text("".join(f"{json.dumps(command)}\n" for command in commands))
        return [sys.executable, "-m", "conformance.supervisor", str(path)]

    def log_end(self) -> str:
        """Why the first node ended: the nodes that end after it say much, and none of it is the reason."""
        log = self.log_path.read_text(errors="replace") if self.log_path.exists() else ""
        return fatal_error(log) or super().log_end()


def fatal_error(log: str) -> str:
    """The first error in Kafka's log that ends a node, and its causes, without the stacks; empty if there is none."""
    lines = dropwhile(lambda line: not _FATAL.search(line), log.splitlines())
    error = list(islice(lines, 1))
    # What follows, up to the next line that begins with a time, belongs to it.
    causes = takewhile(lambda line: not line.startswith("["), lines)
    return "\n".join([*error, *(line for line in causes if not line.startswith("\t"))])


class BarnabasCluster(Cluster):
    """`barnabas up --brokers 3`, which starts from the files that it finds."""

    name = "barnabas"

    def quorum(self) -> dict[str, str]:
        addresses = ",".join(f"{_HOST}:{node.controller_port}" for node in self.nodes)
        return {"controller.quorum.bootstrap.servers": addresses, "controller.quorum.auto.join.enable": "true"}

    def prepare(self) -> None:
        self.write_properties()

    def command(self) -> list[str]:
        return [str(barnabas_command()), "up", "--brokers", str(BROKERS), "--data-dir", str(self.data_dir)]
