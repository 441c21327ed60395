"""A disk becomes read-only, or slow, under a running broker: what lies on it suffers, and the rest lives."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from memory_disk import disk_of
from talk import Talk, batch

from barnabas.model import errors
from barnabas.testing import Broker

HOME, SECOND = "/home", "/second"
GONE = errors.KAFKA_STORAGE_ERROR.code


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(settings={"log.dirs": f"{HOME},{SECOND}"}) as running:
        yield running
        disk = disk_of(running)
        disk.read_only_prefix, disk.sync_delay_ms = None, 0


@pytest.fixture
def talk(broker: Broker) -> Iterator[Talk]:
    with Talk(broker.bootstrap_servers) as connection:
        yield connection


def test_the_partitions_of_a_read_only_disk_are_gone_and_the_rest_lives(broker: Broker, talk: Talk) -> None:
    talk.create("t", 4)
    for index in range(4):
        assert talk.produce("t", batch(b"x"), partition=index).error_code == 0
    disk_of(broker).read_only_prefix = SECOND
    codes = [talk.produce("t", batch(b"y"), partition=index).error_code for index in range(4)]
    assert sorted(codes) == [0, 0, GONE, GONE]
    assert [talk.produce("t", batch(b"z"), partition=index).error_code for index in range(4)] == codes
    broker.clock.advance("10m")
    talk.create("after", 2)
    for index in range(2):
        assert talk.produce("after", batch(b"alive"), partition=index).error_code == 0
    assert list(broker.node.services.store.offline) == [SECOND]
    assert not broker.node.failed.is_set()


def test_a_broker_whose_home_is_read_only_ends(broker: Broker, talk: Talk) -> None:
    talk.create("t", 4)
    disk_of(broker).read_only_prefix = f"{HOME}/t-"
    codes = [talk.produce("t", batch(b"y"), partition=index).error_code for index in range(4)]
    assert sorted(codes) == [0, 0, GONE, GONE]
    assert broker.node.failed.is_set()
    assert list(broker.node.services.store.offline) == [HOME]


def test_a_slow_disk_holds_up_only_those_who_wait_for_it(broker: Broker, talk: Talk) -> None:
    talk.create("synced", flush_messages="1")
    talk.create("plain")
    disk_of(broker).sync_delay_ms = 200
    with Talk(broker.bootstrap_servers) as other:
        started = time.monotonic()
        for _ in range(50):
            assert other.produce("plain", batch(b"x")).error_code == 0
            assert other.read("plain")
        assert time.monotonic() - started < 20
    started = time.monotonic()
    assert talk.produce("synced", batch(b"x")).error_code == 0
    assert time.monotonic() - started >= 0.2
