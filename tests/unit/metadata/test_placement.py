"""Replicas spread over racks, then brokers; fenced brokers lead nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from barnabas.metadata.placement import UsableBroker, place
from barnabas.model.errors import INVALID_REPLICATION_FACTOR, ApiError

NINE = [UsableBroker(broker, "abc"[broker % 3], False) for broker in range(9)]


def test_every_partition_has_one_replica_in_each_rack() -> None:
    for seed in range(20):
        for replicas in place(NINE, partition_count=30, replication_factor=3, seed=seed):
            assert sorted(broker % 3 for broker in replicas) == [0, 1, 2]


def test_leaders_and_replicas_are_spread_evenly() -> None:
    placed = place(NINE, partition_count=90, replication_factor=3, seed=5)
    assert max(Counter(replicas[0] for replicas in placed).values()) <= 16
    load = Counter(broker for replicas in placed for broker in replicas)
    assert set(load) == set(range(9))
    assert max(load.values()) - min(load.values()) <= 9


def test_the_same_seed_gives_the_same_answer_in_any_order_of_brokers() -> None:
    there = place(NINE, partition_count=20, replication_factor=2, seed=11)
    assert place(NINE[::-1], partition_count=20, replication_factor=2, seed=11) == there
    assert place(NINE, partition_count=20, replication_factor=2, seed=12) != there


def test_fenced_brokers_never_lead_and_come_last() -> None:
    brokers = [UsableBroker(0, None, False), UsableBroker(1, None, True), UsableBroker(2, None, False)]
    for seed in range(20):
        for replicas in place(brokers, partition_count=6, replication_factor=2, seed=seed):
            assert set(replicas) == {0, 2}
        for replicas in place(brokers, partition_count=6, replication_factor=3, seed=seed):
            assert replicas[0] != 1
            assert set(replicas) == {0, 1, 2}


def test_a_rack_of_fenced_brokers_only_still_gets_replicas_but_no_leader() -> None:
    brokers = [UsableBroker(0, "a", False), UsableBroker(1, "b", True), UsableBroker(2, "c", False)]
    for seed in range(30):
        for replicas in place(brokers, partition_count=5, replication_factor=3, seed=seed):
            assert replicas[0] != 1
            assert sorted(replicas) == [0, 1, 2]


def test_replicas_of_a_partition_are_distinct_whatever_the_racks() -> None:
    for seed in range(40):
        brokers = [UsableBroker(n, None if n % 4 == 0 else str(n % 4), n % 5 == 4) for n in range(11)]
        for factor in (1, 3, 7, 11):
            for replicas in place(brokers, partition_count=25, replication_factor=factor, seed=seed):
                assert len(set(replicas)) == factor
                assert replicas[0] % 5 != 4


def test_one_broker_is_enough_for_one_replica() -> None:
    assert place([UsableBroker(4, None, False)], partition_count=3, replication_factor=1, seed=0) == [(4,)] * 3


@pytest.mark.parametrize(
    ("brokers", "factor"),
    [([], 1), (NINE, 10), (NINE, 0), (NINE, -1), ([UsableBroker(1, None, True)], 1)],
)
def test_what_cannot_be_placed_is_refused(brokers: list[UsableBroker], factor: int) -> None:
    with pytest.raises(ApiError) as refused:
        place(brokers, partition_count=1, replication_factor=factor, seed=0)
    assert refused.value.error is INVALID_REPLICATION_FACTOR
