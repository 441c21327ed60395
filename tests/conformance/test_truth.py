"""The judge tells the truth: a broker that loses records, or does not answer, loses the cells that were passes."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest
from conformance.outcome import Outcome, Verdict
from conformance.suites import clients

from barnabas.storage.log import Appended, PartitionLog
from barnabas.testing import Broker
from conformance import verdicts

DROPPED_OF = 2  # every second batch of a topic


def outcome_on(bootstrap: str, cell: str) -> Outcome:
    peer: Any = SimpleNamespace(bootstrap=bootstrap)
    (outcome,) = clients.leg([cell]).run(peer, [cell])
    return outcome


def is_a_loss(outcome: Outcome) -> bool:
    return verdicts.losses(verdicts.read("clients"), "barnabas", [outcome]) == [outcome]


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["barnabas: codecs", "confluent-kafka: codecs"])
def test_a_broker_that_acknowledges_and_drops_loses_a_pass(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    append, counts = PartitionLog.append_as_leader, dict[int, int]()

    def forgetful(log: PartitionLog, validated: Any, **words: Any) -> Appended:
        if not log.partition.topic.startswith("__"):
            counts[id(log)] = counts.get(id(log), 0) + 1
            if counts[id(log)] % DROPPED_OF == 0:
                return Appended(log.end_offset - 1, log.end_offset - 1, -1, log.log_start_offset)
        return append(log, validated, **words)

    monkeypatch.setattr(PartitionLog, "append_as_leader", forgetful)
    with Broker() as broker:
        outcome = outcome_on(broker.bootstrap_servers, cell)
    assert is_a_loss(outcome)
    assert outcome.reason.startswith("expected")


def test_a_broker_that_does_not_answer_loses_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "TEST_SECONDS_MAX", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        outcome = outcome_on("{}:{}".format(*silent.getsockname()), "confluent-kafka: round-trip")
    assert outcome.verdict is Verdict.TIMEOUT
    assert is_a_loss(outcome)
