"""Connect workers as processes: Kafka's own, and ours with the same settings. Both answer the same REST API."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
from tools.connect_jars import connect_libraries
from tools.kafka_jars import program

from barnabas.world.real import free_ports

START_SECONDS_MAX = 180.0
STOP_SECONDS_MAX = 60.0
REQUEST_SECONDS_MAX = 120.0
RETRY_SECONDS = 0.3
CONFLICT = 409
HEAP = ("-Xmx768M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class WorkerFailed(Exception):
    """A worker did not start, or a connector did not do what it was asked for."""


class ConnectWorker:
    """A worker of the cluster ``group``, whose topics begin with the group's name."""

    title = ""

    def __init__(self, bootstrap: str, directory: Path, *, group: str) -> None:
        self.bootstrap = bootstrap
        self.directory = directory
        self.group = group
        (self.port,) = free_ports("127.0.0.1", 1)
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = directory / f"{self.title}-{self.port}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.client = self._new_client()

    def _new_client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=REQUEST_SECONDS_MAX)

    def command(self) -> list[str]:
        """Return the command that runs the worker."""
        raise NotImplementedError

    def storage(self) -> dict[str, str]:
        """Return the settings that both kinds of workers have: a cluster and its topics."""
        return {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group,
            "config.storage.topic": f"{self.group}-configs",
            "offset.storage.topic": f"{self.group}-offsets",
            "status.storage.topic": f"{self.group}-status",
            "offset.storage.partitions": "3",
            "status.storage.partitions": "1",
        }

    @property
    def pid(self) -> int:
        """Return the id of the process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        """Start the worker; return when it takes connectors."""
        if self.client.is_closed:
            self.client = self._new_client()
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise WorkerFailed(f"{self.title} ended: {self.log_end()}")
            try:
                if self.client.get("/health", timeout=5).status_code == 200:
                    return self
            except httpx.HTTPError:
                pass
            time.sleep(RETRY_SECONDS)
        raise WorkerFailed(f"{self.title} did not start within {START_SECONDS_MAX:g} s: {self.log_end()}")

    def stop(self) -> None:
        """Stop the worker in order; kill it if it does not end."""
        self.client.close()
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """End the worker as a crash would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def log_end(self) -> str:
        """Return the last lines of the log."""
        return self.log_path.read_text(errors="replace")[-1500:]

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def request(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """Send a request; one that comes while the workers elect a leader or rebalance is repeated."""
        deadline = time.monotonic() + REQUEST_SECONDS_MAX
        while True:
            answer = self.client.request(method, path, json=body)
            if answer.status_code != CONFLICT or "already exists" in answer.text or time.monotonic() > deadline:
                return answer
            time.sleep(RETRY_SECONDS)

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector or change its configuration."""
        answer = self.request("PUT", f"/connectors/{name}/config", dict(config))
        if answer.status_code not in (200, 201):
            raise WorkerFailed(f"{self.title} refuses {name}: {answer.text[:1500]}")

    def reaches(self, name: str, state: str) -> None:
        """Wait until a connector and its tasks are in a state."""
        deadline = time.monotonic() + START_SECONDS_MAX
        states: set[str] = set()
        while time.monotonic() < deadline:
            answer = self.request("GET", f"/connectors/{name}/status")
            if answer.status_code == 200:
                status = answer.json()
                states = {status["connector"]["state"], *(task["state"] for task in status["tasks"])}
                if states == {state} and (status["tasks"] or state == "STOPPED"):
                    return
                if "FAILED" in states and state != "FAILED":
                    raise WorkerFailed(f"{self.title}: {name} failed: {_trace(answer.json())}")
            time.sleep(RETRY_SECONDS)
        raise WorkerFailed(f"{self.title}: {name} is {states}, not {state}")


def _trace(status: Any) -> str:
    parts = [status["connector"], *status["tasks"]]
    return " ".join(part["trace"] for part in parts if part.get("trace"))[-2500:]


class KafkaWorker(ConnectWorker):
    """Kafka's distributed worker; ``plugins`` are directories of its ``plugin.path``."""

    title = "kafka-worker"

    def __init__(self, bootstrap: str, directory: Path, *, group: str, plugins: Sequence[Path] = ()) -> None:
        super().__init__(bootstrap, directory, group=group)
        self._plugins = plugins

    def command(self) -> list[str]:
        converter = "org.apache.kafka.connect.json.JsonConverter"
        settings = self.storage() | {
            "key.converter": converter,
            "value.converter": converter,
            **{f"{each}.storage.replication.factor": "1" for each in ("config", "offset", "status")},
            "listeners": self.url,
            "offset.flush.interval.ms": "500",
        }
        if self._plugins:
            settings["plugin.path"] = ",".join(str(path) for path in self._plugins)
        path = self.directory / "kafka-worker.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        libraries = connect_libraries()
        logging = f"-Dlog4j2.configurationFile={libraries.parent / 'log4j2.yaml'}"
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        return [program("java"), *HEAP, logging, "-cp", f"{libraries}/*", main, str(path)]


class OurWorker(ConnectWorker):
    """``barnabas connect worker``; further settings by name."""

    title = "barnabas-worker"

    def __init__(
        self, bootstrap: str, directory: Path, *, group: str, settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(bootstrap, directory, group=group)
        self._settings = dict(settings or {})

    def command(self) -> list[str]:
        data = self.directory / f"connect-data-{self.port}"
        given = self.storage() | {"data.dir": str(data), "session.timeout.ms": "6000"}
        given |= {"checkpoint.storage.topic": f"{self.group}-checkpoints", **self._settings}
        words = [sys.executable, "-m", "barnabas", "connect", "worker", "--port", str(self.port)]
        words += ["--bootstrap-server", self.bootstrap]
        for key, value in given.items():
            words += ["--set", f"{key}={value}"]
        return words
