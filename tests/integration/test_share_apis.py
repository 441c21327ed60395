"""Share groups over the wire: joining, acquiring, acknowledging, sessions, offsets and deletion."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from sharing import ACCEPT, REJECT, RELEASE, RENEW, Sharer, set_group
from talk import Talk, batch

from barnabas import ProducerSettings, blocking
from barnabas.model import errors
from barnabas.testing import Broker
from barnabas.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.share_group_describe import ShareGroupDescribeRequest

NUMBERS = itertools.count()
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "group.share.min.record.lock.duration.ms": "1000",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(settings=SETTINGS) as running:
        yield running


@pytest.fixture
def talk(broker: Broker) -> Iterator[Talk]:
    with Talk(broker.bootstrap_servers) as open_talk:
        yield open_talk


@pytest.fixture
def topic(talk: Talk) -> str:
    """A topic with one partition and ten records."""
    name = f"t{next(NUMBERS)}"
    talk.create(name)
    talk.produce(name, batch(*[str(number).encode() for number in range(10)]))
    return name


@pytest.fixture
def join(broker: Broker, talk: Talk, topic: str) -> Iterator[Callable[..., Sharer]]:
    opened: list[Sharer] = []
    group = f"g{next(NUMBERS)}"
    set_group(talk, group, auto_offset_reset="earliest")

    def joined(member: str, **more: Any) -> Sharer:
        sharer = Sharer(broker.bootstrap_servers, group, member, topic)
        opened.append(sharer)
        assert sharer.beat().error_code == 0
        return sharer

    yield joined
    for sharer in opened:
        sharer.close()


def described(talk: Talk, group: str) -> list[tuple[str, int, int, int]]:
    request = DescribeShareGroupOffsetsRequest
    (answer,) = talk.ask(
        request(groups=[request.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)])
    ).groups
    assert answer.error_code == 0, answer
    return [
        (topic.topic_name, row.partition_index, row.start_offset, row.lag)
        for topic in answer.topics
        for row in topic.partitions
    ]


def until(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
    raise AssertionError("the condition did not come true")


def test_the_answer_to_the_first_heartbeat_has_the_assignment(join: Callable[..., Sharer], topic: str) -> None:
    member = join("a")
    answer = member.beat(0)
    assert answer.assignment is not None
    assert [(row.topic_id, row.partitions) for row in answer.assignment.topic_partitions] == [
        (member.id_of(topic), [0])
    ]
    assert answer.heartbeat_interval_ms == 5000
    assert member.beat().assignment is None


def test_two_members_share_a_partition_and_each_record_goes_to_one_of_them(
    join: Callable[..., Sharer], topic: str, talk: Talk
) -> None:
    one, other = join("a"), join("b")
    assert [value for _, value, _ in one.fetch((topic, 0), records=1)] == [str(n).encode() for n in range(10)]
    assert other.fetch((topic, 0)) == []
    talk.produce(topic, batch(*[b"10"]))
    assert other.fetch() == [(10, b"10", 1)]
    assert one.acknowledge(topic, (0, 9, [ACCEPT])) == 0
    assert described(talk, one.group) == [(topic, 0, 0, 1)]
    assert other.acknowledge(topic, (10, 10, [ACCEPT])) == 0
    assert described(talk, one.group) == [(topic, 0, 10, 0)]


def test_a_record_limit_is_exact(join: Callable[..., Sharer], topic: str) -> None:
    member = join("a")
    assert [offset for offset, _, _ in member.fetch((topic, 0), records=3, share_acquire_mode=1)] == [0, 1, 2]


def test_released_records_come_again_and_rejected_ones_do_not(join: Callable[..., Sharer], topic: str) -> None:
    member = join("a")
    member.fetch((topic, 0))
    kinds = [ACCEPT, RELEASE, REJECT, *[ACCEPT] * 7]
    assert member.fetch(acknowledge={(topic, 0): [(0, 9, kinds)]}) == [(1, b"1", 2)]


def test_a_fetch_waits_for_released_records(join: Callable[..., Sharer], topic: str) -> None:
    one, other = join("a"), join("b")
    one.fetch((topic, 0))
    other.fetch((topic, 0))
    one.close()  # which ends the session of the member
    assert len(other.fetch(wait_ms=15_000)) == 10


def test_a_share_partition_without_state_is_an_error_at_once(broker: Broker, topic: str) -> None:
    with Sharer(broker.bootstrap_servers, "never-joined", "a", topic) as stranger:
        (row,) = stranger.fetch_answer((topic, 0), wait_ms=15_000).responses[0].partitions
        assert row.error_code == errors.UNKNOWN_SERVER_ERROR.code


def test_only_acquired_records_may_be_acknowledged(join: Callable[..., Sharer], topic: str) -> None:
    one, other = join("a"), join("b")
    one.fetch((topic, 0))
    other.fetch((topic, 0))
    assert other.acknowledge(topic, (0, 9, [ACCEPT])) == errors.INVALID_RECORD_STATE.code
    assert one.acknowledge(topic, (0, 20, [ACCEPT])) == errors.INVALID_REQUEST.code
    for batches in ([(3, 2, [ACCEPT])], [(0, 2, [])], [(0, 2, [ACCEPT, ACCEPT])], [(0, 0, [5])], [(0, 0, [RENEW])]):
        assert one.acknowledge(topic, *batches) == errors.INVALID_REQUEST.code
    assert one.acknowledge(topic, (0, 4, [ACCEPT]), (4, 5, [ACCEPT])) == errors.INVALID_REQUEST.code
    assert one.acknowledge(topic, (0, 9, [ACCEPT])) == 0


def test_a_session_has_epochs(join: Callable[..., Sharer], topic: str) -> None:
    member = join("a")
    assert member.fetch_answer(epoch=1).error_code == errors.SHARE_SESSION_NOT_FOUND.code
    assert member.acknowledge(topic, (0, 0, [ACCEPT]), epoch=0) == errors.INVALID_SHARE_SESSION_EPOCH.code
    member.fetch((topic, 0))
    assert member.fetch_answer(epoch=7).error_code == errors.INVALID_SHARE_SESSION_EPOCH.code
    assert member.fetch_answer(acknowledge={(topic, 0): [(0, 0, [ACCEPT])]}, epoch=0).error_code == (
        errors.INVALID_REQUEST.code
    )
    assert member.acknowledge(topic, (0, 4, [ACCEPT]), epoch=-1) == 0
    assert member.fetch_answer(epoch=1).error_code == errors.SHARE_SESSION_NOT_FOUND.code
    member.session_epoch = 0
    assert [(offset, count) for offset, _, count in member.fetch((topic, 0))] == [(n, 2) for n in range(5, 10)]


def test_locks_expire_and_can_be_renewed(join: Callable[..., Sharer], talk: Talk, topic: str) -> None:
    """share.record.lock.duration.ms"""
    one, other = join("a"), join("b")
    set_group(talk, one.group, record_lock_duration_ms="1000")
    assert one.fetch_answer((topic, 0)).acquisition_lock_timeout_ms == 1000
    set_group(talk, one.group, record_lock_duration_ms="60000")
    assert one.acknowledge(topic, (0, 4, [RENEW]), is_renew_ack=True) == 0
    assert [(offset, count) for offset, _, count in other.fetch((topic, 0), wait_ms=15_000)] == [
        (n, 2) for n in range(5, 10)
    ]


def test_a_renewal_fetches_nothing(join: Callable[..., Sharer], topic: str) -> None:
    member = join("a")
    member.fetch((topic, 0))
    none = {"min_bytes": 0, "max_bytes": 0, "is_renew_ack": True, "records": 0}
    assert member.fetch(acknowledge={(topic, 0): [(0, 9, [RENEW])]}, **none) == []
    assert member.fetch_answer(is_renew_ack=True, epoch=2).error_code == errors.INVALID_REQUEST.code


def test_a_group_of_another_type_is_not_found(join: Callable[..., Sharer], talk: Talk, topic: str) -> None:
    member = join("a")
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=member.group, topics=None)
    assert talk.ask(OffsetFetchRequest(groups=[group]), 9).groups[0].error_code == errors.GROUP_ID_NOT_FOUND.code
    (listed,) = [each for each in talk.ask(ListGroupsRequest()).groups if each.group_id == member.group]
    assert (listed.group_type, listed.protocol_type, listed.group_state) == ("share", "share", "Stable")
    answer = talk.ask(ShareGroupDescribeRequest(group_ids=[member.group, "none"]))
    found, missing = answer.groups
    assert (found.group_state, found.assignor_name, [m.member_id for m in found.members]) == ("Stable", "simple", ["a"])
    assert found.members[0].assignment.topic_partitions[0].topic_name == topic
    assert missing.error_code == errors.GROUP_ID_NOT_FOUND.code


def test_members_are_fenced_by_their_epoch(join: Callable[..., Sharer]) -> None:
    member = join("a")
    assert member.beat(99).error_code == errors.FENCED_MEMBER_EPOCH.code
    assert member.beat(-1).error_code == 0
    assert member.beat(member.member_epoch).error_code in (
        errors.UNKNOWN_MEMBER_ID.code,
        errors.INVALID_REQUEST.code,
        errors.FENCED_MEMBER_EPOCH.code,
    )
    assert member.beat(0).error_code == 0
    assert member.beat(-2).error_code == errors.INVALID_REQUEST.code


def test_offsets_are_set_and_deleted_while_the_group_is_empty(
    join: Callable[..., Sharer], talk: Talk, topic: str
) -> None:
    alter, delete = AlterShareGroupOffsetsRequest, DeleteShareGroupOffsetsRequest
    member = join("a")
    part = alter.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=7)
    wanted = alter(
        group_id=member.group, topics=[alter.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[part])]
    )
    assert talk.ask(wanted).error_code == errors.NON_EMPTY_GROUP.code
    member.fetch((topic, 0))
    assert member.acknowledge(topic, (0, 9, [ACCEPT]), epoch=-1) == 0
    member.beat(-1)
    answer = talk.ask(wanted)
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0)
    assert described(talk, member.group)[0][2] == 7
    member.session_epoch = 0
    assert member.beat(0).error_code == 0
    assert [offset for offset, _, _ in member.fetch((topic, 0))] == [7, 8, 9]
    member.acknowledge(topic, epoch=-1)
    member.beat(-1)
    row = delete.DeleteShareGroupOffsetsRequestTopic
    gone = delete(group_id=member.group, topics=[row(topic_name=topic), row(topic_name="none")])
    assert [row.error_code for row in talk.ask(gone).responses] == [0, errors.UNKNOWN_TOPIC_OR_PARTITION.code]
    assert described(talk, member.group) == []


def test_a_group_is_deleted_with_its_state(join: Callable[..., Sharer], talk: Talk, topic: str) -> None:
    member = join("a")
    member.fetch((topic, 0))
    deletion = DeleteGroupsRequest(groups_names=[member.group])
    assert talk.ask(deletion).results[0].error_code == errors.NON_EMPTY_GROUP.code
    assert member.acknowledge(topic, (0, 9, [ACCEPT]), epoch=-1) == 0
    member.beat(-1)
    assert talk.ask(deletion).results[0].error_code == 0
    member.session_epoch = 0
    member.beat(0)
    assert len(member.fetch((topic, 0))) == 10, "a new group starts at the beginning"


def test_records_of_aborted_transactions_are_not_delivered_where_the_group_says_so(
    join: Callable[..., Sharer], talk: Talk, topic: str, broker: Broker
) -> None:
    settings = ProducerSettings(bootstrap_servers=(broker.bootstrap_servers,), transactional_id=f"x{topic}")
    with blocking.Producer(settings) as producer:
        _abort(producer, topic)
    talk.produce(topic, batch(*[b"last"]))
    member = join("a")
    set_group(talk, member.group, isolation_level="read_committed")
    values = [value for _, value, _ in member.fetch((topic, 0))]
    assert values == [*(str(number).encode() for number in range(10)), b"last"]


def _abort(producer: Any, topic: str) -> None:
    with suppress(ZeroDivisionError), producer.transaction():
        producer.send(topic, b"void")
        _ = 1 // 0


def test_a_deleted_topic_takes_its_state_along(join: Callable[..., Sharer], talk: Talk, topic: str) -> None:
    member = join("a")
    member.fetch((topic, 0))
    talk.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=topic)], timeout_ms=5000))
    until(lambda: described(talk, member.group) == [])
    (row,) = member.fetch_answer().responses[0].partitions
    assert row.error_code in (errors.UNKNOWN_TOPIC_ID.code, errors.UNKNOWN_TOPIC_OR_PARTITION.code)


def test_state_survives_a_restart(tmp_path: Any) -> None:
    with Broker(data_dir=tmp_path, settings=SETTINGS) as broker, Talk(broker.bootstrap_servers) as talk:
        talk.create("t")
        talk.produce("t", batch(*[b"0", b"1", b"2"]))
        set_group(talk, "g", auto_offset_reset="earliest")
        with Sharer(broker.bootstrap_servers, "g", "a", "t") as member:
            member.beat()
            member.fetch(("t", 0))
            assert member.acknowledge("t", (0, 2, [ACCEPT, RELEASE, REJECT])) == 0
    with (
        Broker(data_dir=tmp_path, settings=SETTINGS) as broker,
        Sharer(broker.bootstrap_servers, "g", "b", "t") as member,
    ):
        until(lambda: member.beat(0).error_code == 0)
        until(lambda: member.beat().error_code == 0)
        assert member.fetch(("t", 0), wait_ms=15_000) == [(1, b"1", 2)]
