"""Topics over the wire: made, described, grown, emptied, deleted and made again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from talk import Talk, batch, creatable, fetch_request, produce_request

from barnabas.model import errors
from barnabas.model.ids import ZERO_UUID, Uuid
from barnabas.testing import Broker
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.delete_records import DeleteRecordsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse

BAD_NAMES = ["", ".", "..", "../x", "a/b", "a\x00b", "a b", "ü", "a" * 250, "line\nbreak"]
Place = tuple[str, int]
UNKNOWN = Uuid(b"\x01" * 16)


def create(talk: Talk, *topics: CreateTopicsRequest.CreatableTopic, **more: bool) -> list[int]:
    answer: CreateTopicsResponse = talk.ask(CreateTopicsRequest(topics=list(topics), timeout_ms=5000, **more))
    return [topic.error_code for topic in answer.topics]


# --- CreateTopics -----------------------------------------------------------------------------------------------------


def test_the_answer_says_what_was_made(talk: Talk, name: str) -> None:
    topic = creatable(name, 3, retention_ms="1000")
    (made,) = talk.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5000)).topics
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 3, 1)
    assert made.topic_id != ZERO_UUID
    configs = {config.name: (config.value, config.config_source) for config in made.configs}
    assert configs["retention.ms"] == ("1000", 1)
    assert configs["cleanup.policy"] == ("delete", 5)


def test_defaults_of_the_broker_fill_what_is_left_open(talk: Talk, name: str) -> None:
    (made,) = talk.ask(CreateTopicsRequest(topics=[creatable(name, -1, -1)], timeout_ms=5000)).topics
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 1, 1)


@pytest.mark.parametrize("bad", BAD_NAMES)
def test_a_name_that_is_no_name_is_refused(talk: Talk, bad: str) -> None:
    assert create(talk, creatable(bad)) == [errors.INVALID_TOPIC_EXCEPTION.code]


def test_the_longest_name_is_taken(talk: Talk) -> None:
    name = "n" * 249
    talk.create(name)
    assert talk.produce(name, batch(b"x")).error_code == 0


def test_names_that_metrics_would_confuse_are_refused(talk: Talk, name: str) -> None:
    talk.create(f"{name}.a_b")
    assert create(talk, creatable(f"{name}_a.b")) == [errors.INVALID_TOPIC_EXCEPTION.code]


def test_what_cannot_be_made_is_refused_alone(talk: Talk, new_name: Callable[[], str]) -> None:
    existing = new_name()
    talk.create(existing)
    twice = new_name()
    cases = {
        errors.TOPIC_ALREADY_EXISTS: creatable(existing),
        errors.INVALID_PARTITIONS: creatable(new_name(), 0),
        errors.INVALID_REPLICATION_FACTOR: creatable(new_name(), 1, 2),
        errors.INVALID_CONFIG: creatable(new_name(), no_such_setting="1"),
        errors.NONE: creatable(new_name()),
    }
    codes = create(talk, *cases.values(), creatable(twice), creatable(twice))
    assert codes == [*(error.code for error in cases), errors.INVALID_REQUEST.code]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("retention_ms", "-2"),
        ("retention_ms", "soon"),
        ("segment_bytes", "0"),
        ("cleanup_policy", "shred"),
        ("compression_type", "rar"),
        ("min_insync_replicas", "0"),
        ("max_message_bytes", "-1"),
        ("segment_bytes", str(2**31)),
    ],
)
def test_a_setting_out_of_range_is_refused(talk: Talk, name: str, setting: str, value: str) -> None:
    assert create(talk, creatable(name, **{setting: value})) == [errors.INVALID_CONFIG.code]


def test_more_partitions_than_one_request_may_ask_for(talk: Talk, name: str) -> None:
    assert create(talk, creatable(name, 1_000_000)) == [errors.POLICY_VIOLATION.code]
    assert create(talk, creatable(name, 2**31 - 1)) == [errors.POLICY_VIOLATION.code]


def test_validation_alone_makes_nothing(talk: Talk, name: str) -> None:
    assert create(talk, creatable(name), validate_only=True) == [0]
    assert metadata(talk, name)[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION.code
    assert create(talk, creatable(name, 0), validate_only=True) == [errors.INVALID_PARTITIONS.code]


def assigned(name: str, assignment: dict[int, list[int]]) -> CreateTopicsRequest.CreatableTopic:
    topic = creatable(name, -1, -1)
    topic.assignments = [
        CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
        for index, brokers in assignment.items()
    ]
    return topic


def test_replicas_may_be_named_by_hand(talk: Talk, name: str) -> None:
    assert create(talk, assigned(name, {1: [1], 0: [1]})) == [0]
    (topic,) = metadata(talk, name)
    assert [(row.partition_index, row.leader_id) for row in topic.partitions] == [(0, 1), (1, 1)]


@pytest.mark.parametrize("assignment", [{0: [1], 2: [1]}, {0: [7]}, {0: [1, 1]}, {0: []}, {-1: [1]}])
def test_a_wrong_assignment_is_refused(talk: Talk, name: str, assignment: dict[int, list[int]]) -> None:
    assert create(talk, assigned(name, assignment)) == [errors.INVALID_REPLICA_ASSIGNMENT.code]


def test_an_assignment_leaves_no_room_for_counts(talk: Talk, name: str) -> None:
    topic = assigned(name, {0: [1]})
    topic.num_partitions = 1
    assert create(talk, topic) == [errors.INVALID_REQUEST.code]


# --- Metadata ---------------------------------------------------------------------------------------------------------


def metadata(talk: Talk, *names: str, creates: bool = False, version: int = 13) -> list[Any]:
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    answer: MetadataResponse = talk.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=creates), version)
    return answer.topics


def test_null_is_all_and_empty_is_none(talk: Talk, name: str) -> None:
    talk.create(name)
    assert name in {topic.name for topic in talk.ask(MetadataRequest(topics=None)).topics}
    assert talk.ask(MetadataRequest(topics=[])).topics == []


def test_version_0_says_all_with_an_empty_list(talk: Talk, name: str) -> None:
    talk.create(name)
    assert name in {topic.name for topic in talk.ask(MetadataRequest(topics=[]), 0).topics}


def test_metadata_names_this_broker(talk: Talk, shared_broker: Broker) -> None:
    answer = talk.ask(MetadataRequest(topics=[]), 12)
    (node,) = answer.brokers
    assert f"{node.host}:{node.port}" == shared_broker.bootstrap_servers
    assert (node.node_id, answer.controller_id) == (1, 1)
    assert answer.cluster_id == shared_broker.node.cluster_id


def test_an_unknown_topic_is_made_if_the_client_allows(talk: Talk, name: str) -> None:
    assert metadata(talk, name)[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION.code
    metadata(talk, name, creates=True)
    (topic,) = metadata(talk, name)
    assert (topic.error_code, len(topic.partitions)) == (0, 1)
    assert talk.produce(name, batch(b"first")).base_offset == 0
    assert [record.value for record in talk.read(name)] == [b"first"]


def test_versions_without_a_say_make_the_topic(talk: Talk, name: str) -> None:
    metadata(talk, name, creates=True, version=3)
    assert metadata(talk, name)[0].error_code == 0


@pytest.mark.parametrize("bad", BAD_NAMES)
def test_a_bad_name_is_not_made_by_asking(talk: Talk, bad: str) -> None:
    (topic,) = metadata(talk, bad, creates=True)
    assert (topic.error_code, topic.name) == (errors.INVALID_TOPIC_EXCEPTION.code, bad)


def test_auto_creation_can_be_off() -> None:
    with Broker(settings={"auto.create.topics.enable": "false"}) as broker, Talk(broker.bootstrap_servers) as talk:
        assert metadata(talk, "nobody", creates=True)[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION.code
        assert talk.ask(MetadataRequest(topics=None)).topics == []


def test_topics_are_found_by_id(talk: Talk, name: str) -> None:
    topic_id = talk.create(name)
    asked = [MetadataRequest.MetadataRequestTopic(name=None, topic_id=each) for each in (topic_id, UNKNOWN)]
    known, unknown = talk.ask(MetadataRequest(topics=asked)).topics
    assert (known.name, known.error_code) == (name, 0)
    assert (unknown.name, unknown.error_code) == (None, errors.UNKNOWN_TOPIC_ID.code)


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_refused_where_kafka_never_understood_them(talk: Talk, name: str, version: int) -> None:
    asked = [MetadataRequest.MetadataRequestTopic(name=None, topic_id=talk.create(name))]
    (topic,) = talk.ask(MetadataRequest(topics=asked), version).topics
    assert topic.error_code == errors.INVALID_REQUEST.code


# --- DeleteTopics -----------------------------------------------------------------------------------------------------


def delete(talk: Talk, *, name: str | None = None, topic_id: Uuid = ZERO_UUID) -> int:
    topics = [DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=topic_id)]
    (result,) = talk.ask(DeleteTopicsRequest(topics=topics, timeout_ms=5000)).responses
    code: int = result.error_code
    return code


def test_a_topic_is_deleted_by_name_or_id(talk: Talk, new_name: Callable[[], str]) -> None:
    by_name, by_id = new_name(), new_name()
    talk.create(by_name)
    assert delete(talk, name=by_name) == 0
    assert delete(talk, topic_id=talk.create(by_id)) == 0
    assert {topic.error_code for topic in metadata(talk, by_name, by_id)} == {errors.UNKNOWN_TOPIC_OR_PARTITION.code}
    assert talk.produce(by_name, batch(b"x")).error_code == errors.UNKNOWN_TOPIC_OR_PARTITION.code


def test_what_is_not_there_cannot_be_deleted(talk: Talk) -> None:
    assert delete(talk, name="never") == errors.UNKNOWN_TOPIC_OR_PARTITION.code
    assert delete(talk, topic_id=UNKNOWN) == errors.UNKNOWN_TOPIC_ID.code
    assert delete(talk) == errors.INVALID_REQUEST.code
    assert delete(talk, name="never", topic_id=UNKNOWN) == errors.INVALID_REQUEST.code


def test_deletion_by_name_in_an_old_version(talk: Talk, name: str) -> None:
    talk.create(name)
    answer = talk.ask(DeleteTopicsRequest(topic_names=[name, "never"], timeout_ms=5000), 4)
    assert {row.name: row.error_code for row in answer.responses} == {name: 0, "never": 3}


def test_deletion_can_be_switched_off() -> None:
    with Broker(settings={"delete.topic.enable": "false"}) as broker, Talk(broker.bootstrap_servers) as talk:
        talk.create("kept")
        assert delete(talk, name="kept") == errors.TOPIC_DELETION_DISABLED.code
        assert talk.produce("kept", batch(b"x")).error_code == 0


def test_a_topic_made_again_is_another_topic(talk: Talk, name: str) -> None:
    old = talk.create(name)
    talk.produce(name, batch(b"old"))
    assert delete(talk, name=name) == 0
    new = talk.create(name)
    assert new != old
    assert talk.read(name) == []
    (row,) = talk.ask(produce_request("", batch(b"x"), topic_id=old), 13).responses[0].partition_responses
    assert row.error_code == errors.UNKNOWN_TOPIC_ID.code
    (row,) = talk.ask(fetch_request("", topic_id=old), 13).responses[0].partitions
    assert row.error_code == errors.UNKNOWN_TOPIC_ID.code
    (row,) = talk.ask(produce_request("", batch(b"new"), topic_id=new), 13).responses[0].partition_responses
    assert (row.error_code, row.base_offset) == (0, 0)


def test_a_waiting_fetch_hears_of_the_deletion(shared_broker: Broker, talk: Talk, name: str) -> None:
    topic_id = talk.create(name)
    with Talk(shared_broker.bootstrap_servers) as other:
        waiting = fetch_request("", topic_id=topic_id, max_wait_ms=15_000, min_bytes=1)
        gone = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=5000)

        def delete_it() -> None:
            assert other.ask(gone).responses[0].error_code == 0

        thread = threading.Timer(0.1, delete_it)
        thread.start()
        (row,) = talk.ask(waiting, 13).responses[0].partitions
        thread.join()
    assert row.error_code == errors.UNKNOWN_TOPIC_ID.code


# --- CreatePartitions -------------------------------------------------------------------------------------------------


def grow(talk: Talk, name: str, count: int, assignments: list[list[int]] | None = None, **more: bool) -> int:
    topic = CreatePartitionsRequest.CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=None
        if assignments is None
        else [CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=ids) for ids in assignments],
    )
    (result,) = talk.ask(CreatePartitionsRequest(topics=[topic], timeout_ms=5000, **more)).results
    code: int = result.error_code
    return code


def test_a_topic_grows_and_keeps_its_records(talk: Talk, name: str) -> None:
    talk.create(name)
    talk.produce(name, batch(b"stays"))
    assert grow(talk, name, 3) == 0
    assert talk.produce(name, batch(b"x"), partition=2).error_code == 0
    assert [record.value for record in talk.read(name)] == [b"stays"]


def test_a_topic_never_shrinks(talk: Talk, name: str) -> None:
    talk.create(name, 3)
    assert grow(talk, name, 3) == errors.INVALID_PARTITIONS.code
    assert grow(talk, name, 2) == errors.INVALID_PARTITIONS.code
    assert grow(talk, name, -1) == errors.INVALID_PARTITIONS.code
    assert grow(talk, "never", 2) == errors.UNKNOWN_TOPIC_OR_PARTITION.code
    assert grow(talk, name, 5, [[1]]) == errors.INVALID_REPLICA_ASSIGNMENT.code
    assert grow(talk, name, 4, [[9]]) == errors.INVALID_REPLICA_ASSIGNMENT.code
    assert grow(talk, name, 2**31 - 1) == errors.POLICY_VIOLATION.code
    assert grow(talk, name, 4, validate_only=True) == 0
    assert len(metadata(talk, name)[0].partitions) == 3


# --- DeleteRecords ----------------------------------------------------------------------------------------------------


def cut(talk: Talk, name: str, offset: int, partition: int = 0) -> tuple[int, int]:
    rows = [DeleteRecordsRequest.DeleteRecordsPartition(partition_index=partition, offset=offset)]
    topics = [DeleteRecordsRequest.DeleteRecordsTopic(name=name, partitions=rows)]
    (row,) = talk.ask(DeleteRecordsRequest(topics=topics, timeout_ms=5000)).topics[0].partitions
    return row.error_code, row.low_watermark


def test_records_are_deleted_up_to_an_offset(talk: Talk, name: str) -> None:
    talk.create(name)
    for number in range(4):
        talk.produce(name, batch(b"%d" % number))
    assert cut(talk, name, 2) == (0, 2)
    assert talk.fetch(name, 1).error_code == errors.OFFSET_OUT_OF_RANGE.code
    assert [record.value for record in talk.read(name, 2)] == [b"2", b"3"]
    assert cut(talk, name, 1) == (0, 2)
    assert talk.offset(name, -2).offset == 2
    assert cut(talk, name, -1) == (0, 4)
    assert talk.fetch(name, 4).log_start_offset == 4


@pytest.mark.parametrize("offset", [5, -2, 2**63 - 1, -(2**63)])
def test_what_is_not_there_cannot_be_cut_off(talk: Talk, name: str, offset: int) -> None:
    talk.create(name)
    talk.produce(name, batch(b"x"))
    assert cut(talk, name, offset) == (errors.OFFSET_OUT_OF_RANGE.code, -1)
    assert cut(talk, name, 0, partition=7) == (errors.UNKNOWN_TOPIC_OR_PARTITION.code, -1)


# --- DescribeTopicPartitions ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def paged() -> Iterator[Talk]:
    with Broker() as broker, Talk(broker.bootstrap_servers) as talk:
        for name, count in (("a", 2), ("b", 3), ("c", 1)):
            talk.create(name, count)
        yield talk


def page(
    talk: Talk, limit: int, cursor: tuple[str, int] | None, *names: str
) -> tuple[list[Any], tuple[str, int] | None]:
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None
        if cursor is None
        else DescribeTopicPartitionsRequest.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    answer = talk.ask(request)
    found = [(topic.name, [row.partition_index for row in topic.partitions]) for topic in answer.topics]
    following = answer.next_cursor
    return found, None if following is None else (following.topic_name, following.partition_index)


def test_pages_follow_one_another(paged: Talk) -> None:
    first, cursor = page(paged, 3, None)
    assert (first, cursor) == ([("a", [0, 1]), ("b", [0])], ("b", 1))
    second, cursor = page(paged, 3, cursor)
    assert (second, cursor) == ([("b", [1, 2]), ("c", [0])], None)


def test_the_cursor_of_a_topic_that_is_gone_leads_to_the_next(paged: Talk) -> None:
    assert page(paged, 10, ("aa", 5))[0] == [("b", [0, 1, 2]), ("c", [0])]


def test_topics_may_be_named_and_unknown_ones_say_so(paged: Talk) -> None:
    answer = paged.ask(
        DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in ("c", "nowhere")],
            response_partition_limit=10,
        )
    )
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [("c", 0), ("nowhere", 3)]
    assert (answer.topics[0].partitions[0].leader_id, answer.topics[0].partitions[0].isr_nodes) == (1, [1])


@pytest.mark.parametrize("index", [99, 2**31 - 1])
def test_a_cursor_beyond_the_topic_does_no_harm(paged: Talk, index: int) -> None:
    found, _ = page(paged, 10, ("a", index))
    assert found[-1] == ("c", [0])
