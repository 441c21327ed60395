"""``barnabas topic`` against a broker: what it makes, shows, matches, copies and deletes."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from talk import Talk, batch

from barnabas.cli.main import main
from barnabas.testing import Broker

Call = Callable[..., str]


@pytest.fixture
def barnabas(shared_broker: Broker, capsys: pytest.CaptureFixture[str]) -> Call:
    def call(*words: str, code: int = 0) -> str:
        assert main([*words, "-b", shared_broker.bootstrap_servers]) == code
        said = capsys.readouterr()
        return said.out if code == 0 else said.err

    return call


def test_a_topic_is_made_with_its_settings_and_described(barnabas: Call, name: str) -> None:
    made = barnabas("topic", "create", name, "-p", "2", "-c", "retention.ms=5", "-o", "json")
    assert json.loads(made) == [
        {"name": name, "outcome": "created, partitions 2, replicas 1", "partitions": 2, "replicas": 1}
    ]
    (described,) = json.loads(barnabas("topic", "describe", name, "-o", "json"))
    assert [part["partition"] for part in described["partitions"]] == [0, 1]
    assert described["configs"] == [{"name": "retention.ms", "value": "5", "source": "topic"}]
    assert "already exists" in barnabas("topic", "create", name, code=1)
    assert barnabas("topic", "create", name, "--if-not-exists") == f"{name}: exists\n"


def test_one_failure_of_several_fails_the_command_and_is_in_its_answer(barnabas: Call, name: str) -> None:
    barnabas("topic", "create", name)
    error = barnabas("topic", "create", name, f"{name}-b", code=1)
    assert error.count("\n") == 1
    assert "--if-not-exists" in error
    assert f"{name}-b" in barnabas("topic", "list", f"^{name}")


def test_topics_are_matched_described_and_deleted_by_pattern(barnabas: Call, name: str) -> None:
    for suffix in ("a", "b", "ab"):
        barnabas("topic", "create", f"{name}-{suffix}")
    described = json.loads(barnabas("topic", "describe", "-r", f"{name}-[ab]", "-o", "json"))
    assert [topic["name"] for topic in described] == [f"{name}-a", f"{name}-b"]
    assert barnabas("topic", "delete", "-r", f"{name}-[ab]", "--yes") == f"{name}-a: deleted\n{name}-b: deleted\n"
    assert barnabas("topic", "list", f"^{name}-", "--no-headers").split() == [f"{name}-ab", "1", "1"]
    assert "no topic matches" in barnabas("topic", "delete", "-r", "nothing.*", "--yes", code=1)
    assert "regular expression" in barnabas("topic", "list", "(", code=1)


def test_a_clone_has_the_settings_and_none_of_the_records(barnabas: Call, talk: Talk, name: str) -> None:
    barnabas("topic", "create", name, "-p", "3", "-c", "cleanup.policy=compact")
    talk.produce(name, bytes(batch(b"x", key=b"k")))
    barnabas("topic", "clone", name, f"{name}-clone")
    (clone,) = json.loads(barnabas("topic", "describe", f"{name}-clone", "-o", "json"))
    assert [part["high_watermark"] for part in clone["partitions"]] == [0, 0, 0]
    assert clone["configs"] == [{"name": "cleanup.policy", "value": "compact", "source": "topic"}]


def test_records_are_trimmed_where_people_say(barnabas: Call, talk: Talk, name: str) -> None:
    barnabas("topic", "create", name)
    talk.produce(name, bytes(batch(b"a", b"b", b"c")))
    assert barnabas("topic", "trim", name, "-o", "2", "--yes") == f"{name}-0: begins at 2\n"
    assert json.loads(barnabas("topic", "trim", name, "-o", "-1", "--yes", "--output", "json")) == [
        {"name": f"{name}-0", "outcome": "begins at 3", "log_start_offset": 3}
    ]


def test_groups_forget_what_they_committed_and_only_the_late_are_listed(barnabas: Call, talk: Talk, name: str) -> None:
    barnabas("topic", "create", name, "-p", "2")
    talk.produce(name, bytes(batch(b"a", b"b")))
    for group, where in (("late", "start"), ("done", "end")):
        barnabas("group", "seek", f"{name}-{group}", "--to", where, "-t", name, "--execute")
    listed = json.loads(barnabas("group", "list", f"^{name}", "--lag-only", "-o", "json"))
    assert [(group["group_id"], group["lag"]) for group in listed] == [(f"{name}-late", 2)]
    barnabas("group", "offset-delete", f"{name}-late", f"{name}:1", "--yes")
    (described,) = json.loads(barnabas("group", "describe", f"{name}-late", "-o", "json"))
    assert [part["partition"] for part in described["partitions"]] == [0]


@pytest.mark.parametrize("form", ["json", "yaml", "table"])
@pytest.mark.parametrize(
    "words", [("topic", "list"), ("group", "list"), ("txn", "list"), ("user", "list"), ("config", "get", "broker", "1")]
)
def test_every_listing_has_every_form(barnabas: Call, form: str, words: tuple[str, ...]) -> None:
    assert barnabas(*words, "-o", form) is not None
