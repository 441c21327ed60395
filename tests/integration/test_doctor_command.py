"""``barnabas doctor`` against brokers with something wrong: it finds it, shows it and says what mends it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.cli.main import main
from barnabas.testing import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def doctor(servers: str, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[dict[str, Any]]]:
    capsys.readouterr()
    code = main(["doctor", "-b", servers, "--seconds", "0.2", "-o", "json", *words])
    said = capsys.readouterr()
    assert said.out, said.err
    findings = json.loads(said.out)["findings"]
    assert all(each["evidence"] and each["mend"] for each in findings)
    return code, findings


def client(broker: Broker, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers, "log_level": 2, **more}


def send(broker: Broker, topic: str, count: int) -> None:
    producer = Producer(client(broker))
    for _ in range(count):
        producer.produce(topic, b"v")
    assert producer.flush(20) == 0


def test_a_broker_alone_is_well(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    send(broker, "t", 1)
    code, findings = doctor(broker.bootstrap_servers, capsys)
    assert code == 0
    assert [each["about"] for each in findings] == ["if broker 1 dies now"]
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
    assert f"127.0.0.1:{port}" in findings[0]["what"]
    assert "advertised.listeners" in findings[0]["mend"]


def test_a_group_that_nobody_reads_for(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    send(broker, "t", 5)
    consumer = Consumer(client(broker, **{"group.id": "billing"}))
    consumer.commit(offsets=[TopicPartition("t", 0, 2)], asynchronous=False)
    consumer.close()
    _, findings = doctor(broker.bootstrap_servers, capsys, "-g", "billing")
    assert [(each["severity"], each["about"]) for each in findings] == [("warning", "group billing")]
    assert "3 records waiting" in findings[0]["what"]


def test_a_reader_behind_an_open_transaction(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    send(broker, "t", 3)
    producer = Producer(client(broker, **{"transactional.id": "hanging"}))
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("t", b"open")
    producer.flush(20)
    reading = {"group.id": "readers", "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    consumer = Consumer(client(broker, **reading))
    consumer.subscribe(["t"])
    while (message := consumer.poll(1)) is not None or not consumer.assignment():
        assert message is None or message.error() is None
    consumer.commit(offsets=[TopicPartition("t", 0, 3)], asynchronous=False)
    code, findings = doctor(broker.bootstrap_servers, capsys, "-g", "readers")
    consumer.close()
    assert code == 1
    assert "waits for a transaction" in findings[0]["what"]
    assert "'hanging'" in findings[0]["evidence"]
    producer.abort_transaction(20)


def test_a_fenced_producer_is_explained(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    first = Producer(client(broker, **{"transactional.id": "twice"}))
    first.init_transactions(20)
    Producer(client(broker, **{"transactional.id": "twice"})).init_transactions(20)
    _, findings = doctor(broker.bootstrap_servers, capsys, "--producer", "twice")
    assert "epoch below 1 are fenced" in findings[0]["what"]
    assert "same transactional id" in findings[0]["mend"]


def test_nobody_to_ask_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    assert main(["doctor", "-b", f"127.0.0.1:{port}"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
