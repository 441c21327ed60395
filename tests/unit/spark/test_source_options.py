"""The options of a source: those of the Kafka connector, and a sentence for each mistake."""

from __future__ import annotations

import pytest

from barnabas.model.ids import TopicPartition
from barnabas.spark.connector.options import Options
from barnabas.spark.connector.source_options import SourceOptions
from barnabas.spark.errors import InvalidOption

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


def options(is_streaming: bool = True, /, **given: str) -> SourceOptions:
    return SourceOptions.of(SERVERS | {"subscribe": "orders"} | given, is_streaming=is_streaming)


def test_names_are_compared_without_regard_to_case() -> None:
    found = SourceOptions.of({"KAFKA.Bootstrap.Servers": "h:1", "SUBSCRIBE": "a, b"}, is_streaming=True)
    assert found.topics == ("a", "b")
    assert found.settings["bootstrap.servers"] == "h:1"


def test_a_stream_starts_at_the_end_and_a_batch_at_the_beginning() -> None:
    assert options().start.kind == "latest"
    assert options(False).start.kind == "earliest"
    assert options(False).end.kind == "latest"


def test_a_time_comes_before_times_and_times_before_offsets() -> None:
    given = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"orders": {"0": 5}}'}
    assert options(**given).start.kind == "times"
    assert options(**given, startingTimestamp="7").start.time_ms == 7


def test_what_the_client_is_told_takes_effect_and_committed_records_are_the_default() -> None:
    assert options().settings["isolation.level"] == "read_committed"
    assert options(**{"kafka.isolation.level": "read_uncommitted"}).settings["isolation.level"] == "read_uncommitted"
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="s3";'
    told = options(
        **{"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.jaas.config": jaas}
    )
    assert told.settings["sasl.username"] == "ann"
    assert told.settings["sasl.password"] == "s3"


def test_a_group_is_named_or_keeps_a_name_from_one_start_to_the_next() -> None:
    assert options(**{"kafka.group.id": "mine"}).group == "mine"
    assert options().group == options(maxOffsetsPerTrigger="5").group
    assert options().group != options(startingOffsets="earliest").group
    assert options(groupIdPrefix="p").group.startswith("p-")


def test_partitions_can_be_assigned() -> None:
    found = SourceOptions.of(SERVERS | {"assign": '{"a": [1]}'}, is_streaming=False)
    assert found.assigned == (TopicPartition("a", 1),)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"subscribe": ""}, "subscribe is empty"),
        ({"subscribePattern": "x"}, "not subscribe and subscribePattern together"),
        ({"endingOffsets": "latest"}, "a stream has no end"),
        ({"startingOffsets": "{"}, "cannot be read"),
        ({"maxOffsetsPerTrigger": "0"}, "below 1"),
        ({"maxOffsetsPerTrigger": "many"}, "not a number"),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "above maxOffsetsPerTrigger"),
        ({"maxTriggerDelay": "soon"}, "no duration"),
        ({"failOnDataLoss": "maybe"}, "true or false"),
        ({"kafka.auto.offset.reset": "latest"}, "say startingOffsets instead"),
        ({"kafka.enable.auto.commit": "true"}, "cannot be set here"),
        ({"kafka.no.such.thing": "1"}, "no.such.thing"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "error or latest"),
    ],
)
def test_a_mistake_is_a_sentence(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidOption, match=sentence):
        options(**given)


def test_what_only_streams_look_at_is_said_to_be_nothing_for_a_batch(caplog: pytest.LogCaptureFixture) -> None:
    options(maxOffsetsPerTrigger="5", maxTriggerDelay="1m")
    assert not caplog.messages
    options(False, maxOffsetsPerTrigger="5", maxTriggerDelay="1m")
    assert [message.split()[0] for message in caplog.messages] == ["maxOffsetsPerTrigger", "maxTriggerDelay"]


def test_a_batch_must_not_be_empty_by_definition() -> None:
    with pytest.raises(InvalidOption, match="would be empty"):
        options(False, startingOffsets="latest")
    with pytest.raises(InvalidOption, match="would make a batch empty"):
        options(False, endingOffsets='{"orders": {"0": -2}}')


def test_the_cluster_must_be_named() -> None:
    with pytest.raises(InvalidOption, match=r"kafka.bootstrap.servers is missing"):
        SourceOptions.of({"subscribe": "x"}, is_streaming=True)


def test_durations_have_units() -> None:
    assert Options.of({"d": "15m"}).duration_ms("d", 0) == 900_000
    assert Options.of({"d": "250"}).duration_ms("d", 0) == 250
