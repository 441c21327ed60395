"""``barnabas connect`` against a worker and a real broker."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from connect_workers import in_a_loop, reaches, until, worker

from barnabas import Producer
from barnabas.cli.main import main
from barnabas.client.settings.producer import ProducerSettings
from barnabas.testing import Broker

LINES = """\
name: lines
connector.class: FileStreamSource
file: /tmp/in.txt
topic: lines
---
name: more
connector.class: FileStreamSource
file: /tmp/more.txt
topic: more
state: STOPPED
"""


class Command:
    """Runs ``barnabas connect`` in a thread, and returns what it printed."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._url = url
        self._capsys = capsys

    async def __call__(self, *words: str, code: int = 0, url: bool = True) -> str:
        self._capsys.readouterr()
        told = ["connect", *words, *(["--url", self._url] if url else [])]
        assert await asyncio.to_thread(main, told) == code, self._capsys.readouterr().err
        said = self._capsys.readouterr()
        return said.out if code == 0 else said.out + said.err


@in_a_loop
async def test_files_are_applied_and_managed(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "connectors.yaml"
    path.write_text(LINES)
    async with worker(broker, tmp_path / "plugins") as (made, client):
        await until(lambda: made.is_leader)
        connect = Command(made.url, capsys)
        assert await connect("validate", "-f", str(path)) == "lines: valid\nmore: valid\n"
        assert await connect("apply", "-f", str(path)) == "lines: created\nmore: created\n"
        await reaches(client, "lines", "RUNNING")
        await reaches(client, "more", "STOPPED")
        assert await connect("apply", "-f", str(path)) == "lines: unchanged\nmore: unchanged\n"
        path.write_text(LINES.replace("topic: lines", "topic: other").replace("STOPPED", "RUNNING"))
        assert await connect("apply", "-f", str(path)) == "lines: changed\nmore: running\n"
        await reaches(client, "more", "RUNNING")
        listed = json.loads(await connect("list", "-o", "json"))
        assert [(each["name"], each["state"], each["type"]) for each in listed] == [
            ("lines", "RUNNING", "source"),
            ("more", "RUNNING", "source"),
        ]
        assert "1/1 running" in await connect("list")
        described = await connect("describe", "more")
        assert "/tmp/more.txt" in described
        assert "4096" in described, "what the source reports about itself"
        assert await connect("stop", "more") == "more: stopped\n"
        await reaches(client, "more", "STOPPED")
        entry = [{"partition": {"filename": "/tmp/more.txt"}, "offset": {"position": 2}}]
        await connect("offsets", "more", "--set", json.dumps(entry))
        assert '{"position": 2}' in await connect("offsets", "more")
        await connect("offsets", "more", "--reset")
        assert await connect("restart", "lines") == "lines: restarted\n"
        assert "FileStreamSourceConnector" in await connect("plugins")
        assert "batch.size" in await connect("plugins", "FileStreamSource")
        path.write_text(LINES.partition("---")[0])
        assert await connect("apply", "-f", str(path), "--prune") == "lines: changed\nmore: deleted\n"
        assert await connect("delete", "lines") == "lines: deleted\n"
        assert "not found" in await connect("describe", "lines", code=1)


@in_a_loop
async def test_what_is_wrong_with_a_file_is_said(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.yaml"
    async with worker(broker, tmp_path / "plugins") as (made, _):
        await until(lambda: made.is_leader)
        connect = Command(made.url, capsys)
        for text, said in (
            ("connector.class: x", "needs a name"),
            ("name: a\nstate: ODD", "none of RUNNING"),
            ("name: a\nb: {c: 1}", "keys with dots"),
            ("- 5", "expected a mapping"),
            ("name: [", "not YAML"),
            ("name: a\nconnector.class: Nope", "Nope"),
            ("name: a\nconnector.class: FileStreamSource", "topic"),
        ):
            path.write_text(text)
            assert said in await connect("apply", "-f", str(path), code=1)
        path.write_text("name: a\nconnector.class: FileStreamSource\nfile: x\nunknown.key: 5\ntopic: t\n")
        assert "unknown.key" in await connect("validate", "-f", str(path), code=1)


async def written(broker: Broker, topic: str, *values: bytes) -> None:
    async with Producer(ProducerSettings.of({"bootstrap.servers": broker.bootstrap_servers})) as producer:
        for value in values:
            await producer.send(topic, value, key=b"k")


@in_a_loop
async def test_a_dry_run_shows_each_step_and_changes_nothing(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await written(broker, "orders", b'{"n": "5"}', b"not json")
    path = tmp_path / "sink.json"
    config: dict[str, Any] = {"name": "s", "connector.class": "files-sink", "path": str(tmp_path / "out")}
    config |= {"topics": "orders", "key.converter": "string", "value.converter": "json"}
    config |= {"value.converter.schemas.enable": False, "transforms": "c", "transforms.c.type": "Cast$Value"}
    path.write_text(json.dumps(config | {"transforms.c.spec": "n:int32"}))
    connect = Command("", capsys)
    said = await connect("try", str(path), "-b", broker.bootstrap_servers, url=False)
    assert "Cast$Value" in said
    assert '{"n":5}' in said
    assert "failed" in said
    assert not (tmp_path / "out").exists()
    generated = tmp_path / "gen.yaml"
    generated.write_text("name: g\nconnector.class: datagen\ntopic: orders\nvalue.converter: json\n")
    said = await connect("try", str(generated), "--records", "2", "-b", broker.bootstrap_servers, url=False)
    assert said.count("record ") == 2


@in_a_loop
async def test_dead_letters_are_replayed_once(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await written(broker, "dead", b'{"n": 1}', b'{"n": 2}')
    path = tmp_path / "sink.yaml"
    path.write_text(
        f"name: s\nconnector.class: files-sink\npath: {tmp_path / 'out'}\ntopics: orders\nkey.converter: string\n"
        "value.converter: json\nvalue.converter.schemas.enable: false\nerrors.tolerance: all\n"
        "errors.deadletterqueue.topic.name: dead\n"
    )
    connect = Command("", capsys)
    words = ("replay", str(path), "-b", broker.bootstrap_servers)
    assert await connect(*words, url=False) == "2 dead letters read, 2 written, 0 failed again\n"
    assert await connect(*words, url=False) == "0 dead letters read, 0 written, 0 failed again\n"
    lines = [line for file in (tmp_path / "out").rglob("*.json") for line in file.read_text().splitlines()]
    assert sorted(lines) == ['{"n":1}', '{"n":2}']


def test_a_worker_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["connect", "list", "--url", "http://127.0.0.1:1"]) == 1
    assert "no worker answers at http://127.0.0.1:1" in capsys.readouterr().err


def test_the_worker_command_serves_until_it_is_stopped(broker: Broker, tmp_path: Path) -> None:
    words = ["connect", "worker", "-b", broker.bootstrap_servers, "--port", "0", "--data-dir", str(tmp_path)]
    with subprocess.Popen([sys.executable, "-m", "barnabas", *words], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = next(found[0] for line in process.stderr if (found := re.search(r"http://[\d.:]+", line)))
        assert httpx.get(f"{url}/connectors").json() == []
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
    assert process.returncode == 0
