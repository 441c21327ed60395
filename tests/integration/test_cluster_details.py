"""``barnabas cluster metadata | logdirs | quotas``, ``leader transfer``, ``config edit`` and ``generate``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from talk import Talk

from barnabas.cli.main import main
from barnabas.testing import Broker

Call = Callable[..., str]


@pytest.fixture
def call(shared_broker: Broker, capsys: pytest.CaptureFixture[str]) -> Call:
    def call(*words: str, code: int = 0) -> str:
        assert main([*words, "-b", shared_broker.bootstrap_servers]) == code
        said = capsys.readouterr()
        return said.out if code == 0 else said.err

    return call


def test_every_partition_with_its_leader_and_replicas(call: Call, talk: Talk, name: str) -> None:
    talk.create(name, partitions=2)
    rows = [line.split() for line in call("cluster", "metadata", name).splitlines()]
    assert rows[0] == ["TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "OFFLINE"]
    assert rows[1:] == [[name, "0", "1", "0", "1", "1", "-"], [name, "1", "1", "0", "1", "1", "-"]]
    (first, _) = json.loads(call("cluster", "metadata", name, "-o", "json"))
    assert first["replicas"] == [1]
    assert "there is no topic" in call("cluster", "metadata", "nothing", code=1)


def test_what_lies_in_which_directory(call: Call, talk: Talk, name: str) -> None:
    talk.create(name)
    (directory,) = json.loads(call("cluster", "logdirs", "-o", "json"))
    assert directory["state"] == "ok"
    assert directory["replicas"] > 0
    assert f"{name}-0" in call("cluster", "logdirs", "--all")


def test_quotas_are_set_shown_and_taken_away(call: Call, name: str) -> None:
    assert f"{name}  -          -   producer_byte_rate  1000000" in call(
        "cluster", "quotas", "--user", name, "--set", "producer_byte_rate=1e6"
    )
    assert name in call("cluster", "quotas")
    assert name not in call("cluster", "quotas", "--user", name, "--delete", "producer_byte_rate")
    assert "whose?" in call("cluster", "quotas", "--set", "producer_byte_rate=1", code=1)
    assert "no number" in call("cluster", "quotas", "--user", name, "--set", "producer_byte_rate=x", code=1)


def test_a_leader_is_only_given_to_who_is_in_sync(call: Call, talk: Talk, name: str) -> None:
    talk.create(name)
    assert "leads already" in call("leader", "transfer", f"{name}-0", "--to", "1")
    assert "broker 9 is not in sync; those that are: 1" in call("leader", "transfer", f"{name}-0", "--to", "9", code=1)


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def edit(script: str) -> None:
        path = tmp_path / "editor"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("VISUAL", str(path))

    return edit


def test_settings_are_edited_checked_shown_and_changed(
    call: Call, talk: Talk, name: str, editor: Callable[[str], None]
) -> None:
    talk.create(name, retention_ms="1000")
    editor("""sed -i 's/^retention.ms=.*/retention.ms=2000/; s/^# segment.ms=.*/segment.ms=3000/' "$1" """)
    assert call("config", "edit", "topic", name, "--dry-run").splitlines()[1:] == [
        "retention.ms  1000    2000",
        "segment.ms    -       3000",
    ]
    assert "1000" in call("config", "get", "topic", name, "retention.ms")
    assert "3000" in call("config", "edit", "topic", name, "--yes")
    assert "2000" in call("config", "get", "topic", name, "retention.ms")
    editor("""sed -i '/^retention.ms/d' "$1" """)
    assert "retention.ms  2000    -" in call("config", "edit", "topic", name, "--yes")
    editor("true")
    assert call("config", "edit", "topic", name) == "nothing was changed\n"


def test_what_the_cluster_would_refuse_is_not_changed_at_all(
    call: Call, talk: Talk, name: str, editor: Callable[[str], None]
) -> None:
    talk.create(name)
    editor("""printf 'segment.ms=3000\\nretenion.ms=5\\n' > "$1" """)
    assert "did you mean 'retention.ms'?" in call("config", "edit", "topic", name, "--yes", code=1)
    assert "3000" not in call("config", "get", "topic", name, "segment.ms")
    editor("exit 3")
    assert "ended with code 3: nothing was changed" in call("config", "edit", "topic", name, code=1)
