"""Settings of groups and transactions, each shown by what it changes."""

from __future__ import annotations

import time
from typing import Any

import pytest
from configured import find_coordinator, running, topic_config
from talk import Talk

from barnabas.model import errors
from barnabas.testing import Broker
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest

TOPIC, GROUP = 2, 32


def join(talk: Talk, group: str, *, session_timeout_ms: int = 10_000, member_id: str = "", version: int = 3) -> Any:
    message = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    return talk.ask(message, version)


@pytest.mark.parametrize(
    ("settings", "session_timeout_ms", "error"),
    [
        ({"group_min_session_timeout_ms": "5000"}, 4999, errors.INVALID_SESSION_TIMEOUT),
        ({"group_min_session_timeout_ms": "5000"}, 5000, errors.NONE),
        ({"group_max_session_timeout_ms": "7000"}, 7001, errors.INVALID_SESSION_TIMEOUT),
        ({"group_max_session_timeout_ms": "7000"}, 7000, errors.NONE),
    ],
)
def test_group_session_timeouts(settings: dict[str, str], session_timeout_ms: int, error: errors.WireError) -> None:
    with running(**settings) as (_, talk):
        assert find_coordinator(talk, "g") == 0
        assert join(talk, "g", session_timeout_ms=session_timeout_ms).error_code == error.code


def test_group_initial_rebalance_delay_ms() -> None:
    with running(group_initial_rebalance_delay_ms="400") as (_, talk):
        assert find_coordinator(talk, "g") == 0
        started = time.monotonic()
        assert join(talk, "g").error_code == 0
        assert time.monotonic() - started >= 0.4


def test_group_max_size() -> None:
    with running(group_max_size="1") as (broker, talk):
        assert find_coordinator(talk, "g") == 0
        assert join(talk, "g").error_code == 0
        with Talk(broker.bootstrap_servers) as second:
            assert join(second, "g").error_code == errors.GROUP_MAX_SIZE_REACHED.code


def commit(talk: Talk, note: str = "") -> int:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=0, committed_metadata=note
    )
    row = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])
    code: int = talk.ask(OffsetCommitRequest(group_id="g", topics=[row]), 9).topics[0].partitions[0].error_code
    return code


def test_offset_metadata_max_bytes() -> None:
    with running(offset_metadata_max_bytes="5") as (_, talk):
        talk.create("t")
        assert find_coordinator(talk, "g") == 0
        assert commit(talk, "12345") == 0
        assert commit(talk, "123456") == errors.OFFSET_METADATA_TOO_LARGE.code


def test_offsets_retention() -> None:
    settings = {"offsets_retention_minutes": "10", "offsets_retention_check_interval_ms": "3600000"}
    with running(**settings) as (broker, talk):
        talk.create("t")
        assert find_coordinator(talk, "g") == 0
        assert commit(talk) == 0

        def committed() -> int:
            group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
            return len(talk.ask(OffsetFetchRequest(groups=[group]), 9).groups[0].topics)

        broker.clock.advance("30m")
        assert committed() == 1  # too old, and nobody has looked yet
        broker.clock.advance("1h")
        assert committed() == 0


def test_the_topic_of_offsets_is_made_as_the_settings_say() -> None:
    with running(offsets_topic_segment_bytes="2097152", offsets_topic_num_partitions="3") as (_, talk):
        assert find_coordinator(talk, "g") == 0
        assert topic_config(talk, "__consumer_offsets", "segment.bytes") == "2097152"
        wanted = [DescribeTopicPartitionsRequest.TopicRequest(name="__consumer_offsets")]
        assert len(talk.ask(DescribeTopicPartitionsRequest(topics=wanted)).topics[0].partitions) == 3


def test_offsets_topic_replication_factor() -> None:
    with running(offsets_topic_replication_factor="3") as (_, talk):
        assert find_coordinator(talk, "g") == errors.COORDINATOR_NOT_AVAILABLE.code


def test_transaction_state_log_min_isr() -> None:
    with running(transaction_state_log_min_isr="1", transaction_state_log_num_partitions="2") as (_, talk):
        assert find_coordinator(talk, "id", kind=1) == 0
        assert topic_config(talk, "__transaction_state", "min.insync.replicas") == "1"


def set_group(talk: Talk, name: str, value: str) -> int:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=GROUP,
        resource_name="g",
        configs=[IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=value)],
    )
    code: int = talk.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses[0].error_code
    return code


@pytest.mark.parametrize(
    ("bounds", "name", "inside", "outside"),
    [
        (
            {"group.consumer.min.session.timeout.ms": "40000", "group.consumer.max.session.timeout.ms": "50000"},
            "consumer.session.timeout.ms",
            ("40000", "50000"),
            ("39999", "50001"),
        ),
        (
            {"group.consumer.min.heartbeat.interval.ms": "2000", "group.consumer.max.heartbeat.interval.ms": "9000"},
            "consumer.heartbeat.interval.ms",
            ("2000", "9000"),
            ("1999", "9001"),
        ),
        (
            {"group.consumer.min.assignment.interval.ms": "0", "group.consumer.max.assignment.interval.ms": "3000"},
            "consumer.assignment.interval.ms",
            ("0", "3000"),
            ("-1", "3001"),
        ),
    ],
)
def test_groups_may_set_what_the_broker_allows(
    bounds: dict[str, str], name: str, inside: tuple[str, ...], outside: tuple[str, ...]
) -> None:
    with Broker(settings=bounds) as broker, Talk(broker.bootstrap_servers) as talk:
        assert [set_group(talk, name, value) for value in inside] == [0, 0]
        assert [set_group(talk, name, value) for value in outside] == [errors.INVALID_CONFIG.code] * 2
