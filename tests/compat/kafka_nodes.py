"""Apache Kafka of several versions as brokers that tests can start: one node each, from Maven's jars.

4.3 and 3.9 are their own controllers; 2.8 has a ZooKeeper beside it, from the same jars. All run with Kafka's own
defaults, but for what a single node needs and for groups that need not wait three seconds for their members.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from bench.peers.peer import Peer, PeerFailed
from bench.probe import free_port, wait_until_answering
from tools.kafka_jars import KAFKA_VERSION, java_command

VERSIONS = {"4.3": KAFKA_VERSION, "3.9": "3.9.1", "2.8": "2.8.2"}

_HEAP = ("-Xmx400M", "-Xms100M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
_FORMAT_SECONDS_MAX = 120
_ONE_NODE = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
}


class KafkaNode(Peer):
    """`with KafkaNode("3.9") as node: node.bootstrap`."""

    name = "kafka"

    def __init__(self, version: str, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(settings)
        self.version = VERSIONS[version]
        self.has_zookeeper = version == "2.8"
        self._zookeeper: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        if self.data_dir.exists():
            return
        own = self._with_zookeeper() if self.has_zookeeper else self._with_quorum()
        settings = {"log.dirs": str(self.data_dir), **_ONE_NODE, **own, **self.settings}
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        if self.has_zookeeper:
            return
        arguments = ("format", "--standalone", "-t", _CLUSTER_ID, "-c", str(self._properties))
        formatted = subprocess.run(
            java_command("kafka.tools.StorageTool", *arguments, version=self.version),
            capture_output=True,
            text=True,
            timeout=_FORMAT_SECONDS_MAX,
        )
        if formatted.returncode != 0:
            raise PeerFailed(f"kafka's storage could not be formatted:\n{formatted.stdout}{formatted.stderr}")

    def _with_quorum(self) -> dict[str, str]:
        controller_port = free_port()
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}",
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }
        if self.version == KAFKA_VERSION:
            settings |= {
                "group.consumer.min.heartbeat.interval.ms": "100",
                "group.consumer.heartbeat.interval.ms": "100",
                "share.coordinator.state.topic.replication.factor": "1",
                "share.coordinator.state.topic.min.isr": "1",
            }
        return settings

    def _with_zookeeper(self) -> dict[str, str]:
        port = free_port()
        properties = self.directory / "zookeeper.properties"
        properties.write_text(
            f"dataDir={self.directory / 'zookeeper'}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\n"
        )
        command = java_command(
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            str(properties),
            options=("-Xmx128M",),
            version=self.version,
        )
        with self.log_path.open("ab") as log:
            self._zookeeper = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        return {
            "broker.id": "1",
            "zookeeper.connect": f"127.0.0.1:{port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
        }

    def command(self) -> list[str]:
        return java_command("kafka.Kafka", str(self._properties), options=_HEAP, version=self.version)

    def stop(self) -> None:
        super().stop()
        if self._zookeeper is not None:
            self._zookeeper.kill()
            self._zookeeper.wait()
            self._zookeeper = None

    def __enter__(self) -> Self:
        super().__enter__()
        wait_until_answering(self.host, self.port, alive=self.is_alive, timeout_seconds=60.0)
        return self

    @property
    def _properties(self) -> Path:
        return self.directory / "server.properties"
