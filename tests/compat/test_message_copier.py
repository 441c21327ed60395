"""Exactly once, as Kafka's own test of it: messages are copied in transactions while the broker is killed, and counted.

The copiers abort at random; a reader of committed records looks on all the time, another one at the end. Both must
have every message once. `make copier` is the run in full: 100,000 messages and 20 kills.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from copiers import Copier
from onlooking import Onlooker

from barnabas.testing import BrokerProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

MESSAGES = int(os.environ.get("BARNABAS_COPIER_MESSAGES", "10000"))
KILLS = int(os.environ.get("BARNABAS_COPIER_KILLS", "3"))
SEED = int(os.environ.get("BARNABAS_COPIER_SEED", "20260101"))
PARTITIONS = 2
STALL_SECONDS_MAX = 90
SOURCE, TARGET = "source", "target"


def fill(bootstrap: str) -> Counter[bytes]:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    for name, future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in (SOURCE, TARGET)]).items():
        assert future.result(30) is None, name
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    written: Counter[bytes] = Counter()
    for number in range(MESSAGES):
        producer.produce(SOURCE, b"%d" % number, partition=number % PARTITIONS)
        written[b"%d" % number] += 1
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0
    return written


def wait(is_reached: Callable[[], bool], copiers: list[Copier], what: str) -> float:
    """How long it took; no more than may pass without any progress."""
    started = last = time.monotonic()
    before = -1
    while not is_reached():
        copied = sum(copier.copied for copier in copiers)
        now = time.monotonic()
        if copied != before:
            before, last = copied, now
        failures = [copier.failure for copier in copiers if copier.failure]
        assert not failures, failures
        assert now - last < STALL_SECONDS_MAX, f"{copied} messages are copied, and no more: {what}"
        time.sleep(0.02)
    return time.monotonic() - started


@pytest.mark.parametrize("in_group", [False, True], ids=["assigned", "in-group"])
def test_every_message_is_copied_once_whenever_the_broker_is_killed(tmp_path: Path, in_group: bool) -> None:
    chance = random.Random(SEED)
    broker = BrokerProcess(tmp_path / "data", settings={"group.min.session.timeout.ms": "1000"})
    broker.start()
    copiers: list[Copier] = []
    try:
        bootstrap = broker.bootstrap_servers
        written = fill(bootstrap)
        onlooker = Onlooker(bootstrap, TARGET, PARTITIONS)
        copiers += [
            Copier(bootstrap, SOURCE, TARGET, number, tmp_path / f"copier-{number}.log", in_group=in_group)
            for number in range(PARTITIONS)
        ]
        away: list[float] = []
        for kill in range(1, KILLS + 1):
            bound = MESSAGES * kill // (KILLS + 2)  # far enough from the end for the last kill to find them at work
            wait(partial(_go_on, copiers, bound - 1), copiers, f"{bound} are copied")
            time.sleep(chance.uniform(0, 0.2))
            broker.kill()
            before = _copied(copiers)
            broker.start()
            away.append(wait(partial(_go_on, copiers, before), copiers, f"kill {kill}"))
        wait(lambda: _are_done(copiers), copiers, "the end")
        wait(lambda: onlooker.seen.total() >= MESSAGES, copiers, "the reader sees the rest")
        onlooker.stop()
        judge = Onlooker(bootstrap, TARGET, PARTITIONS)
        wait(lambda: judge.seen.total() >= MESSAGES, copiers, "another reader sees everything")
        judge.stop()
    finally:
        for copier in copiers:
            copier.stop()
        broker.stop()
    assert not onlooker.failure
    assert onlooker.seen == written
    assert judge.seen == written
    starts = sum(copier.starts for copier in copiers)
    print(
        f"{MESSAGES} messages, {KILLS} kills, copiers started {starts} times: every message once;"
        f" from the start of the broker to the next commit {', '.join(f'{each:.1f}' for each in away)} s"
    )


def _copied(copiers: list[Copier]) -> int:
    return sum(copier.copied for copier in copiers)


def _are_done(copiers: list[Copier]) -> bool:
    return all(copier.is_done for copier in copiers)


def _go_on(copiers: list[Copier], before: int) -> bool:
    """They have copied more than that; or everything, which a fast machine does before one looks."""
    return _copied(copiers) > before or _are_done(copiers)
