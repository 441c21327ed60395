"""Certificates at the REST API, and secrets that appear nowhere: not in logs, answers, topics or process arguments."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from certificates import Authority
from connect_workers import in_a_loop, until, worker

from barnabas import ConsumerSettings, ProducerSettings, TopicPartition, blocking
from barnabas.connect.errors import ConfigError
from barnabas.connect.worker.settings import WorkerSettings
from barnabas.connect.worker.worker import Worker
from barnabas.testing import Broker
from barnabas.transport.tls import TlsFiles, client_context
from barnabas.world.real import free_ports

SECRET = "hunter2-correct-horse"
REFERRED = "hunter3-battery-staple"
SECONDS_MAX = 60.0
SQL_SINK = {
    "connector.class": "sql-sink",
    "topics": "orders",
    "connection.url": f"postgresql://shop:{SECRET}@127.0.0.1:1/shop",
    "connection.user": "shop",
    "connection.password": SECRET,
    "auto.create": "true",
    "producer.override.sasl.jaas.config": f"password='{SECRET}'",
}


@in_a_loop
async def test_clients_need_a_certificate_if_there_is_a_truststore(broker: Broker, tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path / "ca"), Authority(tmp_path / "other", "Other CA")
    server, client, other = authority.issue("/CN=worker"), authority.issue("/CN=ann"), stranger.issue("/CN=eve")
    settings = {"rest_tls_keystore": str(server.store), "rest_tls_truststore": str(authority.certificate)}

    def context(store: Path | None) -> ssl.SSLContext:
        return client_context(TlsFiles(key_store=store and str(store), trust_store=str(authority.certificate)))

    async with worker(broker, tmp_path, **settings) as (first, _):
        assert first.url.startswith("https://")
        for store in (None, other.store):
            with pytest.raises((httpx.HTTPError, ssl.SSLError)):
                async with httpx.AsyncClient(verify=context(store)) as refused:
                    await refused.get(f"{first.url}/connectors")
        await until(lambda: first.is_leader)
        async with (
            worker(broker, tmp_path, **settings) as (second, _),
            httpx.AsyncClient(verify=context(client.store), timeout=60) as allowed,
        ):
            config = {"connector.class": "FileStreamSource", "file": "/dev/null", "topic": "lines"}

            async def is_created() -> bool:
                answer = await allowed.put(f"{second.url}/connectors/src/config", json=config)
                return answer.status_code in (200, 201)

            await until(is_created)
            assert not second.is_leader, "it forwards, with its own certificate"


def test_a_truststore_needs_a_keystore(broker: Broker, tmp_path: Path) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "rest.tls.truststore": str(tmp_path / "ca.pem")}
    with pytest.raises(ConfigError, match=r"needs rest\.tls\.keystore"):
        Worker(WorkerSettings.read(settings))


@contextmanager
def worker_process(broker: Broker, directory: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A worker with everything that it prints, and where it is."""
    (port,) = free_ports("127.0.0.1", 1)
    command = [sys.executable, "-m", "barnabas", "connect", "worker", "--port", str(port), "--data-dir", str(directory)]
    command += ["--bootstrap-server", broker.bootstrap_servers]
    environment = os.environ | {"SHOP_PASSWORD": REFERRED}
    with (directory / "worker.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            yield process, f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(SECONDS_MAX)


def wait(condition: object) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.2)


def arguments_of_all() -> bytes:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes())
        except OSError:
            continue
    return b"\n".join(found)


def topics(broker: Broker, *names: str) -> bytes:
    """All bytes of the topics."""
    settings = ConsumerSettings.of({"bootstrap.servers": broker.bootstrap_servers})
    found = []
    with blocking.Consumer(settings) as consumer:
        partitions = [TopicPartition(name, number) for name in names for number in range(5 if "status" in name else 1)]
        consumer.assign(partitions, until_end=True)
        while not consumer.is_at_end:
            found += [(each.key or b"") + (each.value or b"") for each in consumer.poll(timeout_ms=500)]
    return b"\n".join(found)


@pytest.mark.slow
def test_secrets_appear_nowhere(broker: Broker, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    referring = SQL_SINK | {
        "connection.password": "${env:SHOP_PASSWORD}",
        "connection.url": "postgresql://127.0.0.1:1/x",
    }
    shown = []
    with worker_process(broker, tmp_path) as (_, url):

        def ask(method: str, path: str, **body: object) -> httpx.Response:
            answer = httpx.request(method, url + path, timeout=60, **body)  # type: ignore[arg-type]
            shown.append(answer.text)
            return answer

        def is_healthy() -> bool:
            try:
                return httpx.get(f"{url}/health").status_code == 200
            except httpx.HTTPError:
                return False

        wait(is_healthy)
        with blocking.Producer(ProducerSettings.of({"bootstrap.servers": broker.bootstrap_servers})) as producer:
            producer.send("orders", json.dumps({"schema": None, "payload": {"id": 1}}).encode())
        for name, config in (("plain", SQL_SINK), ("referring", referring)):
            assert ask("PUT", f"/connectors/{name}/config", json=config).status_code == 201
        wait(lambda: all("FAILED" in ask("GET", f"/connectors/{name}/status").text for name in ("plain", "referring")))
        assert SECRET.encode() not in arguments_of_all()
        assert REFERRED.encode() not in arguments_of_all()
        for path in ("", "?expand=info&expand=status", "/plain", "/plain/config", "/plain/tasks", "/referring/tasks"):
            ask("GET", f"/connectors{path}")
        ask("POST", "/connectors", json={"name": "plain", "config": SQL_SINK})
        ask("PUT", "/connector-plugins/sql-sink/config/validate", json=SQL_SINK | {"insert.mode": "wrong"})
        ask("PATCH", "/connectors/plain/config", json={"insert.mode": "wrong"})
    logs = [path.read_text(errors="replace") for path in tmp_path.rglob("*.log")]
    assert logs
    for secret in (SECRET, REFERRED):
        assert not [text for text in (*shown, *logs) if secret in text]
        assert secret.encode() not in topics(broker, "connect-status", "connect-checkpoints")
    assert REFERRED.encode() not in topics(broker, "connect-configs")
