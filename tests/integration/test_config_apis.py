"""Settings over the wire: described with their sources, altered, and in force as soon as the answer is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from talk import Talk, batch

from barnabas.model import errors
from barnabas.testing import Broker
from barnabas.wire.batch import read_header
from barnabas.wire.compression import Codec
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
OF_TOPIC, OF_BROKER, OF_ALL_BROKERS, OF_FILE, BY_DEFAULT = 1, 2, 3, 4, 5


@pytest.fixture
def own_talk() -> Iterator[Talk]:
    """A broker whose settings no other test shares."""
    with Broker() as broker, Talk(broker.bootstrap_servers) as connection:
        yield connection


def alter(talk: Talk, kind: int, name: str, *changes: tuple[str, int, str | None], **more: bool) -> int:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )
    (result,) = talk.ask(IncrementalAlterConfigsRequest(resources=[resource], **more)).responses
    code: int = result.error_code
    return code


def set_topic(talk: Talk, topic: str, name: str, value: str) -> None:
    assert alter(talk, TOPIC, topic, (name, SET, value)) == 0


def describe(talk: Talk, kind: int, name: str, *keys: str, version: int = 4, **more: bool) -> dict[str, Any]:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    (result,) = talk.ask(DescribeConfigsRequest(resources=[resource], **more), version).results
    assert result.error_code == 0, result
    return {row.name: row for row in result.configs}


def value_of(talk: Talk, topic: str, name: str) -> tuple[str, int]:
    row = describe(talk, TOPIC, topic, name)[name]
    return row.value, row.config_source


# --- describing -------------------------------------------------------------------------------------------------------


def test_a_topic_is_described_in_its_own_units(talk: Talk, name: str) -> None:
    talk.create(name)
    assert value_of(talk, name, "retention.ms") == ("604800000", BY_DEFAULT)
    assert value_of(talk, name, "segment.ms") == ("604800000", BY_DEFAULT)
    assert value_of(talk, name, "cleanup.policy") == ("delete", BY_DEFAULT)


def test_hours_of_the_file_are_milliseconds_of_the_topic() -> None:
    with Broker(settings={"log.retention.hours": "2"}) as broker, Talk(broker.bootstrap_servers) as talk:
        talk.create("t")
        assert value_of(talk, "t", "retention.ms") == ("7200000", OF_FILE)


def test_a_null_or_empty_list_of_keys(talk: Talk, name: str) -> None:
    talk.create(name)
    everything = describe(talk, TOPIC, name)
    assert {"retention.ms", "max.message.bytes", "min.insync.replicas"} <= set(everything)
    assert set(describe(talk, TOPIC, name, "retention.ms", "no.such.thing")) == {"retention.ms"}


def test_synonyms_and_texts_come_when_asked_for(talk: Talk, name: str) -> None:
    talk.create(name, segment_bytes="1048576")
    plain = describe(talk, TOPIC, name, "segment.bytes")["segment.bytes"]
    assert (plain.synonyms, plain.documentation) == ([], None)
    full = describe(talk, TOPIC, name, "segment.bytes", include_synonyms=True, include_documentation=True)
    row = full["segment.bytes"]
    assert [(each.name, each.source) for each in row.synonyms] == [
        ("segment.bytes", OF_TOPIC),
        ("log.segment.bytes", BY_DEFAULT),
    ]
    assert row.documentation
    assert row.config_type == 3


def test_a_broker_describes_itself_alone(talk: Talk) -> None:
    row = describe(talk, BROKER, "1", "num.partitions")["num.partitions"]
    assert (row.value, row.config_source, row.read_only) == ("1", BY_DEFAULT, False)
    assert describe(talk, BROKER, "1", "node.id")["node.id"].read_only
    for name, error in (("2", errors.INVALID_REQUEST), ("one", errors.INVALID_REQUEST)):
        resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=BROKER, resource_name=name)
        (result,) = talk.ask(DescribeConfigsRequest(resources=[resource])).results
        assert result.error_code == error.code


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "nowhere", errors.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "../x", errors.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", errors.INVALID_TOPIC_EXCEPTION),
        (0, "x", errors.INVALID_REQUEST),
        (77, "x", errors.INVALID_REQUEST),
        (-1, "x", errors.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_described_says_why(talk: Talk, kind: int, name: str, error: errors.WireError) -> None:
    resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=kind, resource_name=name)
    (result,) = talk.ask(DescribeConfigsRequest(resources=[resource])).results
    assert (result.error_code, result.configs) == (error.code, [])


# --- altering ---------------------------------------------------------------------------------------------------------


def test_set_delete_append_subtract(talk: Talk, name: str) -> None:
    talk.create(name)
    set_topic(talk, name, "retention.ms", "1000")
    assert value_of(talk, name, "retention.ms") == ("1000", OF_TOPIC)
    assert alter(talk, TOPIC, name, ("retention.ms", DELETE, None), ("cleanup.policy", APPEND, "compact")) == 0
    assert value_of(talk, name, "retention.ms") == ("604800000", BY_DEFAULT)
    assert value_of(talk, name, "cleanup.policy") == ("delete,compact", OF_TOPIC)
    assert alter(talk, TOPIC, name, ("cleanup.policy", SUBTRACT, "delete")) == 0
    assert value_of(talk, name, "cleanup.policy") == ("compact", OF_TOPIC)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("retention.ms", SET, "-7"), errors.INVALID_CONFIG),
        (("retention.ms", SET, "1_000"), errors.INVALID_CONFIG),
        (("retention.ms", SET, "٣"), errors.INVALID_CONFIG),
        (("retention.ms", SET, str(2**63)), errors.INVALID_CONFIG),
        (("min.cleanable.dirty.ratio", SET, "nan"), errors.INVALID_CONFIG),
        (("retention.ms", SET, None), errors.INVALID_REQUEST),
        (("retention.ms", APPEND, "1"), errors.INVALID_CONFIG),
        (("retention.ms", 9, "1"), errors.INVALID_REQUEST),
        (("no.such.setting", SET, "1"), errors.INVALID_CONFIG),
        (("cleanup.policy", APPEND, "shred"), errors.INVALID_CONFIG),
    ],
)
def test_a_wrong_change_changes_nothing(
    talk: Talk, name: str, change: tuple[str, int, str | None], error: errors.WireError
) -> None:
    talk.create(name)
    assert alter(talk, TOPIC, name, ("segment.bytes", SET, "1048576"), change) == error.code
    assert value_of(talk, name, "segment.bytes")[1] == BY_DEFAULT


def test_validation_alone_alters_nothing(talk: Talk, name: str) -> None:
    talk.create(name)
    assert alter(talk, TOPIC, name, ("retention.ms", SET, "5"), validate_only=True) == 0
    assert value_of(talk, name, "retention.ms")[1] == BY_DEFAULT


def test_what_is_not_there_cannot_be_altered(talk: Talk, name: str) -> None:
    assert alter(talk, TOPIC, name, ("retention.ms", SET, "5")) == errors.UNKNOWN_TOPIC_OR_PARTITION.code
    assert alter(talk, BROKER, "9", ("num.partitions", SET, "5")) == errors.INVALID_REQUEST.code
    assert alter(talk, BROKER, "x", ("num.partitions", SET, "5")) == errors.INVALID_REQUEST.code
    assert alter(talk, 77, "x", ("num.partitions", SET, "5")) == errors.INVALID_REQUEST.code


def test_what_needs_a_restart_cannot_be_altered(talk: Talk) -> None:
    assert alter(talk, BROKER, "1", ("node.id", SET, "5")) == errors.INVALID_REQUEST.code
    assert alter(talk, BROKER, "", ("log.dirs", SET, "elsewhere")) == errors.INVALID_REQUEST.code


def test_the_old_way_forgets_what_is_not_named(talk: Talk, name: str) -> None:
    talk.create(name, retention_ms="1000")
    resource = AlterConfigsRequest.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name=name,
        configs=[AlterConfigsRequest.AlterableConfig(name="segment.bytes", value="1048576")],
    )
    assert talk.ask(AlterConfigsRequest(resources=[resource])).responses[0].error_code == 0
    assert value_of(talk, name, "retention.ms")[1] == BY_DEFAULT
    assert value_of(talk, name, "segment.bytes") == ("1048576", OF_TOPIC)


def test_one_resource_twice_is_refused(talk: Talk, name: str) -> None:
    talk.create(name)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name=name,
        configs=[IncrementalAlterConfigsRequest.AlterableConfig(name="retention.ms", value="1")],
    )
    answer = talk.ask(IncrementalAlterConfigsRequest(resources=[resource, resource]))
    assert {row.error_code for row in answer.responses} == {errors.INVALID_REQUEST.code}


def test_resources_are_listed(talk: Talk, name: str) -> None:
    talk.create(name)
    listed = {(row.resource_type, row.resource_name) for row in talk.ask(ListConfigResourcesRequest()).config_resources}
    assert {(TOPIC, name), (BROKER, "1")} <= listed
    brokers = talk.ask(ListConfigResourcesRequest(resource_types=[BROKER])).config_resources
    assert [row.resource_name for row in brokers] == ["1"]
    assert talk.ask(ListConfigResourcesRequest(resource_types=[99])).error_code == errors.UNSUPPORTED_VERSION.code


# --- in force at once -------------------------------------------------------------------------------------------------


def test_max_message_bytes_is_in_force_at_once(talk: Talk, name: str) -> None:
    talk.create(name)
    big = batch(b"x" * 2000)
    assert talk.produce(name, bytes(big)).error_code == 0
    set_topic(talk, name, "max.message.bytes", "1000")
    assert talk.produce(name, bytes(big)).error_code == errors.MESSAGE_TOO_LARGE.code
    assert alter(talk, TOPIC, name, ("max.message.bytes", DELETE, None)) == 0
    assert talk.produce(name, bytes(big)).error_code == 0


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_compression_type_is_in_force_at_once(talk: Talk, name: str, codec: str) -> None:
    talk.create(name)
    set_topic(talk, name, "compression.type", codec)
    sent = batch(b"a" * 500, b"b" * 500, codec=Codec.GZIP if codec != "gzip" else Codec.NONE)
    assert talk.produce(name, bytes(sent)).error_code == 0
    stored = read_header(talk.fetch(name).records or b"")
    assert stored.codec == (Codec.NONE if codec == "uncompressed" else Codec[codec.upper()])
    assert [record.value for record in talk.read(name)] == [b"a" * 500, b"b" * 500]


def test_the_timestamp_type_is_in_force_at_once(talk: Talk, name: str) -> None:
    talk.create(name)
    assert talk.produce(name, batch(b"x", timestamp=1000)).log_append_time_ms == -1
    set_topic(talk, name, "message.timestamp.type", "LogAppendTime")
    stamped = talk.produce(name, batch(b"y", timestamp=1000)).log_append_time_ms
    assert stamped > 1_700_000_000_000
    # Half a century lies between the two, so each has a segment of its own.
    assert [record.timestamp for record in talk.read(name, 0) + talk.read(name, 1)] == [1000, stamped]


def test_retention_is_in_force_at_once() -> None:
    with Broker() as broker, Talk(broker.bootstrap_servers) as talk:
        talk.create("t")
        talk.produce("t", batch(b"old"))
        broker.clock.advance("10m")
        assert talk.offset("t", -2).offset == 1, "a record from 2023 is older than a week"
        talk.produce("t", batch(b"young", timestamp=broker.node.world.clock.wall_ms()))
        broker.clock.advance("10m")
        assert talk.offset("t", -2).offset == 1
        set_topic(talk, "t", "retention.ms", "1000")
        broker.clock.advance("10m")
        assert talk.offset("t", -2).offset == 2


def test_minimum_in_sync_replicas_is_capped_by_the_replicas(talk: Talk, name: str) -> None:
    # With one replica a minimum of 2 can never be met; Kafka takes the smaller of both, or nothing could be written.
    talk.create(name)
    set_topic(talk, name, "min.insync.replicas", "2")
    assert talk.produce(name, batch(b"x"), acks=-1).error_code in (0, errors.NOT_ENOUGH_REPLICAS.code)


def test_a_default_of_all_brokers_reaches_existing_topics(own_talk: Talk) -> None:
    own_talk.create("t")
    own_talk.create("own", max_message_bytes="5000")
    big = bytes(batch(b"x" * 2000))
    assert alter(own_talk, BROKER, "", ("message.max.bytes", SET, "1000")) == 0
    assert value_of(own_talk, "t", "max.message.bytes") == ("1000", OF_ALL_BROKERS)
    assert own_talk.produce("t", big).error_code == errors.MESSAGE_TOO_LARGE.code
    assert own_talk.produce("own", big).error_code == 0, "a topic's own value wins"
    assert alter(own_talk, BROKER, "1", ("message.max.bytes", SET, "9000")) == 0
    assert value_of(own_talk, "t", "max.message.bytes") == ("9000", OF_BROKER)
    assert own_talk.produce("t", big).error_code == 0
    assert alter(own_talk, BROKER, "1", ("message.max.bytes", DELETE, None)) == 0
    assert own_talk.produce("t", big).error_code == errors.MESSAGE_TOO_LARGE.code


def test_a_default_of_all_brokers_reaches_new_topics(own_talk: Talk) -> None:
    assert alter(own_talk, BROKER, "", ("num.partitions", SET, "4")) == 0
    own_talk.create("t", -1)
    assert own_talk.produce("t", batch(b"x"), partition=3).error_code == 0
    described = describe(own_talk, BROKER, "")
    assert {name: row.value for name, row in described.items() if name == "num.partitions"} == {"num.partitions": "4"}


def test_auto_creation_can_be_switched_off_while_running(own_talk: Talk) -> None:
    assert alter(own_talk, BROKER, "", ("auto.create.topics.enable", SET, "false")) == 0
    row = describe(own_talk, BROKER, "1", "auto.create.topics.enable")["auto.create.topics.enable"]
    assert (row.value, row.config_source) == ("false", OF_ALL_BROKERS)
