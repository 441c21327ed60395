"""``barnabas doctor`` against a broker with something wrong: it finds it, shows it and says what mends it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from doctoring import doctor, expect
from memory_disk import disk_of

from barnabas.cli.main import main
from barnabas.cli.terminal.verbs import now_ms
from barnabas.model.errors import CorruptBatch
from barnabas.model.ids import TopicPartition
from barnabas.testing import Broker

GIB = 1 << 30
FIVE_MINUTES_MS = 300_000


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def client(broker: Broker, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers, "log_level": 2, **more}


def send(broker: Broker, topic: str, count: int, value: bytes = b"v") -> None:
    producer = Producer(client(broker))
    for _ in range(count):
        producer.produce(topic, value)
    assert producer.flush(20) == 0


def test_a_broker_alone_is_well(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    send(broker, "t", 1)
    code, findings = doctor(broker.bootstrap_servers, capsys)
    assert (code, len(findings)) == (0, 1)
    expect(
        findings,
        "death-loses",
        severity="note",
        about="if broker 1 dies now",
        evidence="no other replica is in sync: t-0$",
        mend="barnabas up --brokers 3",
    )
    assert main(["doctor", "-b", broker.bootstrap_servers, "--seconds", "0.1"]) == 0
    screen = capsys.readouterr().out
    assert "0 bad, 0 warnings, 1 note" in screen
    assert len(screen.splitlines()) < 40


def test_a_wrong_listener_is_found_before_anything_else(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    with Broker(settings={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}) as broker:
        servers = broker.address_of("PLAINTEXT")
        code, findings = doctor(servers, capsys)
    assert code == 1
    found = expect(
        findings,
        "unreachable",
        severity="bad",
        about="broker 1",
        evidence="a connection from here fails: Connection refused",
        mend="--set advertised.listeners=PLAINTEXT://HOST:PORT",
    )
    assert found is findings[0]
    assert f"127.0.0.1:{port}" in found["what"]


def test_a_disk_that_is_nearly_full(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    send(broker, "large", 8, bytes(500_000))
    disk = disk_of(broker)
    for share, severity in ((0.9, "warning"), (0.97, "bad")):
        disk.capacity_bytes = round(disk.used_bytes() / share)
        code, findings = doctor(broker.bootstrap_servers, capsys)
        assert code == (severity == "bad")
        expect(
            findings,
            "disk-filling",
            severity=severity,
            about="broker 1, /barnabas",
            evidence=rf"of [34]\.\d MiB are free \({round(100 - 100 * share)}%\); the largest is large-0 with 3\.8 MiB",
            mend="^barnabas config set topic large retention.bytes=BYTES, or add a disk",
        )


def test_a_disk_that_fills_while_one_looks(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    disk = disk_of(broker)
    send(broker, "fast", 1)
    disk.capacity_bytes = disk.used_bytes() + GIB
    is_enough = threading.Event()

    def write() -> None:
        while not is_enough.is_set():
            send(broker, "fast", 10, bytes(200_000))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        code, findings = doctor(broker.bootstrap_servers, capsys, "--seconds", "1")
    finally:
        is_enough.set()
        writer.join()
    assert code == 1
    expect(
        findings,
        "disk-filling",
        severity="bad",
        about="broker 1, /barnabas",
        evidence=r"MiB/s were written while we looked: full in \d+(\.\d+)? (s|min)",
        mend="^barnabas config set topic fast retention.bytes=BYTES",
    )


def test_a_disk_that_failed(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(settings={"log.dirs": "/home,/second"}) as broker:
        assert main(["topic", "create", "t", "-p", "2", "-b", broker.bootstrap_servers]) == 0
        disk_of(broker).fail_next_write("/second/")
        producer = Producer(client(broker, **{"message.timeout.ms": 2000}))
        for partition in range(2):
            producer.produce("t", b"v", partition=partition)
        producer.flush(20)
        code, findings = doctor(broker.bootstrap_servers, capsys)
    assert code == 1
    expect(
        findings,
        "disk-offline",
        severity="bad",
        about="broker 1, /second",
        evidence="[Dd]isk|storage",
        mend="^replace the disk and start the broker again",
    )


def test_a_log_whose_files_are_gone(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    for topic in ("gone", "sound"):
        assert main(["topic", "create", topic, "-b", broker.bootstrap_servers]) == 0
        send(broker, topic, 1)
    store = broker.node.services.store
    (home,) = store.directory_ids
    disk_of(broker).remove_tree(f"{home}/gone-0")
    broker.run(store.checkpoint())
    send(broker, "sound", 1)
    code, findings = doctor(broker.bootstrap_servers, capsys)
    assert code == 1
    expect(
        findings,
        "log-offline",
        severity="bad",
        about="broker 1, gone-0",
        evidence="gone-0.*the path is gone",
        mend="^restore .*/gone-0 and start the broker again",
    )


def test_a_log_with_a_damaged_segment(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic", "create", "t", "-b", broker.bootstrap_servers]) == 0
    send(broker, "t", 1)
    store = broker.node.services.store
    store.faults.damaged(store.logs[TopicPartition("t", 0)], "retention", CorruptBatch("checksum of the batch at 0"))
    code, findings = doctor(broker.bootstrap_servers, capsys)
    assert code == 1
    expect(
        findings,
        "log-damaged",
        severity="bad",
        about="broker 1, t-0",
        evidence="retention failed: checksum",
        mend="^if other replicas are in sync, stop the broker",
    )


def test_a_transaction_that_stays_open(
    broker: Broker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    send(broker, "t", 1)
    producer = Producer(client(broker, **{"transactional.id": "slow", "transaction.timeout.ms": 900_000}))
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("t", b"open")
    producer.flush(20)
    monkeypatch.setattr(
        "barnabas.cli.cluster.doctor.now_ms", lambda: now_ms() + FIVE_MINUTES_MS
    )  # who looks, looks later
    _, findings = doctor(broker.bootstrap_servers, capsys)
    expect(
        findings,
        "transaction-open",
        severity="warning",
        about="transaction slow",
        evidence=r"Ongoing for 5 min, aborted in \d+ min: t-0",
        mend="^barnabas txn abort slow",
    )
    assert main(["txn", "abort", "slow", "--yes", "-b", broker.bootstrap_servers]) == 0
    _, findings = doctor(broker.bootstrap_servers, capsys)
    assert not [each for each in findings if each["about"] == "transaction slow"]


def test_a_fenced_producer_is_explained(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    first = Producer(client(broker, **{"transactional.id": "twice"}))
    first.init_transactions(20)
    _, findings = doctor(broker.bootstrap_servers, capsys, "--producer", "twice")
    expect(
        findings,
        "producer-not-fenced",
        severity="note",
        about="producer twice",
        evidence=r"producer id \d+, epoch 0, Empty",
        mend="another life of this transactional id",
    )
    Producer(client(broker, **{"transactional.id": "twice"})).init_transactions(20)
    _, findings = doctor(broker.bootstrap_servers, capsys, "--producer", "twice")
    found = expect(
        findings,
        "producer-fenced",
        severity="warning",
        about="producer twice",
        evidence=r"producer id \d+, epoch 1, Empty",
        mend="a second producer was started with the same transactional id: give each producer an id of its own",
    )
    assert "epoch below 1 are fenced" in found["what"]


def test_nobody_to_ask_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    assert main(["doctor", "-b", f"127.0.0.1:{port}"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
