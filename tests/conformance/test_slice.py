"""A slice of the lists of verdicts, run as `python -m conformance run` runs it: what is listed as a pass passes.

Only what comes from PyPI is in it: cells of the Python clients, and a few of kafka-python's own tests from its source
distribution. The rest (Java, Go, Node, librdkafka's tests) needs more than a package index: `make conformance`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from bench.peers import Peer
from conformance.brokers import started
from conformance.fetched import CannotFetch
from conformance.outcome import Leg, Outcome, Verdict
from conformance.suites import clients, kafka_python

from conformance import verdicts

Run = Callable[[str], list[Outcome]]

CELLS = (
    "aiokafka: offsets",
    "aiokafka: topics",
    "aiokafka: transactions",
    "barnabas: next-group",
    "barnabas: round-trip",
    "confluent-kafka: codecs",
    "confluent-kafka: group",
    "confluent-kafka: next-group",
    "confluent-kafka: transactions",
    "kafka-python: group",
    "kafka-python: idempotence",
    "kafka-python: round-trip",
)
OF_KAFKA_PYTHON = (
    "test_admin_integration.py::test_create_delete_topics",
    "test_consumer_integration.py::test_kafka_consumer_offsets_for_time",
    "test_producer_integration.py::test_end_to_end[lz4]",
    "test_producer_integration.py::test_transactional_producer_offsets",
)


def on_barnabas(leg: Leg) -> Iterator[Run]:
    with started("barnabas", leg) as peer:
        yield lambda test: _alone(peer, leg, test)


def _alone(peer: Peer, leg: Leg, test: str) -> list[Outcome]:
    outcomes = list(leg.run(peer, (test,)))
    assert peer.is_alive(), peer.log_end()
    return outcomes


@pytest.fixture(scope="module")
def cell() -> Iterator[Run]:
    yield from on_barnabas(clients.leg(CELLS))


@pytest.fixture(scope="module")
def of_kafka_python() -> Iterator[Run]:
    try:
        kafka_python.unpacked()
    except CannotFetch as error:
        pytest.skip(f"no source distribution of kafka-python: {error}")
    yield from on_barnabas(kafka_python.leg(OF_KAFKA_PYTHON))


def expect_no_loss(suite: str, test: str, outcomes: Sequence[Outcome]) -> None:
    row = verdicts.read(suite)[test]
    assert row.barnabas is Verdict.PASS, "the slice is made of passes"
    assert [outcome.test for outcome in outcomes] == [test]
    assert verdicts.losses({test: row}, "barnabas", outcomes) == []


@pytest.mark.parametrize("test", CELLS)
def test_a_cell_that_is_listed_as_a_pass_passes(cell: Run, test: str) -> None:
    expect_no_loss("clients", test, cell(test))


@pytest.mark.parametrize("test", OF_KAFKA_PYTHON)
def test_a_test_of_kafka_python_that_is_listed_as_a_pass_passes(of_kafka_python: Run, test: str) -> None:
    expect_no_loss("kafka-python", test, of_kafka_python(test))


def test_a_cell_that_its_client_does_not_have_fails(cell: Run) -> None:
    (outcome,) = cell("kafka-python: nothing-of-the-kind")
    assert (outcome.verdict, outcome.reason) == (Verdict.FAIL, "no nothing-of-the-kind")
