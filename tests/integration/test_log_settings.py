"""A broker from the command line logs where and how its settings say."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from talk import Raw, Talk

from barnabas.model.errors import BarnabasError
from barnabas.testing.broker import BrokerProcess
from barnabas.wire.messages.list_groups import ListGroupsRequest


def test_lines_go_to_a_file_as_json_with_the_audit_log_among_them(tmp_path: Path, name: str) -> None:
    path = tmp_path / "broker.log"
    settings = {"barnabas.log.file": str(path), "barnabas.log.format": "json", "barnabas.audit.enable": "true"}
    with BrokerProcess(tmp_path / "data", settings=settings) as running, Talk(running.bootstrap_servers) as talk:
        talk.create(name)
    found = [json.loads(line) for line in path.read_text().splitlines()]
    (change,) = [line for line in found if line["event"] == "change"]
    assert change["logger"] == "barnabas.audit"
    assert (change["api"], change["of"], change["principal"]) == ("CREATE_TOPICS", name, "User:ANONYMOUS")


def test_a_file_that_cannot_be_written_keeps_the_broker_from_starting(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "barnabas", "up", "--port", "0", "--data-dir", str(tmp_path / "data")]
    command += ["--set", f"barnabas.log.file={tmp_path}/no/such/directory/log"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "barnabas.log.file" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broker_rotates_its_log_file_and_logs_from_a_level_on(tmp_path: Path, name: str) -> None:
    path = tmp_path / "logs" / "broker.log"
    path.parent.mkdir()
    settings = {
        "barnabas.log.file": str(path),
        "barnabas.log.level": "DEBUG",
        "barnabas.log.file.max.bytes": "1024",
        "barnabas.log.file.count": "2",
    }
    with BrokerProcess(tmp_path / "data", settings=settings) as running:
        for number in range(40):
            with Talk(running.bootstrap_servers, client_id=f"client-{number}") as talk, suppress(BarnabasError):
                talk.ask(ListGroupsRequest())
            with Raw(running.bootstrap_servers) as raw:
                raw.send_frame(b"\x7f\x7f\0\0\0\0\0\0\0\0")
                assert raw.is_closed()
    assert sorted(file.name for file in path.parent.iterdir()) == ["broker.log", "broker.log.1", "broker.log.2"]
    assert all(file.stat().st_size <= 1024 for file in path.parent.iterdir())
    assert "INFO" in "".join(file.read_text() for file in path.parent.iterdir())
