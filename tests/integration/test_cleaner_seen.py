"""What the cleaner does, and why it does not, can be seen: over the wire, on the command line and in the metrics."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from talk import Talk, batch

from barnabas.broker.metrics.cleaner import of_cleaner
from barnabas.observe.metrics import Sample
from barnabas.testing import Broker
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest

NAMED = DescribeLogDirsRequest.DescribableLogDirTopic


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(settings={"log.cleaner.backoff.ms": "600000"}) as running:
        yield running


def sentences(broker: Broker, topic: str, version: int = 4) -> list[str | None]:
    with Talk(broker.bootstrap_servers) as talk:
        topics = [NAMED(topic=topic, partitions=[0])]
        answer = talk.ask(DescribeLogDirsRequest(topics=topics, include_state=True), version)
    return [part.cleaner for result in answer.results for row in result.topics for part in row.partitions]


def described(broker: Broker, *options: str) -> str:
    command = [sys.executable, "-m", "barnabas", "topic", "describe", *options, "-b", broker.bootstrap_servers]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_a_log_says_how_it_stands_with_the_cleaner(broker: Broker) -> None:
    with Talk(broker.bootstrap_servers) as talk:
        talk.create("keyed", cleanup_policy="compact", segment_bytes=str(1 << 20))
        talk.create("plain")
        assert sentences(broker, "keyed") == [
            "clean: nothing below offset 0 is dirty; from there, the active segment is never cleaned"
        ]
        assert sentences(broker, "plain") == ["not compacted: cleanup.policy does not name compact"]
        assert sentences(broker, "keyed", version=1) == [None], "versions without tagged fields say nothing"
        for number in range(30):
            talk.produce("keyed", batch(bytes(100_000), key=b"%d" % (number % 3)))
    (sentence,) = sentences(broker, "keyed")
    assert sentence is not None
    assert sentence.startswith("due: it waits for its turn")
    assert broker.run(broker.node.services.cleaner.clean_dirtiest())
    (sentence,) = sentences(broker, "keyed")
    assert sentence is not None
    assert "last round up to offset" in sentence


def test_the_command_line_shows_it(broker: Broker) -> None:
    with Talk(broker.bootstrap_servers) as talk:
        talk.create("keyed", 2, cleanup_policy="compact")
        talk.create("plain")
    assert described(broker, "keyed").count("clean: nothing below offset 0 is dirty") == 2
    assert "CLEANER" not in described(broker, "plain")
    found = json.loads(described(broker, "keyed", "-o", "json"))
    topic = found[0] if isinstance(found, list) else found
    assert topic["partitions"][0]["cleaner"].startswith("clean: ")


def test_the_metrics_show_it(broker: Broker) -> None:
    with Talk(broker.bootstrap_servers) as talk:
        talk.create("keyed", cleanup_policy="compact", segment_bytes=str(1 << 20))
        for number in range(30):
            talk.produce("keyed", batch(bytes(100_000), key=b"%d" % (number % 3)))
    assert broker.run(broker.node.services.cleaner.clean_dirtiest())

    async def families() -> dict[str, list[Sample]]:
        return {family.name: list(family.samples) for family in of_cleaner(broker.node.services)}

    found = broker.run(families())
    assert found["barnabas_cleaner_rounds_total"] == [Sample(1)]
    state = (("topic", "keyed"), ("partition", "0"), ("state", "clean"))
    assert found["barnabas_cleaner_state"] == [Sample(1, state)]
    assert found["kafka_log_logcleanermanager_uncleanablepartitionscount"] == [Sample(0)]
