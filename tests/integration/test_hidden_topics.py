"""Topics that a principal may not describe do not show in what it is told of groups."""

from __future__ import annotations

from rights import G, Granted, May, T
from talk import Talk

from barnabas.model import errors
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest


def test_a_pattern_stands_for_topics_that_the_member_may_describe(
    admin: Talk, alice: Talk, grant: Granted, name: str
) -> None:
    for letter in "ab":
        admin.create(f"{name}-{letter}")
    admin.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[name]))
    grant(May.READ, G, name)
    grant(May.DESCRIBE, T, f"{name}-b")
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id=name,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=5000,
        subscribed_topic_names=[],
        subscribed_topic_regex=f"{name}-.*",
        topic_partitions=[],
    )
    assert alice.ask(heartbeat, 1).error_code == 0
    (group,) = admin.ask(ConsumerGroupDescribeRequest(group_ids=[name])).groups
    (member,) = group.members
    assert [row.topic_name for row in member.target_assignment.topic_partitions] == [f"{name}-b"]


def test_a_group_that_reads_hidden_topics_is_not_described(admin: Talk, alice: Talk, grant: Granted, name: str) -> None:
    admin.create(name)
    admin.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[name, f"{name}-idle"]))
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id=name,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=5000,
        subscribed_topic_names=[name],
        topic_partitions=[],
    )
    assert admin.ask(heartbeat, 1).error_code == 0
    grant(May.DESCRIBE, G, name)
    (group,) = alice.ask(ConsumerGroupDescribeRequest(group_ids=[name])).groups
    assert (group.group_id, group.error_code, group.members) == (name, errors.TOPIC_AUTHORIZATION_FAILED.code, [])
    grant(May.DESCRIBE, T, name)
    (group,) = alice.ask(ConsumerGroupDescribeRequest(group_ids=[name])).groups
    assert group.error_code == 0
    (member,) = group.members
    assert [row.topic_name for row in member.target_assignment.topic_partitions] == [name]
