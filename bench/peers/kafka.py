"""Apache Kafka as a peer: one node, broker and controller in one process, from plain Maven jars.

It runs with Kafka's own defaults, the flags that its start script gives to Java, and its default heap of 1 GB; only
what a single node needs (replication factors of one) is set. Formatting the storage is not part of its start-up time.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tools.kafka_jars import java_command

from bench.peers.peer import Peer, PeerFailed
from bench.probe import free_port

_HEAP = ("-Xmx1G", "-Xms1G")
# What Kafka's start script passes when nobody says otherwise.
_JAVA_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
_FORMAT_SECONDS_MAX = 60


class KafkaPeer(Peer):
    """`settings` are added to (or replace) lines of the server's properties; `heap` are the two heap flags of Java."""

    name = "kafka"
    learns = True
    heap = _HEAP

    def __init__(
        self, settings: Mapping[str, str] | None = None, *, number: int = 1, controller_port: int | None = None
    ) -> None:
        super().__init__(settings)
        self._number = number
        self._controller_port = controller_port

    def prepare(self) -> None:
        if self.data_dir.exists():
            return
        controller_port = self._controller_port or free_port()
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(self._number),
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}",
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.data_dir),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self.settings,
        }
        # Where the voters are named, the quorum is known; otherwise this node is all of it.
        has_voters = "controller.quorum.voters" in settings
        if has_voters:
            del settings["controller.quorum.bootstrap.servers"]
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        alone = () if has_voters else ("--standalone",)
        arguments = ("format", *alone, "-t", _CLUSTER_ID, "-c", str(self._properties))
        formatted = subprocess.run(
            java_command("kafka.tools.StorageTool", *arguments),
            capture_output=True,
            text=True,
            timeout=_FORMAT_SECONDS_MAX,
        )
        if formatted.returncode != 0:
            raise PeerFailed(f"kafka's storage could not be formatted:\n{formatted.stdout}{formatted.stderr}")

    def command(self) -> list[str]:
        return java_command("kafka.Kafka", str(self._properties), options=(*self.heap, *_JAVA_OPTIONS))

    @property
    def _properties(self) -> Path:
        return self.directory / "server.properties"
