"""Plans for moving partitions: what may stay stays, load and racks are evened out, leaders are spread."""

from __future__ import annotations

import pytest

from barnabas.model.ids import TopicPartition
from barnabas.ops.reassign.plan import plan


def partitions(*replicas: tuple[int, ...]) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition("t", index): each for index, each in enumerate(replicas)}


def test_what_is_well_placed_stays() -> None:
    now = partitions((1, 2, 3), (2, 3, 1), (3, 1, 2))
    assert plan(now, dict.fromkeys((1, 2, 3))) == {}


def test_a_broker_is_emptied_and_its_places_are_taken_by_the_least_loaded() -> None:
    now = partitions((1, 2), (2, 3), (3, 1))
    assert plan(now, dict.fromkeys((1, 2, 4))) == {
        TopicPartition("t", 1): (2, 4),
        TopicPartition("t", 2): (4, 1),
    }


def test_replicas_go_to_racks_that_the_partition_has_not_yet() -> None:
    moved = plan(partitions((1, 9)), {1: "a", 2: "a", 3: "b"})
    assert moved == {TopicPartition("t", 0): (1, 3)}


def test_the_number_of_replicas_can_be_changed() -> None:
    now = partitions((1,), (2,), (3,))
    more = plan(now, dict.fromkeys((1, 2, 3)), replication_factor=3)
    assert {len(set(replicas)) for replicas in more.values()} == {3}
    assert sorted(replicas[0] for replicas in more.values()) == [1, 2, 3]
    less = plan(partitions((1, 2, 3), (2, 3, 1)), dict.fromkeys((1, 2, 3)), replication_factor=1)
    assert less == {TopicPartition("t", 0): (1,), TopicPartition("t", 1): (2,)}


def test_leaders_are_spread() -> None:
    moved = plan(partitions(*[(1, 2, 3)] * 6), dict.fromkeys((1, 2, 3)))
    leaders = [moved.get(TopicPartition("t", index), (1,))[0] for index in range(6)]
    assert sorted(leaders) == [1, 1, 2, 2, 3, 3]


def test_too_few_brokers_are_refused() -> None:
    with pytest.raises(ValueError, match="3 replicas need 3 brokers, and there are 2"):
        plan(partitions((1, 2, 3)), dict.fromkeys((1, 2)))
