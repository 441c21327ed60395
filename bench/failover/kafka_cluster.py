"""Three nodes of Apache Kafka on this machine, each broker and controller, any of which can be killed.

It has the face of ``barnabas.testing.Cluster`` and runs with Kafka's defaults, but for the addresses, a heap that
leaves room for three, and what the proof needs of topics.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from pathlib import Path
from typing import Self

from tools.kafka_jars import java_command

from bench.probe import free_port, wait_until_answering

HOST = "127.0.0.1"
READY_SECONDS_MAX = 120.0
STOP_SECONDS_MAX = 60.0
_JAVA_OPTIONS = ("-Xmx512M", "-Xms256M", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


class KafkaCluster:
    """`with KafkaCluster() as cluster: ... cluster.bootstrap_servers`; nodes are numbered from 1."""

    def __init__(self, brokers: int = 3) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="failover-kafka-"))
        self._ports = {number: (free_port(), free_port()) for number in range(1, brokers + 1)}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{HOST}:{port}" for port, _ in self._ports.values())

    def __enter__(self) -> Self:
        try:
            self._format()
            for number in self._ports:
                self._spawn(number)
            for number in self._ports:
                self._until_ready(number)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for number in list(self._processes):
            self.kill(number)
        shutil.rmtree(self.directory, ignore_errors=True)

    def start(self, number: int) -> None:
        self._spawn(number)
        self._until_ready(number)

    def kill(self, number: int) -> None:
        process = self._processes.pop(number)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self, number: int) -> None:
        process = self._processes.pop(number)
        process.terminate()
        process.wait(STOP_SECONDS_MAX)

    def _format(self) -> None:
        servers = ",".join(f"{HOST}:{port}" for _, port in self._ports.values())
        ids = {number: base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=") for number in self._ports}
        voters = ",".join(f"{number}@{HOST}:{port}:{ids[number]}" for number, (_, port) in self._ports.items())
        for number, (port, controller_port) in self._ports.items():
            listeners = f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}"
            settings = {
                "process.roles": "broker,controller",
                "node.id": str(number),
                "controller.quorum.bootstrap.servers": servers,
                "listeners": listeners,
                "advertised.listeners": listeners,
                "inter.broker.listener.name": "PLAINTEXT",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
                "log.dirs": str(self.directory / f"data-{number}"),
                "group.initial.rebalance.delay.ms": "0",
            }
            self._properties(number).write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
            words = ("format", "-t", _CLUSTER_ID, "-c", str(self._properties(number)), "--initial-controllers", voters)
            subprocess.run(java_command("kafka.tools.StorageTool", *words), check=True, capture_output=True)

    def _properties(self, number: int) -> Path:
        return self.directory / f"server-{number}.properties"

    def _spawn(self, number: int) -> None:
        command = java_command("kafka.Kafka", str(self._properties(number)), options=_JAVA_OPTIONS)
        with (self.directory / f"output-{number}.log").open("ab") as log:
            self._processes[number] = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def _until_ready(self, number: int) -> None:
        process = self._processes[number]
        wait_until_answering(
            HOST, self._ports[number][0], alive=lambda: process.poll() is None, timeout_seconds=READY_SECONDS_MAX
        )
