"""A limit names who sends and who receives; a rate is read as people write it; progress is a share of the leader's."""

from __future__ import annotations

import pytest

from barnabas.client.admin.configs import Change, Operation, Resource, ResourceKind
from barnabas.client.admin.replicas import Reassignment
from barnabas.model.ids import TopicPartition
from barnabas.ops.reassign.progress import Progress, progress
from barnabas.ops.reassign.throttle import FOLLOWERS, LEADERS, RATES, limits, no_limits, rate

KEY = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500000", 500_000), ("10MB", 10_000_000), ("8 MiB/s", 8 << 20), ("1k", 1000), ("2Gi", 2 << 30)],
)
def test_a_rate_is_bytes_a_second(text: str, expected: int) -> None:
    assert rate(text) == expected


@pytest.mark.parametrize("text", ["", "fast", "0", "-5", "1.5MB", "10 MB a day", "3i"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="say bytes a second"):
        rate(text)


def test_all_that_have_a_partition_may_send_and_those_that_get_it_receive() -> None:
    now = {KEY: (1, 2), TopicPartition("t", 1): (2, 3), TopicPartition("u", 0): (3,)}
    targets = {KEY: (2, 4), TopicPartition("t", 1): (3, 1), TopicPartition("u", 0): (3,)}
    found = limits(now, targets, 1000, brokers=[1, 2, 4])
    assert found == {
        Resource(ResourceKind.TOPIC, "t"): [Change(LEADERS, "0:1,0:2,1:2,1:3"), Change(FOLLOWERS, "0:4,1:1")],
        **{
            Resource(ResourceKind.BROKER, str(broker)): [Change(name, "1000") for name in RATES] for broker in (1, 2, 4)
        },
    }


def test_a_limit_is_taken_off_every_broker() -> None:
    found = no_limits(["t"], brokers=[2, 1])
    assert list(found) == [
        Resource(ResourceKind.TOPIC, "t"),
        Resource(ResourceKind.BROKER, "1"),
        Resource(ResourceKind.BROKER, "2"),
    ]
    assert {change.operation for changes in found.values() for change in changes} == {Operation.DELETE}


def test_progress_is_the_share_of_what_the_leader_has() -> None:
    move = Reassignment(replicas=(1, 2, 3, 4), adding=(2, 3, 4), removing=(1,))
    found = progress(KEY, move, 1, {1: {KEY: 200}, 2: {KEY: 199}, 3: {}})
    assert found == [Progress(2, 199, 200), Progress(3, 0, 200), Progress(4, None, 200)]
    assert [each.percent for each in found] == [99, 0, None]
    assert Progress(2, 0, 0).percent == 100
    assert Progress(2, 10, None).percent is None
