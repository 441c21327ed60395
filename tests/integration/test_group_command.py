"""``barnabas group`` against a broker: what an administrator sees of groups, and how it moves them."""

from __future__ import annotations

import gc
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from waiting import until

from barnabas.cli.cluster import group as group_command
from barnabas.cli.main import INTERRUPTED, MISUSED, main
from barnabas.testing import Broker

HOUR_MS = 3_600_000
RECORDS = 10


class Cli:
    def __init__(self, broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
        self._broker = broker
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        code = main(["group", *words, "-b", self._broker.bootstrap_servers])
        said = self._capsys.readouterr()
        return code, said.out, said.err

    def rows(self, *words: str) -> list[list[str]]:
        code, out, err = self(*words)
        assert code == 0, err
        return [line.split() for line in out.splitlines()]


@pytest.fixture
def cli(shared_broker: Broker, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(shared_broker, capsys)


@pytest.fixture
def topic(shared_broker: Broker, name: str) -> str:
    """Two partitions with ten records each, an hour apart; the newest is of now."""
    settings = {"bootstrap.servers": shared_broker.bootstrap_servers, "log_level": 2}
    admin = AdminClient(settings)
    admin.create_topics([NewTopic(name, num_partitions=2, replication_factor=1)])[name].result(20)
    producer = Producer(settings)
    now_ms = time.time_ns() // 1_000_000
    for number in range(RECORDS):
        for partition in (0, 1):
            age_ms = (RECORDS - 1 - number) * HOUR_MS
            producer.produce(name, b"v", partition=partition, timestamp=now_ms - age_ms)
    assert producer.flush(20) == 0
    return name


def commit(broker: Broker, group: str, topic: str, *offsets: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "log_level": 2})
    places = [TopicPartition(topic, index, offset) for index, offset in enumerate(offsets)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def test_lag_is_shown_in_records_and_in_time(shared_broker: Broker, cli: Cli, topic: str) -> None:
    commit(shared_broker, f"{topic}-g", topic, 7, 10)
    listed = cli.rows("list", f"{topic}-g")
    assert listed[1] == [f"{topic}-g", "classic", "Empty", "1", "3", "2", "h"]
    described = cli.rows("describe", f"{topic}-g")
    assert [topic, "0", "7", "10", "3", "2", "h", "-", "-"] in described
    assert [topic, "1", "10", "10", "0", "0", "s", "-", "-"] in described
    _, out, _ = cli("describe", f"{topic}-g", "-o", "json")
    (group,) = json.loads(out)
    assert (group["state"], group["protocol_type"]) == ("Empty", "")
    assert [(each["lag"], each["behind_ms"]) for each in group["partitions"]] == [(3, 2 * HOUR_MS), (0, 0)]


def test_members_are_shown_with_what_they_have(shared_broker: Broker, cli: Cli, topic: str) -> None:
    group = f"{topic}-members"
    consumer = Consumer(
        {
            "bootstrap.servers": shared_broker.bootstrap_servers,
            "group.id": group,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
            "log_level": 2,
        }
    )
    consumer.subscribe([topic])
    deadline = time.monotonic() + 20
    while consumer.poll(0.1) is None:
        assert time.monotonic() < deadline
    consumer.commit(asynchronous=False)
    code, out, _ = cli("describe", group)
    assert "Stable" in out
    assert out.count("reader-") == 2
    code, _, err = cli("seek", group, "--to", "start", "--execute")
    assert (code, "Stable" in err) == (1, True)
    code, _, err = cli("delete", group, "--yes")
    assert (code, "NON_EMPTY_GROUP" in err) == (1, True)
    consumer.close()
    code, out, _ = cli("describe", group)
    assert re.search(r"^state +Empty$", out, re.MULTILINE)
    assert re.search(r"^members +0$", out, re.MULTILINE)


def test_a_group_that_nobody_ever_joined_says_why_it_is_empty(shared_broker: Broker, cli: Cli, topic: str) -> None:
    commit(shared_broker, f"{topic}-simple", topic, 5, 5)
    out = cli("describe", f"{topic}-simple")[1]
    assert re.search(r"^members +0; no member has ever joined: the group only stores offsets", out, re.MULTILINE)


def test_a_group_is_moved_after_a_dry_run(shared_broker: Broker, cli: Cli, topic: str) -> None:
    group, other = f"{topic}-moves", f"{topic}-other"
    commit(shared_broker, group, topic, 5, 5)

    def moved(*words: str) -> list[list[str]]:
        return [row[1:] for row in cli.rows("seek", group, *words) if row[:1] == [topic]]

    assert moved("--to", "start") == [["0", "5", "0", "-5"], ["1", "5", "0", "-5"]]
    assert moved("--to", "end", "--execute") == [["0", "5", "10", "+5"], ["1", "5", "10", "+5"]]
    assert moved("--to", "3", "-t", f"{topic}:1", "--execute") == [["1", "10", "3", "-7"]]
    assert moved("--to", "-2") == [["0", "10", "8", "-2"], ["1", "3", "8", "+5"]]
    assert moved("--to", "+2") == [["0", "10", "2", "-8"], ["1", "3", "2", "-1"]]
    assert moved("--to", "-150m") == [["0", "10", "7", "-3"], ["1", "3", "7", "+4"]]
    assert moved("--to", "999") == [["0", "10", "10", "+0"], ["1", "3", "10", "+7"]]
    commit(shared_broker, other, topic, 1, 2)
    assert moved("--to-group", other, "--execute") == [["0", "10", "1", "-9"], ["1", "3", "2", "-1"]]
    assert moved("--to", "start", "-o", "json") == []
    _, out, _ = cli("seek", "brand-new", "--to", "end", "-t", topic, "-o", "json")
    assert [row["after"] for row in json.loads(out)] == [10, 10]


def test_what_cannot_be_is_said_in_one_line(cli: Cli, topic: str) -> None:
    for words, said in (
        (("describe", "nobody"), "nobody"),
        (("seek", "nobody", "--to", "start"), "has committed nothing"),
        (("seek", "nobody", "--to", "start", "-t", f"{topic}:7"), "and no 7"),
        (("seek", "nobody", "--to", "soon", "-t", topic), "is no offset"),
        (("seek", "nobody", "--to-group", "nothing", "-t", topic), "has committed nothing"),
        (("delete", "nobody", "--yes"), "GROUP_ID_NOT_FOUND"),
    ):
        code, out, err = cli(*words)
        assert (code, out) == (1, "")
        assert said in err
        assert err.count("\n") == 1


def test_a_group_is_deleted(shared_broker: Broker, cli: Cli, topic: str) -> None:
    commit(shared_broker, f"{topic}-gone", topic, 5, 5)
    assert cli("delete", f"{topic}-gone", "--yes")[1] == f"{topic}-gone: deleted\n"
    assert len(cli.rows("list", f"{topic}-gone")) == 1


# --- --watch --------------------------------------------------------------------------------------------------------


@contextmanager
def watching(broker: Broker, *words: str) -> Iterator[list[str]]:
    """The lines of a command that looks again and again, as they come; Ctrl-C ends it."""
    command = [sys.executable, "-m", "barnabas", "group", *words, "--watch", "0.1", "-b", broker.bootstrap_servers]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()), daemon=True)
    reader.start()
    try:
        yield lines
        assert process.poll() is None, process.stderr.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == INTERRUPTED
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stdout.close()
        process.stderr.close()


