"""Topics that a principal may not describe do not show in what it is told of groups."""

from __future__ import annotations

from rights import G, Granted, May, T
from talk import Talk

from barnabas.coordinator.consumer.step import PATTERN_REFRESH_INTERVAL_MIN_MS
from barnabas.model import errors
from barnabas.testing import Broker
from barnabas.wire.message import encode
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.join_group import JoinGroupRequest


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


def test_a_classic_member_refreshes_a_pattern_with_its_own_permissions(
    guarded: Broker, admin: Talk, alice: Talk, grant: Granted, name: str
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
    admin.create(f"{name}-c")
    guarded.clock.advance(PATTERN_REFRESH_INTERVAL_MIN_MS + 1)
    metadata = b"\0\3" + encode(ConsumerProtocolSubscription(topics=[f"{name}-b"]), 3)
    join = JoinGroupRequest(
        group_id=name,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=5000,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )
    assert alice.ask(join, 3).error_code == 0
    (group,) = admin.ask(ConsumerGroupDescribeRequest(group_ids=[name])).groups
    shown = {row.topic_name for member in group.members for row in member.target_assignment.topic_partitions}
    assert shown == {f"{name}-b"}


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
