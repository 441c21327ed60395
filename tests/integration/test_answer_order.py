"""Answers that are grouped by topic: one entry for each topic, in the order of the request, whatever is refused in it.

Clients keep an answer in a map by topic, so of two entries for one topic they would keep the last only.
"""

from __future__ import annotations

from typing import Any

import pytest
from rights import G, Granted, May, T
from talk import Talk, creatable
from transactional import Transactional

from barnabas.model import errors
from barnabas.model.ids import Uuid
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

UNKNOWN = errors.UNKNOWN_TOPIC_OR_PARTITION.code
DENIED = errors.TOPIC_AUTHORIZATION_FAILED.code
BY_ID = 10
OTHER_ID = Uuid(bytes(15) + b"x")

Rows = list[tuple[str, list[tuple[int, int]]]]


def rows(answer: Any) -> Rows:
    return [(row.name, [(part.partition_index, part.error_code) for part in row.partitions]) for row in answer.topics]


@pytest.fixture
def group(talk: Talk, name: str) -> str:
    """A group whose coordinator is ready, and a topic of two partitions with the same name."""
    talk.create(name, 2)
    talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[name]))
    return name


# Good and bad partitions mixed, topics that do not exist, and a topic that is named twice.
def mixed(name: str) -> list[tuple[str, list[int]]]:
    return [("absent", [0]), (name, [9, 1, 8, 0]), ("gone", [3]), (name, [7])]


def expected(name: str) -> Rows:
    return [
        ("absent", [(0, UNKNOWN)]),
        (name, [(9, UNKNOWN), (1, 0), (8, UNKNOWN), (0, 0), (7, UNKNOWN)]),
        ("gone", [(3, UNKNOWN)]),
    ]


def commit_request(group: str, asked: list[tuple[str, list[int]]]) -> OffsetCommitRequest:
    part = OffsetCommitRequest.OffsetCommitRequestPartition
    return OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=name, partitions=[part(partition_index=index, committed_offset=5) for index in indexes]
            )
            for name, indexes in asked
        ],
    )


@pytest.mark.parametrize("version", range(2, BY_ID))
def test_a_commit_answers_each_topic_once_in_the_requests_order(talk: Talk, group: str, version: int) -> None:
    assert rows(talk.ask(commit_request(group, mixed(group)), version)) == expected(group)


def test_a_commit_by_id_answers_each_topic_once_in_the_requests_order(talk: Talk, group: str) -> None:
    topic_id = talk.topic_id(group)
    request = commit_request(group, [("", [0]), ("", [9, 1, 8])])
    request.topics[0].topic_id, request.topics[1].topic_id = OTHER_ID, topic_id
    answer = talk.ask(request, BY_ID)
    found = [
        (row.topic_id, [(part.partition_index, part.error_code) for part in row.partitions]) for row in answer.topics
    ]
    assert found == [
        (OTHER_ID, [(0, errors.UNKNOWN_TOPIC_ID.code)]),
        (topic_id, [(9, UNKNOWN), (1, 0), (8, UNKNOWN)]),
    ]


@pytest.mark.parametrize("version", [2, 5])
def test_a_transactional_commit_answers_each_topic_once_in_the_requests_order(
    talk: Talk, group: str, version: int
) -> None:
    producer = Transactional(talk, group)
    assert producer.init() == 0
    if version < 5:
        assert producer.add((group, 0)) == [0]
    part = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    request = TxnOffsetCommitRequest(
        transactional_id=group,
        group_id=group,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        topics=[
            TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                name=name, partitions=[part(partition_index=index, committed_offset=5) for index in indexes]
            )
            for name, indexes in mixed(group)
        ],
    )
    found = rows(talk.ask(request, version))
    assert [(name, [index for index, _ in parts]) for name, parts in found] == [
        (name, [index for index, _ in parts]) for name, parts in expected(group)
    ]
    if version >= 5:
        assert found == expected(group)


def test_a_deletion_of_offsets_answers_each_topic_once_in_the_requests_order(talk: Talk, group: str) -> None:
    talk.ask(commit_request(group, [(group, [0, 1])]), 9)
    part = OffsetDeleteRequest.OffsetDeleteRequestPartition
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=name, partitions=[part(partition_index=index) for index in indexes]
            )
            for name, indexes in mixed(group)
        ],
    )
    assert rows(talk.ask(request)) == expected(group)


def test_offsets_are_fetched_by_id_in_the_requests_order(talk: Talk, group: str) -> None:
    topic = OffsetFetchRequest.OffsetFetchRequestTopics
    asked = [
        topic(topic_id=OTHER_ID, partition_indexes=[0]),
        topic(topic_id=talk.topic_id(group), partition_indexes=[1]),
    ]
    request = OffsetFetchRequest(groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=asked)])
    (found,) = talk.ask(request, BY_ID).groups
    assert [row.topic_id for row in found.topics] == [each.topic_id for each in asked]


# --- rows that the authorizer refuses --------------------------------------------------------------------------------


def test_refused_topics_keep_their_place_in_the_answer(admin: Talk, alice: Talk, grant: Granted, name: str) -> None:
    names = [f"{name}-{letter}" for letter in "abcde"]
    admin.ask(CreateTopicsRequest(topics=[creatable(each) for each in names], timeout_ms=5000))
    admin.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[name]))
    grant(May.READ, G, name)
    allowed = (names[1], names[3])
    for each in allowed:
        grant(May.READ, T, each)
    wanted = [(each, [(0, 0 if each in allowed else DENIED)]) for each in names]
    assert rows(alice.ask(commit_request(name, [(each, [0]) for each in names]), 9)) == wanted
    topic = OffsetFetchRequest.OffsetFetchRequestTopics
    asked = [topic(name=each, partition_indexes=[0]) for each in names]
    fetch = OffsetFetchRequest(groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=asked)])
    assert rows(alice.ask(fetch, 9).groups[0]) == wanted
    one = OffsetFetchRequest.OffsetFetchRequestTopic
    fetch = OffsetFetchRequest(group_id=name, topics=[one(name=each, partition_indexes=[0]) for each in names])
    assert rows(alice.ask(fetch, 7)) == wanted
    part = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = [ListOffsetsRequest.ListOffsetsTopic(name=each, partitions=[part]) for each in names]
    assert rows(alice.ask(ListOffsetsRequest(topics=topics))) == wanted


def test_refused_groups_keep_their_place_in_the_answer(admin: Talk, alice: Talk, grant: Granted, name: str) -> None:
    groups = [f"{name}-{letter}" for letter in "abc"]
    grant(May.DESCRIBE, G, groups[1])
    answer = alice.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=groups))
    assert [row.key for row in answer.coordinators] == groups