@pytest.mark.parametrize(
    ("verb", "before", "after"),
    [
        ("list", r"{group} +classic +Empty +1 +3 +2 h", r"{group} +classic +Empty +1 +0 +0 s"),
        ("describe", r"{topic} +0 +7 +10 +3 +2 h", r"{topic} +0 +10 +10 +0 +0 s"),
    ],
)
def test_who_watches_sees_the_group_move(shared_broker: Broker, topic: str, verb: str, before: str, after: str) -> None:
    group = f"{topic}-watched"
    commit(shared_broker, group, topic, 7, 10)

    def seen(pattern: str, lines: list[str]) -> int:
        return sum(bool(re.search(pattern.format(group=group, topic=topic), line)) for line in lines[:])

    with watching(shared_broker, verb, group) as lines:
        until(lambda: seen(before, lines) >= 2, "it is shown again and again")
        commit(shared_broker, group, topic, 10, 10)
        until(lambda: seen(after, lines) >= 2, "what changed is shown")
        assert not any("\x1b" in line for line in lines), "only a terminal is cleared"


def test_who_watches_for_days_leaves_no_garbage(cli: Cli, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[bool] = []

    def look(*_: object, **__: object) -> None:
        looks.append(gc.isenabled())
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(group_command, "print_table", look)
    code, _, err = cli("list", "--watch", "0.01")
    assert (code, err) == (INTERRUPTED, "")
    assert looks == [True, True, True]


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "often"])
def test_nobody_watches_without_a_pause(cli: Cli, capsys: pytest.CaptureFixture[str], seconds: str) -> None:
    with pytest.raises(SystemExit) as ended:
        cli("list", f"--watch={seconds}")
    assert ended.value.code == MISUSED
    assert "--watch" in capsys.readouterr().err
