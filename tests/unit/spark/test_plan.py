"""What a batch reads when partitions come and go."""

from __future__ import annotations

from barnabas.model.ids import TopicPartition
from barnabas.spark.connector.offsets import Range
from barnabas.spark.connector.plan import needs_earliest, plan

A, B = TopicPartition("a", 0), TopicPartition("a", 1)


def test_a_new_partition_is_read_from_its_beginning() -> None:
    planned = plan({A: 3}, {A: 5, B: 7}, earliest={B: 0})
    assert planned.ranges == [Range(A, 3, 5), Range(B, 0, 7)]
    assert planned.losses == []


def test_a_new_partition_that_has_lost_its_beginning_is_a_loss() -> None:
    assert "begins at 4" in plan({}, {B: 7}, earliest={B: 4}).losses[0]


def test_a_partition_that_is_gone_is_a_loss() -> None:
    planned = plan({A: 3, B: 4}, {A: 5}, earliest={})
    assert planned.ranges == [Range(A, 3, 5)]
    assert planned.losses == ["a-1 is gone, and it was read up to 4"]


def test_a_topic_made_again_is_read_from_its_beginning_even_if_it_has_grown_longer() -> None:
    planned = plan({A: 3}, {A: 5}, earliest={A: 0}, renewed={"a"})
    assert planned.ranges == [Range(A, 0, 5)]
    assert "deleted and made again" in planned.losses[0]
    assert needs_earliest({A: 3}, {A: 5}, renewed={"a"}) == [A]


def test_an_end_that_went_back_is_a_loss() -> None:
    planned = plan({A: 9}, {A: 5}, earliest={A: 1})
    assert planned.ranges == [Range(A, 1, 5)]
    assert "was read up to 9" in planned.losses[0]
