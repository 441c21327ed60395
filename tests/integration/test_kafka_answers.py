"""Single answers that clients and tools have met, each as Apache Kafka 4.3 gives it.

Run with ``BARNABAS_TEST_BOOTSTRAP`` naming a broker of Apache Kafka (with its StandardAuthorizer, and with everyone as
a super user), Kafka judges what is expected here.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from rights import Granted, May, T
from talk import Talk

from barnabas.broker.requests import dispatch
from barnabas.broker.requests.routes import ROUTES
from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.testing import Broker
from barnabas.wire.api import ApiKey
from barnabas.wire.message import encode
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
SET, DELETE, APPEND = 0, 1, 2
TOPIC_OPERATIONS = 0b1101_1111_1000
DEFAULT, ALL_BROKERS = 5, 3


def own_id(talk: Talk) -> str:
    return str(talk.ask(DescribeClusterRequest()).brokers[0].broker_id)


# --- groups and transactions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", TxnOffsetCommitRequest.versions)
def test_a_transactional_commit_without_a_group_is_refused(talk: Talk, name: str, version: int) -> None:
    talk.create(name)
    part = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [
        TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=each, partitions=[part]) for each in (name, "absent")
    ]
    request = TxnOffsetCommitRequest(transactional_id="x", group_id="", producer_id=1, producer_epoch=0, topics=topics)
    codes = {row.name: row.partitions[0].error_code for row in talk.ask(request, version).topics}
    assert codes[name] == errors.INVALID_GROUP_ID.code


@pytest.mark.parametrize(
    ("version", "fields", "error"),
    [
        (4, {"group_id": ""}, errors.INVALID_GROUP_ID),
        (5, {"group_id": ""}, errors.INCONSISTENT_GROUP_PROTOCOL),
        (5, {"group_id": "", "protocol_type": "consumer"}, errors.INCONSISTENT_GROUP_PROTOCOL),
        (5, {"group_id": "", "protocol_type": "consumer", "protocol_name": "range"}, errors.INVALID_GROUP_ID),
        (5, {"group_id": "g"}, errors.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_sync_is_checked_for_its_protocol_before_its_group(
    talk: Talk, version: int, fields: dict[str, str], error: WireError
) -> None:
    talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    assert talk.ask(SyncGroupRequest(member_id="m", generation_id=1, **fields), version).error_code == error.code


def subscription(*topics: str) -> bytes:
    version = 3
    return version.to_bytes(2) + encode(ConsumerProtocolSubscription(topics=list(topics)), version)


@pytest.mark.parametrize("version", range(6))
def test_a_classic_member_leaves_a_group_of_the_consumer_protocol(talk: Talk, name: str, version: int) -> None:
    talk.create(name)
    talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[name]))
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id=name,
        member_id="modern",
        member_epoch=0,
        rebalance_timeout_ms=5000,
        subscribed_topic_names=[name],
        topic_partitions=[],
    )
    assert talk.ask(heartbeat, 1).error_code == 0
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=subscription(name))
    join = JoinGroupRequest(
        group_id=name,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=5000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    joined = talk.ask(join, 3)
    assert joined.error_code == 0
    leave = LeaveGroupRequest(group_id=name)
    if version < 3:
        leave.member_id = joined.member_id
    else:
        leave.members = [LeaveGroupRequest.MemberIdentity(member_id=joined.member_id)]
    answer = talk.ask(leave, version)
    assert (answer.error_code, [row.error_code for row in answer.members]) == (0, [] if version < 3 else [0])
    leave = LeaveGroupRequest(group_id=name, member_id=joined.member_id)
    assert talk.ask(leave, 0).error_code == errors.UNKNOWN_MEMBER_ID.code


# --- topics -----------------------------------------------------------------------------------------------------------


def test_topics_that_cannot_exist_are_described_as_such(talk: Talk) -> None:
    topic = DescribeTopicPartitionsRequest.TopicRequest
    names = ["..", "absent", "bad name", "x" * 250]
    answer = talk.ask(DescribeTopicPartitionsRequest(topics=[topic(name=name) for name in names]))
    invalid, unknown = errors.INVALID_TOPIC_EXCEPTION.code, errors.UNKNOWN_TOPIC_OR_PARTITION.code
    assert [(row.name, row.error_code) for row in answer.topics] == [
        ("..", invalid),
        ("absent", unknown),
        ("bad name", invalid),
        ("x" * 250, invalid),
    ]
    assert {row.topic_authorized_operations for row in answer.topics} == {TOPIC_OPERATIONS}


@pytest.mark.parametrize(("topic", "partition"), [("other", 0), ("absent", -1)])
def test_a_cursor_that_points_nowhere_is_refused(talk: Talk, topic: str, partition: int) -> None:
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.TopicRequest(name="absent")],
        cursor=DescribeTopicPartitionsRequest.Cursor(topic_name=topic, partition_index=partition),
    )
    (row,) = talk.ask(request).topics
    assert (row.name, row.error_code) == ("absent", errors.INVALID_REQUEST.code)


def test_a_cursor_at_a_hidden_topic_goes_on_with_the_next(admin: Talk, alice: Talk, grant: Granted, name: str) -> None:
    for letter in "ab":
        admin.create(f"{name}-{letter}")
    grant(May.DESCRIBE, T, f"{name}-b")
    cursor = DescribeTopicPartitionsRequest.Cursor(topic_name=f"{name}-a", partition_index=0)
    topic = DescribeTopicPartitionsRequest.TopicRequest
    named = [topic(name=f"{name}-{letter}") for letter in "ab"]
    denied = errors.TOPIC_AUTHORIZATION_FAILED.code
    for topics, expected in ((named, [(f"{name}-b", 0), (f"{name}-a", denied)]), ([], [(f"{name}-b", 0)])):
        answer = alice.ask(DescribeTopicPartitionsRequest(topics=topics, cursor=cursor))
        assert [(row.name, row.error_code) for row in answer.topics] == expected


@pytest.mark.parametrize("version", range(8, 14))
def test_metadata_has_the_operations_of_unknown_topics_too_and_each_topic_once(
    talk: Talk, name: str, version: int
) -> None:
    talk.create(name)
    topics = [MetadataRequest.MetadataRequestTopic(name=each) for each in (name, "absent", "bad name", name)]
    request = MetadataRequest(topics=topics, include_topic_authorized_operations=True, allow_auto_topic_creation=False)
    rows = talk.ask(request, version).topics
    assert sorted((row.name, row.error_code, row.topic_authorized_operations) for row in rows) == sorted(
        [
            (name, 0, TOPIC_OPERATIONS),
            ("absent", errors.UNKNOWN_TOPIC_OR_PARTITION.code, TOPIC_OPERATIONS),
            ("bad name", errors.INVALID_TOPIC_EXCEPTION.code, TOPIC_OPERATIONS),
        ]
    )


@pytest.mark.parametrize("version", [1, 5, 11])
def test_a_partition_named_twice_has_no_offset_and_one_answer(talk: Talk, name: str, version: int) -> None:
    talk.create(name, 2)
    part = ListOffsetsRequest.ListOffsetsPartition
    topics = [
        ListOffsetsRequest.ListOffsetsTopic(
            name=name, partitions=[part(partition_index=index, timestamp=-1) for index in indexes]
        )
        for indexes in ([0, 1, 0], [0])
    ]
    (topic,) = talk.ask(ListOffsetsRequest(topics=topics), version).topics
    found = [(row.partition_index, row.error_code, row.offset) for row in topic.partitions]
    assert sorted(found) == [(0, errors.INVALID_REQUEST.code, -1), (1, 0, 0)]


@pytest.mark.parametrize("version", range(1, 6))
def test_log_directories_hold_no_fields_that_the_client_did_not_request(talk: Talk, name: str, version: int) -> None:
    talk.create(name, cleanup_policy="compact")
    topics = [DescribeLogDirsRequest.DescribableLogDirTopic(topic=name, partitions=[0])]
    (found,) = talk.ask(DescribeLogDirsRequest(topics=topics), version).results
    assert found.topics[0].partitions[0].cleaner is None


def test_the_cleaner_is_described_to_clients_that_request_it(talk: Talk, name: str) -> None:
    talk.create(name, cleanup_policy="compact")
    topics = [DescribeLogDirsRequest.DescribableLogDirTopic(topic=name, partitions=[0])]
    (found,) = talk.ask(DescribeLogDirsRequest(topics=topics, include_state=True)).results
    assert found.topics[0].partitions[0].cleaner


# --- the cluster ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [
        (0, errors.UNSUPPORTED_ENDPOINT_TYPE),
        (2, errors.MISMATCHED_ENDPOINT_TYPE),
        (3, errors.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_a_broker_describes_itself_as_one_whatever_is_asked(talk: Talk, endpoint_type: int, error: WireError) -> None:
    answer = talk.ask(DescribeClusterRequest(endpoint_type=endpoint_type), 1)
    assert (answer.error_code, answer.endpoint_type, answer.brokers) == (error.code, 1, [])


def test_acls_may_have_an_empty_host(admin: Talk, grant: Granted) -> None:
    row = CreateAclsRequest.AclCreation(
        resource_type=T,
        resource_name="a",
        resource_pattern_type=3,
        principal="User:alice",
        host="",
        operation=May.READ,
        permission_type=3,
    )
    assert [result.error_code for result in admin.ask(CreateAclsRequest(creations=[row])).results] == [0]


# --- settings ---------------------------------------------------------------------------------------------------------


def alter(talk: Talk, kind: int, name: str, key: str, value: str | None, *, operation: int = SET, **more: Any) -> int:
    config = IncrementalAlterConfigsRequest.AlterableConfig(name=key, value=value, config_operation=operation)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[config] if key else []
    )
    (row,) = talk.ask(IncrementalAlterConfigsRequest(resources=[resource], **more)).responses
    return int(row.error_code)


def alter_all(talk: Talk, name: str, key: str, value: str) -> int:
    config = AlterConfigsRequest.AlterableConfig(name=key, value=value)
    resource = AlterConfigsRequest.AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=[config])
    (row,) = talk.ask(AlterConfigsRequest(resources=[resource], validate_only=True)).responses
    return int(row.error_code)


def describe(talk: Talk, kind: int, name: str, *keys: str) -> dict[str, Any]:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    (result,) = talk.ask(DescribeConfigsRequest(resources=[resource], include_synonyms=True)).results
    assert result.error_code == 0
    return {row.name: row for row in result.configs}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num.io.threads", "0"),
        ("num.network.threads", "0"),
        ("background.threads", "0"),
        ("num.recovery.threads.per.data.dir", "0"),
        ("log.cleaner.threads", "-1"),
        ("log.cleaner.io.buffer.size", "-1"),
        ("remote.log.reader.threads", "0"),
        ("min.insync.replicas", "0"),
        ("num.io.threads", "abc"),
    ],
)
@pytest.mark.parametrize("is_for_all", [True, False])
def test_values_out_of_range_are_refused(talk: Talk, key: str, value: str, is_for_all: bool) -> None:
    name = "" if is_for_all else own_id(talk)
    refused = errors.INVALID_REQUEST.code
    assert alter(talk, BROKER, name, key, value, validate_only=True) == refused
    assert alter_all(talk, name, key, value) == refused


def test_brokers_keep_names_that_they_do_not_know_and_do_not_show_their_values(talk: Talk) -> None:
    own, key = own_id(talk), "plugin.of.somebody"
    assert alter(talk, BROKER, "", key, "secret") == 0
    try:
        for name in ("", own):
            row = describe(talk, BROKER, name)[key]
            assert (row.value, row.config_source, row.is_sensitive, row.config_type) == (None, ALL_BROKERS, True, 0)
            assert [(each.name, each.value, each.source) for each in row.synonyms] == [(key, None, ALL_BROKERS)]
        # It does not keep others from taking effect.
        assert alter(talk, BROKER, "", "log.cleaner.backoff.ms", "12345") == 0
        assert describe(talk, BROKER, own, "log.cleaner.backoff.ms")["log.cleaner.backoff.ms"].value == "12345"
        assert alter(talk, BROKER, "", key, "more", operation=APPEND) == errors.INVALID_CONFIG.code
    finally:
        assert alter(talk, BROKER, "", key, None, operation=DELETE) == 0
        assert alter(talk, BROKER, "", "log.cleaner.backoff.ms", None, operation=DELETE) == 0
    assert key not in describe(talk, BROKER, own)


@pytest.mark.parametrize("name", ["99", "-1", "abc", "1x"])
def test_a_broker_that_is_absent_has_no_settings_to_alter(talk: Talk, name: str) -> None:
    refused = errors.INVALID_REQUEST.code
    assert alter(talk, BROKER, name, "message.max.bytes", "5", validate_only=True) == refused
    assert alter_all(talk, name, "message.max.bytes", "5") == refused
    assert alter(talk, BROKER_LOGGER, name, "root", "INFO", validate_only=True) == refused


@pytest.mark.parametrize("kind", [0, 99])
def test_resources_of_no_type_are_refused_even_if_nothing_is_altered(talk: Talk, kind: int) -> None:
    assert alter(talk, kind, "x", "", None) == errors.INVALID_REQUEST.code


def test_a_default_has_the_synonyms_that_kafka_shows(talk: Talk, name: str) -> None:
    talk.create(name)
    expected = {
        "retention.ms": [],
        "segment.ms": [],
        "segment.jitter.ms": [],
        "flush.ms": [],
        "remote.storage.enable": [],
        "leader.replication.throttled.replicas": [],
        "retention.bytes": [("log.retention.bytes", "-1", DEFAULT)],
        "max.message.bytes": [("message.max.bytes", "1048588", DEFAULT)],
    }
    found = describe(talk, TOPIC, name, *expected)
    assert {
        key: [(each.name, each.value, each.source) for each in row.synonyms] for key, row in found.items()
    } == expected
    assert {row.config_source for row in found.values()} == {DEFAULT}
    broker = describe(talk, BROKER, own_id(talk), "log.retention.ms", "log.retention.hours")
    assert broker["log.retention.ms"].synonyms == []
    assert [each.name for each in broker["log.retention.hours"].synonyms] == ["log.retention.hours"]


def test_a_topics_own_value_comes_before_its_synonyms(talk: Talk, name: str) -> None:
    talk.create(name, retention_ms="5", flush_ms="6", retention_bytes="7")
    rows = describe(talk, TOPIC, name, "retention.ms", "flush.ms", "retention.bytes")
    assert {key: [(each.name, each.value) for each in row.synonyms] for key, row in rows.items()} == {
        "retention.ms": [("retention.ms", "5")],
        "flush.ms": [("flush.ms", "6")],
        "retention.bytes": [("retention.bytes", "7"), ("log.retention.bytes", "-1")],
    }


def test_loggers_of_brokers_are_listed_among_the_resources(talk: Talk) -> None:
    own = own_id(talk)
    for types, expected in (
        ([BROKER_LOGGER], [(own, BROKER_LOGGER)]),
        ([BROKER, BROKER_LOGGER], [(own, BROKER_LOGGER), (own, BROKER)]),
    ):
        answer = talk.ask(ListConfigResourcesRequest(resource_types=types), 1)
        assert [(row.resource_name, row.resource_type) for row in answer.config_resources] == expected
    everything = talk.ask(ListConfigResourcesRequest(), 1).config_resources
    assert (own, BROKER_LOGGER) in {(row.resource_name, row.resource_type) for row in everything}


# --- slow requests ----------------------------------------------------------------------------------------------------


def test_a_request_that_waited_behind_another_of_its_connection_is_not_called_slow(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    route = ROUTES[ApiKey.LIST_GROUPS]

    async def slow(request: Any, message: Any) -> Any:
        await asyncio.sleep(0.3)
        return await route.handle(request, message)

    monkeypatch.setitem(dispatch.ROUTES, ApiKey.LIST_GROUPS, replace(route, handle=slow))
    with Broker(settings={"barnabas.slow.request.ms": "250"}) as running, Talk(running.bootstrap_servers) as talk:
        talk.ask_all((ListGroupsRequest(), None), (DescribeClusterRequest(), None))
        talk.ask(MetadataRequest(topics=[]))
    lines = [record.getMessage() for record in caplog.records if record.name == "barnabas.slow"]
    assert [line for line in lines if "ListGroups" in line]
    assert not [line for line in lines if "DescribeCluster" in line]
