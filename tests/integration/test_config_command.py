"""``barnabas config`` against a broker: settings shown with their source, changed, compared, exported, imported."""

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
def config(shared_broker: Broker, capsys: pytest.CaptureFixture[str]) -> Call:
    def call(*words: str, code: int = 0) -> str:
        assert main(["config", *words, "-b", shared_broker.bootstrap_servers]) == code
        said = capsys.readouterr()
        return said.out if code == 0 else said.err

    return call


def test_a_topic_shows_what_it_set_itself(config: Call, talk: Talk, name: str) -> None:
    talk.create(name, retention_ms="1000")
    rows = [line.split() for line in config("get", "topic", name).splitlines()]
    assert rows[0] == ["SETTING", "VALUE", "SOURCE", "CHANGES"]
    assert ["retention.ms", "1000", "topic", "at", "once"] in rows
    assert not any(row[0] == "segment.bytes" for row in rows)
    every = json.loads(config("get", "topic", name, "--all", "--doc", "-o", "json"))
    assert all(row["documentation"] for row in every)
    assert len(every) > 30


def test_a_change_shows_before_and_after(config: Call, talk: Talk, name: str) -> None:
    talk.create(name)
    assert config("set", "topic", name, "retention.ms=5000", "cleanup.policy=compact,delete").splitlines() == [
        "SETTING         BEFORE     AFTER",
        "retention.ms    604800000  5000",
        "cleanup.policy  delete     compact,delete",
    ]
    assert "604800000" in config("delete", "topic", name, "retention.ms", "--yes")
    assert "compact,delete" in config("get", "topic", name)


def test_a_dry_run_changes_nothing(config: Call, talk: Talk, name: str) -> None:
    talk.create(name)
    assert "dry run" in config("set", "topic", name, "retention.ms=5000", "--dry-run")
    assert "5000" not in config("get", "topic", name, "retention.ms")


def test_a_misspelt_setting_suggests_the_right_one(config: Call, talk: Talk, name: str) -> None:
    talk.create(name)
    assert "did you mean 'retention.ms'" in config("get", "topic", name, "retenion.ms", code=1)
    assert "retention.ms" in config("set", "topic", name, "retenion.ms=5", code=1)
    assert "at least" in config("set", "topic", name, "segment.bytes=5", code=1)


def test_brokers_are_set_one_by_one_or_all_at_once(config: Call) -> None:
    config("set", "broker", "all", "log.cleaner.backoff.ms=77")
    assert "dynamic_default_broker" in config("get", "broker", "1", "log.cleaner.backoff.ms")
    config("set", "broker", "1", "log.cleaner.backoff.ms=78")
    assert [line.split()[1:3] for line in config("get", "broker", "1", "log.cleaner.backoff.ms").splitlines()[1:]] == [
        ["78", "dynamic_broker"]
    ]
    config("delete", "broker", "1", "log.cleaner.backoff.ms", "-y")
    config("delete", "broker", "all", "log.cleaner.backoff.ms", "-y")
    assert "number" in config("get", "broker", "one", code=1)
    assert "cannot change while the broker runs" in config("set", "broker", "1", "node.id=5", code=1)


def test_secrets_are_not_shown(config: Call) -> None:
    rows = {row["name"]: row for row in json.loads(config("get", "broker", "1", "--all", "-o", "json"))}
    assert rows["ssl.keystore.key"]["sensitive"]
    assert rows["ssl.keystore.key"]["value"] is None


def test_a_setting_without_effect_here_says_so(config: Call) -> None:
    config("set", "broker", "1", "num.io.threads=16")
    (row,) = json.loads(config("get", "broker", "1", "num.io.threads", "--doc", "-o", "json"))
    assert row["value"] == "16"
    assert row["documentation"].startswith("No effect here:")
    config("delete", "broker", "1", "num.io.threads", "-y")


def test_two_topics_are_compared(config: Call, talk: Talk, name: str) -> None:
    talk.create(name)
    talk.create(f"{name}-b", retention_ms="1")
    (row,) = json.loads(config("diff", "topic", name, f"{name}-b", "-o", "json"))
    assert row == {"name": "retention.ms", name: "604800000", f"{name}-b": "1"}


def test_what_is_exported_can_be_imported(config: Call, talk: Talk, name: str, tmp_path: Path) -> None:
    talk.create(name, retention_ms="1000", cleanup_policy="compact")
    file = tmp_path / "topics.json"
    file.write_text(config("export", name))
    config("set", "topic", name, "retention.ms=9", "segment.bytes=2097152")
    assert config("import", str(file)) == f"{name}: set\n"
    assert json.loads(config("export", name)) == json.loads(file.read_text())
    assert "No such file" in config("import", "/nowhere", code=1)


def test_a_group_has_settings_of_its_own(config: Call, name: str) -> None:
    config("set", "group", f"{name}-g", "consumer.session.timeout.ms=50000")
    assert "50000" in config("get", "group", f"{name}-g")
