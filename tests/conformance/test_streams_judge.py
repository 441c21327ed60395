"""The Streams API gives the answers of Apache Kafka: descriptions and every output record of the judge's topologies.

The recorded slice needs no Java; the comparison with more records runs Kafka's own test driver.
"""

from __future__ import annotations

import re

import pytest
from conformance.streams import ours, recorded
from conformance.streams.judge import judge
from conformance.streams.records import generate
from conformance.streams.topologies import ALL

ANSWERS = recorded.answers()
RECORDS = generate(recorded.SEED, recorded.RECORDS)


def test_all_topologies_are_recorded() -> None:
    assert list(ANSWERS) == list(ALL)
    assert len(ALL) >= 60


@pytest.mark.parametrize("name", ALL)
def test_the_description_is_kafkas(name: str) -> None:
    extractor = re.compile(r"extractor class: .*")  # the name of a lambda differs
    assert extractor.sub("", ours.description(name)) == extractor.sub("", ANSWERS[name]["description"])


@pytest.mark.parametrize("name", ALL)
def test_the_output_is_kafkas(name: str) -> None:
    assert ours.run(name, RECORDS) == ANSWERS[name]["output"]


@pytest.mark.parametrize("name", ALL)
def test_restored_tasks_continue_as_if_nothing_had_happened(name: str) -> None:
    assert ours.run(name, RECORDS, restart_every=5) == ANSWERS[name]["output"]


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_there_is_no_difference_on_random_records(seed: int) -> None:
    assert [verdict for verdict in judge(seed, 2_000) if verdict.difference is not None] == []
