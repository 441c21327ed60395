"""Kafka's `kafka-consumer-groups`, told the same things of Apache Kafka and of Barnabas, prints the same.

A story is played on both: groups that are empty, that have members of either protocol, that are moved, thinned out and
deleted, and mistakes. What differs by nature (ids, addresses, the words for an error) is put out of sight.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from bench.peers import KafkaPeer
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from kafka_tools import PatientTool

from barnabas.testing import Broker

pytestmark = [pytest.mark.java, pytest.mark.slow]

COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
RECORDS = 6
START_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
HOUR_MS = 3_600_000
ADMIN_SECONDS_MAX = 30
SETTLE_SECONDS_MAX = 60.0
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.consumer.assignment.interval.ms": "0"}

# Each line is one call; `{csv}` is a file that an earlier line wrote.
STORY = (
    "--list",
    "--list --state",
    "--list --state Empty",
    "--list --type",
    "--list --type consumer",
    "--describe --group idle",
    "--describe --group idle --state",
    "--describe --group idle --members",
    "--describe --group live --verbose",
    "--describe --group live --state --verbose",
    "--describe --group live --members --verbose",
    "--describe --group modern --verbose",
    "--describe --group modern --state --verbose",
    "--describe --group modern --members --verbose",
    "--describe --group nobody",
    "--describe --all-groups --state",
    "--reset-offsets --group idle --topic orders --to-earliest",
    "--reset-offsets --group idle --topic orders --to-latest --dry-run",
    "--reset-offsets --group idle --topic orders:1 --to-offset 2 --execute",
    "--reset-offsets --group idle --topic orders --shift-by -1 --execute",
    "--reset-offsets --group idle --topic orders --to-datetime 2026-01-01T02:30:00.000 --execute",
    "--reset-offsets --group idle --all-topics --to-current --dry-run",
    "--reset-offsets --group idle --topic orders --to-offset 99 --execute",
    "--reset-offsets --group idle --all-topics --to-earliest --export --dry-run",
    "--reset-offsets --group idle --from-file {csv} --execute",
    "--reset-offsets --group fresh --topic orders --to-latest --execute",
    "--reset-offsets --group live --topic orders --to-earliest --execute",
    "--reset-offsets --group modern --topic orders --to-earliest --execute",
    "--describe --group idle --offsets",
    "--delete-offsets --group idle --topic orders:0",
    "--delete-offsets --group idle --topic nothing",
    "--delete-offsets --group live --topic orders",
    "--describe --group idle",
    "--delete --group idle",
    "--delete --group idle",
    "--delete --group live",
    "--delete --group modern --group fresh",
    "--list",
)


class Site:
    """A broker with the story's topic and groups on it."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._bootstrap = bootstrap
        self._csv = directory / "plan.csv"
        self._csv.write_text("orders,0,4\norders,1,5\n")
        self._settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 2}

    def furnish(self, stack: ExitStack) -> None:
        admin = AdminClient(self._settings)
        topic = NewTopic("orders", num_partitions=2, replication_factor=1, config={"retention.ms": "-1"})
        admin.create_topics([topic])["orders"].result(ADMIN_SECONDS_MAX)
        producer = Producer(self._settings)
        for number in range(RECORDS):
            for index in (0, 1):
                producer.produce("orders", b"v", partition=index, timestamp=START_MS + number * HOUR_MS)
        assert producer.flush(ADMIN_SECONDS_MAX) == 0
        idle = Consumer({**self._settings, "group.id": "idle"})
        self._commit(idle, TopicPartition("orders", 0, 3), TopicPartition("orders", 1, RECORDS))
        idle.close()
        for group, protocol in (("live", "classic"), ("modern", "consumer")):
            more = {"partition.assignment.strategy": "range"} if protocol == "classic" else {}
            member = Consumer(
                {
                    **self._settings,
                    **more,
                    "group.id": group,
                    "group.protocol": protocol,
                    "group.instance.id": f"{group}-1",
                    "client.id": f"{group}-client",
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                }
            )
            stack.callback(member.close)
            member.subscribe(["orders"])
            self._read_and_commit(member)

    @staticmethod
    def _commit(consumer: Consumer, *offsets: TopicPartition) -> None:
        """The first to ask for a coordinator may be too early for it."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while True:
            try:
                consumer.commit(offsets=list(offsets), asynchronous=False)
                return
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    @staticmethod
    def _read_and_commit(member: Consumer) -> None:
        seen, deadline = 0, time.monotonic() + SETTLE_SECONDS_MAX
        while seen < 2 * RECORDS:
            assert time.monotonic() < deadline, "a member has not read everything"
            message = member.poll(0.5)
            seen += message is not None and message.error() is None
        member.commit(asynchronous=False)

    def says(self, tool: PatientTool, line: str) -> list[str]:
        words = [str(self._csv) if word == "{csv}" else word for word in line.split()]
        code, text = tool.run("--bootstrap-server", self._bootstrap, "--timeout", "20000", *words)
        return [f"exit {code}", *settled(text, self._bootstrap)]


def settled(text: str, bootstrap: str) -> list[str]:
    """Without what is different every time; columns are as wide as what is in them, so width is no matter."""
    text = text.replace(bootstrap, "BROKER")
    text = re.sub(r"(live|modern)-1-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", r"\1-MEMBER", text)
    text = re.sub(r"(?<![\w./+-])[\w/+-]{22}(?![\w./+:-])", "MEMBER", text)  # ids that librdkafka makes itself
    text = re.sub(r"(common\.errors\.\w+Exception: ).*", r"\1SENTENCE", text)  # the error is compared, not the words
    # The logger's lines, and where in Kafka's code something was thrown.
    lines = [line for line in text.splitlines() if not line.startswith(("[20", "\tat "))]
    head, rows = lines[:2], sorted(" ".join(line.split()) for line in lines[2:])
    return [line for line in [*(" ".join(line.split()) for line in head), *rows] if line]


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Site]]:
    with ExitStack() as stack:
        kafka = stack.enter_context(KafkaPeer(SETTINGS))
        broker = stack.enter_context(Broker(settings=SETTINGS))
        found = tuple(
            Site(bootstrap, tmp_path_factory.mktemp("site"))
            for bootstrap in (kafka.bootstrap, broker.bootstrap_servers)
        )
        for site in found:
            site.furnish(stack)
        yield found[0], found[1]


def test_the_tool_prints_what_it_prints_on_kafka(sites: tuple[Site, Site]) -> None:
    kafka, barnabas = sites
    differences = []
    with PatientTool(COMMAND) as tool:
        for line in STORY:
            expected, found = kafka.says(tool, line), barnabas.says(tool, line)
            print(line, *expected, sep="\n    ")
            if found != expected:
                differences.append("\n    ".join([line, *expected, "but", *found]))
    assert not differences, "\n".join(differences)
