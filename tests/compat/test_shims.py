"""The stand-ins for Kafka's scripts beside Kafka's own mains, on one broker: the same words on standard output."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from importlib import import_module

import pytest
from confluent_kafka import Producer
from tools.kafka_jars import java_command

from barnabas.broker.settings.security import STANDARD_AUTHORIZER
from barnabas.testing import Broker

pytestmark = pytest.mark.java

MAINS = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "consumer_groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "acls": "org.apache.kafka.tools.AclCommand",
}
# Lines of the log among the answers.
NOISE = re.compile(r"^(WARN|\[\d{4}-\d\d-\d\d |\d{4}-\d\d-\d\dT).*\n", re.MULTILINE)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with Broker(settings=settings) as running:
        shim = import_module("barnabas.cli.shims.kafka_topics").main
        where = ["--bootstrap-server", running.bootstrap_servers]
        assert (
            shim([*where, "--create", "--topic", "orders", "--partitions", "3", "--config", "retention.ms=1000"]) == 0
        )
        producer = Producer({"bootstrap.servers": running.bootstrap_servers, "log_level": 2})
        for value in (b"a", b"b", b"c"):
            producer.produce("orders", value, partition=0)
        assert producer.flush(20) == 0
        groups = import_module("barnabas.cli.shims.kafka_consumer_groups").main
        reset = ["--reset-offsets", "--group", "g", "--topic", "orders", "--to-offset", "2", "--execute"]
        assert groups([*where, *reset]) == 0
        rules = import_module("barnabas.cli.shims.kafka_acls").main
        assert rules([*where, "--add", "--allow-principal", "User:a", "--operation", "Read", "--topic", "orders"]) == 0
        yield running


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("topics", ("--list",)),
        ("topics", ("--describe", "--topic", "orders")),
        ("topics", ("--create", "--topic", "orders", "--if-not-exists")),
        ("configs", ("--describe", "--entity-type", "topics", "--entity-name", "orders")),
        ("configs", ("--describe", "--entity-type", "brokers", "--entity-default")),
        ("consumer_groups", ("--list",)),
        ("consumer_groups", ("--list", "--state")),
        ("consumer_groups", ("--describe", "--group", "g")),
        ("consumer_groups", ("--describe", "--group", "g", "--state")),
        ("consumer_groups", ("--describe", "--group", "g", "--members")),
        ("consumer_groups", ("--reset-offsets", "--group", "g", "--all-topics", "--shift-by", "-1", "--dry-run")),
        ("acls", ("--list", "--topic", "orders")),
    ],
    ids=lambda each: each if isinstance(each, str) else "".join(each[:2]),
)
def test_the_same_words_as_kafkas_own(
    broker: Broker, script: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    code = import_module(f"barnabas.cli.shims.kafka_{script}").main(
        ["--bootstrap-server", broker.bootstrap_servers, *words]
    )
    said = capsys.readouterr().out
    options = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256M")
    command = java_command(MAINS[script], "--bootstrap-server", broker.bootstrap_servers, *words, options=options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert code == done.returncode
    assert said == NOISE.sub("", done.stdout)
