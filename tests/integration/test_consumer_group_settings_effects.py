"""Settings of groups of the consumer protocol, each shown by what members see of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from talk import Talk

from barnabas.model import errors
from barnabas.testing import Broker
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.join_group import JoinGroupRequest


@contextmanager
def running(**settings: str) -> Iterator[tuple[Broker, Talk]]:
    """A broker with these settings of its consumer groups, underscores for dots, and a topic ``t``."""
    named = {f"group.consumer.{name.replace('_', '.')}": value for name, value in settings.items()}
    with (
        Broker(settings={**named, "offsets.topic.num.partitions": "1"}) as broker,
        Talk(broker.bootstrap_servers) as talk,
    ):
        talk.create("t", 2)
        talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6)
        yield broker, talk


def beat(talk: Talk, member: str, epoch: int = 0, **fields: Any) -> Any:
    joining = {"subscribed_topic_names": ["t"], "rebalance_timeout_ms": 60_000, "topic_partitions": []}
    given = {**joining, **fields} if epoch == 0 else fields
    message = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member, member_epoch=epoch, **given)
    return talk.ask(message, 1)


def set_for_all_brokers(talk: Talk, name: str, value: str) -> None:
    config = IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=value)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
    assert talk.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses[0].error_code == 0


def test_heartbeat_interval_ms() -> None:
    """group.consumer.heartbeat.interval.ms"""
    with running(heartbeat_interval_ms="7000") as (_, talk):
        assert beat(talk, "m").heartbeat_interval_ms == 7000


def test_session_timeout_ms() -> None:
    """group.consumer.session.timeout.ms"""
    with running(session_timeout_ms="50000") as (broker, talk):
        epoch = beat(talk, "m").member_epoch
        broker.clock.advance("49s")
        answer = beat(talk, "m", epoch)
        assert answer.error_code == 0
        broker.clock.advance("51s")
        assert beat(talk, "m", answer.member_epoch).error_code == errors.UNKNOWN_MEMBER_ID.code


def test_assignors() -> None:
    """group.consumer.assignors"""
    with running(assignors="range") as (_, talk):
        assert beat(talk, "m", server_assignor="uniform").error_code == errors.UNSUPPORTED_ASSIGNOR.code
        assert beat(talk, "m", server_assignor="range").error_code == 0


@pytest.mark.parametrize(("policy", "is_taken"), [("disabled", False), ("bidirectional", True)])
def test_migration_policy(policy: str, is_taken: bool) -> None:
    """group.consumer.migration.policy"""
    with running(migration_policy=policy) as (_, talk):
        assert beat(talk, "m").error_code == 0
        subscription = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=subscription)
        answer = talk.ask(
            JoinGroupRequest(
                group_id="g",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[protocol],
            ),
            3,
        )
        assert (answer.error_code == 0) is is_taken


def test_assignment_interval_ms() -> None:
    """group.consumer.assignment.interval.ms"""
    with running(assignment_interval_ms="10000") as (broker, talk):

        def epochs() -> tuple[int, int]:
            (group,) = talk.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups
            return group.group_epoch, group.assignment_epoch

        epoch = beat(talk, "one").member_epoch
        wanted, shared_out = epochs()
        if wanted != shared_out:  # the group has heard of the topic a moment after its first member
            broker.clock.advance("11s")
            epoch = beat(talk, "one", epoch).member_epoch
            wanted, shared_out = epochs()
        assert wanted == shared_out
        beat(talk, "two")
        assert epochs() == (wanted + 1, shared_out)  # what was shared out a moment ago stays for a while
        broker.clock.advance("11s")
        beat(talk, "one", epoch)
        assert epochs() == (wanted + 1, wanted + 1)
        set_for_all_brokers(talk, "group.consumer.assignment.interval.ms", "0")
        beat(talk, "three")
        assert epochs() == (wanted + 2, wanted + 2)


def test_regex_refresh_interval_ms() -> None:
    """group.consumer.regex.refresh.interval.ms"""
    with running(regex_refresh_interval_ms="30000", session_timeout_ms="60000") as (broker, talk):

        def lines() -> int:
            """How much was written: what a pattern matches is written down whenever it is looked up."""
            written: int = talk.fetch("__consumer_offsets").high_watermark
            return written

        epoch = beat(talk, "m", subscribed_topic_names=None, subscribed_topic_regex="t.*").member_epoch
        beat(talk, "m", epoch)
        before = lines()
        broker.clock.advance("20s")
        beat(talk, "m", epoch)
        assert lines() == before
        broker.clock.advance("11s")
        beat(talk, "m", epoch)
        assert lines() > before
