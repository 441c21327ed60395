"""``barnabas doctor`` against groups with something wrong: stuck, late, lost, idle, or waiting for somebody else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from doctoring import Found, doctor, expect

from barnabas.cli.main import main
from barnabas.testing import Broker

VISITS_MAX = 20


@pytest.fixture(scope="module")
def broker(shared_broker: Broker) -> Broker:
    return shared_broker


@pytest.fixture
def group(name: str) -> str:
    return f"{name}-group"


def client(broker: Broker, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers, "log_level": 2, **more}


def send(broker: Broker, topic: str, count: int) -> None:
    producer = Producer(client(broker))
    for _ in range(count):
        producer.produce(topic, b"v", partition=0)
    assert producer.flush(20) == 0


def commit(broker: Broker, topic: str, group: str, offset: int) -> None:
    """For a group that nobody is a member of."""
    consumer = Consumer(client(broker, **{"group.id": group}))
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


@contextmanager
def member(broker: Broker, topic: str, group: str, **more: Any) -> Iterator[Consumer]:
    settings = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer(client(broker, **settings, **more))
    consumer.subscribe([topic])
    try:
        while not consumer.assignment():
            consumer.poll(0.1)
        yield consumer
    finally:
        consumer.close()


@contextmanager
def meanwhile(work: Callable[[], None]) -> Iterator[None]:
    is_enough = threading.Event()

    def go_on() -> None:
        while not is_enough.is_set():
            work()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        is_enough.set()
        thread.join()


def visit_until(broker: Broker, capsys: pytest.CaptureFixture[str], group: str, kind: str) -> list[Found]:
    """On a machine that has much to do nothing may happen in a fifth of a second."""
    for _ in range(VISITS_MAX):
        _, findings = doctor(broker.bootstrap_servers, capsys, "-g", group)
        if any(each["kind"] == kind for each in findings):
            break
    return findings


def test_a_group_that_nobody_reads_for(
    broker: Broker, name: str, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    send(broker, name, 5)
    commit(broker, name, group, 2)
    _, findings = doctor(broker.bootstrap_servers, capsys, "-g", group)
    assert len(findings) == 1
    found = expect(
        findings,
        "nobody-reads",
        severity="warning",
        about=f"group {group}",
        evidence=rf"the group is Empty, 3 records behind, .* s: {name}-0 3",
        mend=f"barnabas group delete {group}$",
    )
    assert "3 records waiting" in found["what"]
    assert main(["group", "delete", group, "--yes", "-b", broker.bootstrap_servers]) == 0


def test_a_reader_behind_an_open_transaction(
    broker: Broker, name: str, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    send(broker, name, 3)
    producer = Producer(client(broker, **{"transactional.id": f"{name}-hanging"}))
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(name, b"open")
    producer.flush(20)
    with member(broker, name, group, **{"isolation.level": "read_committed"}) as consumer:
        consumer.commit(offsets=[TopicPartition(name, 0, 3)], asynchronous=False)
        code, findings = doctor(broker.bootstrap_servers, capsys, "-g", group)
    assert code == 1
    expect(
        findings,
        "waits-for-transaction",
        severity="bad",
        about=f"group {group}",
        evidence=f"'{name}-hanging'",
        mend=f"^barnabas txn why {name}; barnabas txn abort",
    )
    producer.abort_transaction(20)


def test_a_group_that_one_member_holds_up(
    broker: Broker, name: str, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    send(broker, name, 1)
    hanging = Consumer(client(broker, **{"group.id": group, "client.id": "hanging"}))
    # With a callback of its own it only lets go when it is polled.
    hanging.subscribe([name], on_assign=lambda *_: None, on_revoke=lambda *_: None)
    while not hanging.assignment():
        hanging.poll(0.1)
    other = Consumer(client(broker, **{"group.id": group, "client.id": "other"}))
    other.subscribe([name])
    with meanwhile(lambda: other.poll(0.05)):
        findings = visit_until(broker, capsys, group, "group-stuck")
    expect(
        findings,
        "group-stuck",
        severity="bad",
        about=f"group {group}",
        evidence=r"PreparingRebalance and, 0\.2 s later, PreparingRebalance; \d members?: .*hanging at 127\.0\.0\.1",
        mend=f"restart the one that hangs; barnabas group describe {group} --watch shows who is left$",
    )
    hanging.close()
    other.close()


def test_records_that_were_deleted_before_they_were_read(
    broker: Broker, name: str, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    send(broker, name, 10)
    commit(broker, name, group, 2)
    assert main(["topic", "trim", name, "-o", "7", "--yes", "-b", broker.bootstrap_servers]) == 0
    code, findings = doctor(broker.bootstrap_servers, capsys, "-g", group)
    assert code == 1
    found = expect(
        findings,
        "unread-deleted",
        severity="bad",
        about=f"group {group}",
        evidence=f"{name}-0: committed 2, begins at 7",
        mend=f"barnabas config set topic {name} retention.ms=MS",
    )
    assert found["what"].startswith("5 records were deleted")


def test_an_offset_beyond_the_end(broker: Broker, name: str, group: str, capsys: pytest.CaptureFixture[str]) -> None:
    send(broker, name, 3)
    commit(broker, name, group, 100)
    code, findings = doctor(broker.bootstrap_servers, capsys, "-g", group)
    assert code == 1
    expect(
        findings,
        "committed-beyond-end",
        severity="bad",
        about=f"group {group}",
        evidence=f"{name}-0: committed 100, ends at 3",
        mend=f"stop its members, then barnabas group seek {group} --to start --execute$",
    )
    assert main(["group", "seek", group, "--to", "start", "--execute", "-b", broker.bootstrap_servers]) == 0
    _, findings = doctor(broker.bootstrap_servers, capsys, "-g", group)
    assert [each["kind"] for each in findings] == ["nobody-reads"]


def test_a_member_that_commits_nothing(
    broker: Broker, name: str, group: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    send(broker, name, 5)
    with member(broker, name, group, **{"client.id": "sleepy"}) as consumer:
        consumer.commit(offsets=[TopicPartition(name, 0, 2)], asynchronous=False)
        _, findings = doctor(broker.bootstrap_servers, capsys, "-g", group)
        expect(
            findings,
            "stands-still",
            severity="warning",
            about=f"group {group}",
            evidence=rf"over 0\.2 s no commit on {name}-0 \(sleepy\)",
            mend=f"^look longer: barnabas doctor -g {group} --seconds 15$",
        )
        monkeypatch.setattr("barnabas.ops.doctor.groups.SURE_SECONDS", 0.1)
        _, findings = doctor(broker.bootstrap_servers, capsys, "-g", group)
        sure = expect(
            findings,
            "stands-still",
            severity="bad",
            about=f"group {group}",
            evidence=f"no commit on {name}-0",
            mend=f"barnabas consume {name} -p 0 -o 2 -n 1 -f pretty$",
        )
    command = sure["mend"].partition("barnabas ")[2].split()
    assert main([*command, "-b", broker.bootstrap_servers]) == 0, "the command that it names shows the record"


def test_a_member_that_falls_behind_is_told_from_one_that_catches_up(
    broker: Broker, name: str, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    send(broker, name, 5000)
    with member(broker, name, group) as consumer:
        done = [0]

        def commit_next() -> None:
            done[0] += 1
            consumer.commit(offsets=[TopicPartition(name, 0, done[0])], asynchronous=False)

        def fall_behind() -> None:
            commit_next()
            send(broker, name, 20)

        with meanwhile(fall_behind):
            findings = visit_until(broker, capsys, group, "falls-behind")
        expect(
            findings,
            "falls-behind",
            severity="warning",
            about=f"group {group}",
            evidence=rf"over 0\.2 s the lag changed by \+[\d,]+: {name}-0 ",
            mend=f"add members, up to one for each partition; barnabas group describe {group} --watch$",
        )
        with meanwhile(commit_next):
            findings = visit_until(broker, capsys, group, "catches-up")
        expect(
            findings,
            "catches-up",
            severity="note",
            about=f"group {group}",
            evidence=rf"the lag changed by -[\d,]+: {name}-0 ",
            mend=f"barnabas group describe {group} --watch$",
        )


def test_more_members_than_partitions(
    broker: Broker, name: str, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["topic", "create", name, "-p", "1", "-b", broker.bootstrap_servers]) == 0
    consumers = []
    for number in (1, 2):
        consumers.append(Consumer(client(broker, **{"group.id": group, "client.id": f"member-{number}"})))
        consumers[-1].subscribe([name])

    def poll() -> None:
        for consumer in consumers:
            consumer.poll(0.02)

    while not any(consumer.assignment() for consumer in consumers):
        poll()
    with meanwhile(poll):
        findings = visit_until(broker, capsys, group, "idle-members")
    expect(
        findings,
        "idle-members",
        severity="note",
        about=f"group {group}",
        evidence=r"^member-\d at 127\.0\.0\.1$",
        mend="barnabas topic add-partitions TOPIC -p N$",
    )
    for consumer in consumers:
        consumer.close()
