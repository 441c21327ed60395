"""A slice of the differential judge without Kafka: its answers were recorded, and the broker must give the same ones.

``python -m conformance.answers --record FILE`` records all answers of Apache Kafka. The file in ``tests/data`` has
those of requests whose answers do not depend on the requests before them.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from talk import address_of

from barnabas.broker.requests.routes import ROUTES
from barnabas.testing import Broker
from barnabas.wire.messages.metadata import MetadataRequest

RECORDED = Path(__file__).parents[1] / "data" / "kafka-answers.jsonl.gz"


def recorded() -> dict[tuple[str, int, str, str], Any]:
    with gzip.open(RECORDED, "rt") as lines:
        return {tuple(row[:4]): row[4] for row in map(json.loads, lines)}  # type: ignore[misc]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    from conformance.answers.state import settings_for

    settings = settings_for(0, 0, None)
    del settings["advertised.listeners"]
    with Broker(settings=settings) as running:
        yield running


def test_the_broker_answers_as_kafka_did(broker: Broker) -> None:
    from conformance.answers.answers import comparable, differences
    from conformance.answers.cases import TOPIC, cases
    from conformance.answers.declared import declared, reason_for
    from conformance.answers.exchange import Exchange
    from conformance.answers.state import prepare

    plain, guarded = address_of(broker.address_of("PLAINTEXT")), address_of(broker.address_of("SASL_PLAINTEXT"))
    clients = {"admin": Exchange(plain), "nobody": Exchange(guarded, "nobody"), "unauthenticated": Exchange(guarded)}
    prepare(clients["admin"])
    topics = [MetadataRequest.MetadataRequestTopic(name=TOPIC)]
    answer: Any = clients["admin"].ask(MetadataRequest(topics=topics), 12)
    topic_ids = {TOPIC: answer.topics[0].topic_id}
    versions: dict[int, range] = {route.key: route.versions for route in ROUTES.values()}
    wanted, rules = recorded(), declared()
    undeclared, asked = [], 0
    for case in cases(versions, topic_ids):
        for name, client in clients.items():
            expected = wanted.get((case.api.name, case.version, case.shape, name))
            if expected is None:
                continue
            asked += 1
            given = json.loads(json.dumps(comparable(client.ask(case.message, case.version), case.version)))
            for path, kafka, ours in differences(expected, given):
                if reason_for(rules, case, name, path) is None:
                    undeclared.append((case.name, name, path, kafka, ours))
    for client in clients.values():
        client.close()
    assert asked == len(wanted)
    assert not undeclared
