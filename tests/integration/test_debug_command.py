"""``barnabas debug bundle``: what is in the archive, what is not, and what it does when things fail."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas.cli.main import main
from barnabas.testing import Broker
from barnabas.world.real import free_ports

SECONDS_MAX = 60
LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SECRETS = ("hush-hush", "whisper", "murmur-1", "murmur-2")


class Archive(NamedTuple):
    said: str
    texts: dict[str, str]

    @property
    def steps(self) -> dict[str, dict[str, Any]]:
        return {row["step"]: row for row in json.loads(self.texts["manifest.json"])}


def opened(path: Path, said: str) -> Archive:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return Archive(said, {name: archive.read(name).decode() for name in archive.namelist()})


def barnabas(*words: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", *words],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def signed_in(tmp_path: Path) -> Iterator[tuple[Path, list[str]]]:
    """A broker that asks for passwords, in the background, and how to get in."""
    port, http = free_ports("127.0.0.1", 2)
    config = tmp_path / "config.properties"
    config.write_text(
        f"listeners=SASL_PLAINTEXT://127.0.0.1:{port}\n"
        "sasl.enabled.mechanisms=PLAIN\n"
        "offsets.topic.replication.factor=1\n"
        f"listener.name.sasl_plaintext.plain.sasl.jaas.config={LOGIN_MODULE} required user_ada=hush-hush;\n"
        f"barnabas.http.port={http}\n"
        f"barnabas.log.file={tmp_path / 'own.log'}\n"
    )
    data = tmp_path / "data"
    barnabas("up", "--detach", "--config", str(config), "--data-dir", str(data))
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "ada"}
    words = [word for name, value in login.items() for word in ("-X", f"{name}={value}")]
    yield data, ["-b", f"127.0.0.1:{port}", *words, "-X", "sasl.password=hush-hush"]
    barnabas("down", "--data-dir", str(data))


def test_an_archive_has_what_a_maintainer_asks_for_and_no_secret(
    signed_in: tuple[Path, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data, where = signed_in
    assert main(["topic", "create", "orders", "-p", "2", "-c", "retention.ms=7200000", *where]) == 0
    assert main(["produce", "orders", "-v", "what a record says", *where]) == 0
    assert main(["consume", "orders", "-g", "billing", "-e", *where]) == 0
    # What should not be in a log, and somebody wrote there all the same.
    with (data / "barnabas.log").open("a") as log:
        log.write("opened with password=murmur-1, by http://me:murmur-2@there, and hush-hush again\n")
    monkeypatch.setenv("BARNABAS_SET_SSL_KEY_PASSWORD", "whisper")
    path = tmp_path / "a.zip"
    capsys.readouterr()
    assert main(["debug", "bundle", "-f", str(path), "--data-dir", str(data), *where]) == 0
    archive = opened(path, capsys.readouterr().out)
    texts = archive.texts
    assert archive.said == f"{path}: {len(texts)} files, {archive.said.rpartition(', ')[2]}"
    assert not [row for row in archive.steps.values() if row["error"] or not row["is_there"] or row["cut"]]
    assert json.loads(texts["versions.json"])["barnabas"]
    assert [row["node_id"] for row in json.loads(texts["status.json"])] == [1]
    assert [broker["id"] for broker in json.loads(texts["cluster.json"])["brokers"]] == [1]
    assert json.loads(texts["quorum.json"])["leader_id"] == 1
    assert json.loads(texts["health.json"]) == []
    assert "orders" in {topic["name"] for topic in json.loads(texts["topics.json"])}
    (retention,) = [row for row in json.loads(texts["topic-settings.json"])["orders"] if row["name"] == "retention.ms"]
    assert (retention["value"], retention["source"]) == ("7200000", "topic")
    (group,) = json.loads(texts["groups.json"])
    assert (group["group_id"], sum(lag["committed"] for lag in group["lag"].values())) == ("billing", 1)
    assert {"if broker 1 dies now"} == {finding["about"] for finding in json.loads(texts["doctor.json"])}
    assert "kafka_brokers" in texts["metrics-1.txt"]
    settings = {row["name"]: row for row in json.loads(texts["broker-settings.json"])["1"]}
    assert settings["listeners"]["value"].startswith("SASL_PLAINTEXT")
    assert any(row["is_sensitive"] for row in settings.values())
    assert all(row["value"] is None for row in settings.values() if row["is_sensitive"])
    logs = "".join(text for name, text in texts.items() if name.startswith("log-"))
    assert "password=(secret)" in logs
    assert "log-2.txt" in texts, "the file that the broker's settings name is there too"
    whole = "\n".join(texts.values()) + archive.said
    assert not [secret for secret in SECRETS if secret in whole]
    assert "what a record says" not in whole
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_nobody_to_ask_is_said_and_the_rest_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    path = tmp_path / "a.zip"
    words = ["debug", "bundle", "-f", str(path), "--data-dir", str(tmp_path), "-b", f"127.0.0.1:{port}"]
    assert main([*words, "--http", f"127.0.0.1:{port}", "-o", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    archive = opened(path, "")
    assert said["files"] == len(archive.texts)
    assert set(said["failed"]) == {"cluster.json", "metrics-1.txt", "readyz-1.txt"}
    assert "nothing is listening there" in said["failed"]["cluster.json"]
    assert archive.steps["cluster.json"]["error"] == said["failed"]["cluster.json"]
    assert "versions.json" in archive.texts
    assert main(words) == 1
    assert "is there already" in capsys.readouterr().err


@pytest.fixture
def silent_address() -> Iterator[str]:
    """It takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    held.append(server.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for each in held:
            each.close()


def test_a_step_that_hangs_is_ended_and_the_others_are_taken(
    shared_broker: Broker, silent_address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.zip"
    words = ["--data-dir", str(tmp_path), "--http", silent_address, "--seconds", "3"]
    started = time.monotonic()
    assert main(["debug", "bundle", "-f", str(path), *words, "-b", shared_broker.bootstrap_servers]) == 0
    assert time.monotonic() - started < SECONDS_MAX
    archive = opened(path, capsys.readouterr().out)
    assert "without metrics-1.txt: " in archive.said
    assert "within 3 s" in archive.steps["metrics-1.txt"]["error"]
    assert archive.steps["cluster.json"]["is_there"]


def test_what_is_too_long_is_cut_and_said_so(
    shared_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.cli.files.debug_steps.TEXT_CHARACTERS_MAX", 1000)
    monkeypatch.setattr("barnabas.cli.files.debug_steps.LOG_BYTES_MAX", 100)
    (tmp_path / "barnabas.log").write_text("".join(f"line {number}\n" for number in range(1000)))
    path = tmp_path / "a.zip"
    words = ["--data-dir", str(tmp_path), "-b", shared_broker.bootstrap_servers]
    assert main(["debug", "bundle", "-f", str(path), *words]) == 0
    archive = opened(path, "")
    assert (archive.steps["broker-settings.json"]["cut"], len(archive.texts["broker-settings.json"])) == (True, 1000)
    lines = archive.texts["log-1.txt"].splitlines()
    assert (archive.steps["log-1.txt"]["cut"], lines[-1]) == (True, "line 999")
    assert all(line.startswith("line ") for line in lines)


def test_a_group_that_was_never_read_for_is_there_too(
    shared_broker: Broker, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["produce", name, "-v", "x", "-b", shared_broker.bootstrap_servers]) == 0
    consumer = Consumer({"bootstrap.servers": shared_broker.bootstrap_servers, "group.id": name})
    consumer.commit(offsets=[TopicPartition(name, 0, 0)], asynchronous=False)
    consumer.close()
    path = tmp_path / "a.zip"
    words = ["--data-dir", str(tmp_path), "-b", shared_broker.bootstrap_servers]
    assert main(["debug", "bundle", "-f", str(path), *words]) == 0
    (group,) = [row for row in json.loads(opened(path, "").texts["groups.json"]) if row["group_id"] == name]
    assert (group["state"], group["lag"][f"{name}-0"]["end"]) == ("Empty", 1)


def test_a_file_that_cannot_be_written_is_one_line(
    shared_broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--data-dir", str(tmp_path), "-b", shared_broker.bootstrap_servers]
    assert main(["debug", "bundle", "-f", str(tmp_path / "no" / "a.zip"), *words]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
