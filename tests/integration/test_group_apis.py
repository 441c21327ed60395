"""Classic groups and offsets over the wire: what each version says, what bad input gets, what a restart keeps."""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from talk import Talk
from waiting import until

from barnabas.model import errors
from barnabas.model.ids import Uuid
from barnabas.testing import Broker
from barnabas.testing.broker import BrokerProcess
from barnabas.transport.channel import PeerGone
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest

NOBODYS_ID = Uuid(bytes(range(16)))
SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"


def find(talk: Talk, group: str) -> None:
    """Make sure that the group has a coordinator, as every client does first."""
    answer = talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), 6)
    assert answer.coordinators[0].error_code == 0


@pytest.fixture
def group(talk: Talk, name: str) -> str:
    find(talk, name)
    return name


def commit(talk: Talk, group: str, topic: str, offset: int, *, version: int = 9, **more: Any) -> int:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=more.pop("partition", 0), committed_offset=offset, committed_metadata=more.pop("note", None)
    )
    row = OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=[partition])
    if "topic_id" in more:
        row.topic_id = more.pop("topic_id")
    answer = talk.ask(OffsetCommitRequest(group_id=group, topics=[row], **more), version)
    code: int = answer.topics[0].partitions[0].error_code
    return code


def fetch_old(talk: Talk, group: str, topic: str, version: int) -> Any:
    topics = [OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
    answer = talk.ask(OffsetFetchRequest(group_id=group, topics=topics), version)
    return answer.topics[0].partitions[0]


def fetch(talk: Talk, *groups: str, version: int = 9, topics: Any = None) -> dict[str, Any]:
    asked = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=topics) for group in groups]
    answer = talk.ask(OffsetFetchRequest(groups=asked), version)
    return {group.group_id: group for group in answer.groups}


def loaded(talk: Talk, group: str) -> Any:
    """The group's offsets, once its coordinator has read what there is of it."""
    until(lambda: fetch(talk, group)[group].error_code == 0, "the coordinator is loaded")
    return fetch(talk, group)[group]


def join(talk: Talk, group: str, *, version: int = 9, member_id: str = "", **more: Any) -> Any:
    message = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=more.pop("session_timeout_ms", 10_000),
        member_id=member_id,
        protocol_type="consumer",
        protocols=[
            JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=more.pop("metadata", SUBSCRIPTION))
        ],
        **more,
    )
    if version >= 1:
        message.rebalance_timeout_ms = 10_000
    return talk.ask(message, version)


def joined(talk: Talk, group: str) -> Any:
    """A member of version 3, which is let in at once, with its assignment."""
    answer = join(talk, group, version=3)
    assert answer.error_code == 0
    assignment = SyncGroupRequest.SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"all")
    synced = talk.ask(
        SyncGroupRequest(
            group_id=group,
            generation_id=answer.generation_id,
            member_id=answer.member_id,
            assignments=[assignment],
        ),
        2,
    )
    assert (synced.error_code, synced.assignment) == (0, b"all")
    return answer


# --- offsets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", OffsetCommitRequest.versions)
def test_every_version_commits(talk: Talk, group: str, version: int) -> None:
    topic_id = talk.create(group)
    by_id = {"topic_id": topic_id} if version >= 10 else {}
    assert commit(talk, group, "" if by_id else group, 7, version=version, **by_id) == 0
    assert fetch_old(talk, group, group, 5).committed_offset == 7


@pytest.mark.parametrize("version", range(1, 8))
def test_every_version_reads_one_group(talk: Talk, group: str, version: int) -> None:
    talk.create(group)
    assert fetch_old(talk, group, group, version).committed_offset == -1
    assert commit(talk, group, group, 7, note="seven") == 0
    row = fetch_old(talk, group, group, version)
    assert (row.committed_offset, row.metadata, row.error_code) == (7, "seven", 0)


def test_several_groups_are_read_at_once_and_all_their_topics(talk: Talk, group: str) -> None:
    talk.create(group, 2)
    commit(talk, group, group, 7, partition=1)
    found = fetch(talk, group, "nobody-knows-this-one")
    assert [(row.partition_index, row.committed_offset) for row in found[group].topics[0].partitions] == [(1, 7)]
    assert (found["nobody-knows-this-one"].error_code, found["nobody-knows-this-one"].topics) == (0, [])


def test_offsets_by_topic_id_are_those_of_that_topic(talk: Talk, group: str) -> None:
    topic_id = talk.create(group)
    assert commit(talk, group, "", 7, version=10, topic_id=topic_id) == 0
    assert commit(talk, group, "", 7, version=10, topic_id=NOBODYS_ID) == errors.UNKNOWN_TOPIC_ID.code
    asked = [
        OffsetFetchRequest.OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0])
        for each in (topic_id, NOBODYS_ID)
    ]
    topics = fetch(talk, group, version=10, topics=asked)[group].topics
    assert {topic.topic_id: topic.partitions[0].error_code for topic in topics} == {
        topic_id: 0,
        NOBODYS_ID: errors.UNKNOWN_TOPIC_ID.code,
    }
    everything = fetch(talk, group, version=10)[group].topics
    assert [(topic.topic_id, topic.partitions[0].committed_offset) for topic in everything] == [(topic_id, 7)]


def test_what_does_not_exist_takes_no_offsets(talk: Talk, group: str) -> None:
    talk.create(group)
    assert commit(talk, group, "no-such-topic", 7) == errors.UNKNOWN_TOPIC_OR_PARTITION.code
    assert commit(talk, group, group, 7, partition=1) == errors.UNKNOWN_TOPIC_OR_PARTITION.code


def test_a_commit_that_fits_no_batch_is_refused_and_harms_nobody(talk: Talk, group: str) -> None:
    talk.create(group, 400)
    partition = OffsetCommitRequest.OffsetCommitRequestPartition
    partitions = [
        partition(partition_index=index, committed_offset=1, committed_metadata="n" * 4096) for index in range(400)
    ]
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=group, partitions=partitions)
    answer = talk.ask(OffsetCommitRequest(group_id=group, topics=[topic]), 9)
    assert {row.error_code for row in answer.topics[0].partitions} == {errors.INVALID_COMMIT_OFFSET_SIZE.code}
    assert commit(talk, group, group, 7, note="n" * 4097) == errors.OFFSET_METADATA_TOO_LARGE.code
    assert commit(talk, group, group, 7, note="n" * 4096) == 0


def test_offsets_of_a_deserted_group_expire() -> None:
    with Broker() as broker:

        def later(*durations: str) -> list[Any]:
            for duration in durations:
                broker.clock.advance(duration)
            with Talk(broker.bootstrap_servers) as talk:  # the one before was idle for days
                topics: list[Any] = fetch(talk, "g")["g"].topics
                assert bool(topics) == bool(talk.ask(ListGroupsRequest(), 5).groups)
                return topics

        with Talk(broker.bootstrap_servers) as talk:
            talk.create("t")
            find(talk, "g")
            assert commit(talk, "g", "t", 7) == 0
        assert later("6d", "10m")[0].partitions[0].committed_offset == 7
        assert later("1d", "10m") == []


# --- groups -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", JoinGroupRequest.versions)
def test_every_version_joins(talk: Talk, group: str, version: int) -> None:
    answer = join(talk, group, version=version)
    if version >= 4:
        assert answer.error_code == errors.MEMBER_ID_REQUIRED.code
        answer = join(talk, group, version=version, member_id=answer.member_id)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")
    assert answer.member_id == answer.leader == answer.members[0].member_id
    assert answer.member_id.startswith("talk-")


def test_refusals_fit_every_version(talk: Talk, group: str) -> None:
    for version in JoinGroupRequest.versions:
        assert join(talk, group, version=version, session_timeout_ms=1).error_code == (
            errors.INVALID_SESSION_TIMEOUT.code
        )
        assert join(talk, "", version=version).error_code == errors.INVALID_GROUP_ID.code
    for version in LeaveGroupRequest.versions:
        message = LeaveGroupRequest(group_id=group)
        if version < 3:
            message.member_id = "nobody"
        else:
            message.members = [LeaveGroupRequest.MemberIdentity(member_id="nobody")]
        answer = talk.ask(message, version)
        error = answer.error_code if version < 3 else answer.members[0].error_code
        assert error == errors.UNKNOWN_MEMBER_ID.code


def test_metadata_that_no_record_could_hold_is_refused_and_the_group_goes_on(talk: Talk, group: str) -> None:
    member = joined(talk, group)
    assert join(talk, group, version=3, metadata=bytes(2_000_000)).error_code == errors.MESSAGE_TOO_LARGE.code
    beat = HeartbeatRequest(group_id=group, generation_id=member.generation_id, member_id=member.member_id)
    assert talk.ask(beat, 4).error_code == 0


def test_a_silent_member_is_gone_after_its_session() -> None:
    with Broker() as broker, Talk(broker.bootstrap_servers) as talk:
        find(talk, "g")
        member = joined(talk, "g")
        beat = HeartbeatRequest(group_id="g", generation_id=member.generation_id, member_id=member.member_id)
        broker.clock.advance("9s")
        assert talk.ask(beat, 4).error_code == 0
        broker.clock.advance("9s")
        assert talk.ask(beat, 4).error_code == 0
        broker.clock.advance("11s")
        assert talk.ask(beat, 4).error_code == errors.UNKNOWN_MEMBER_ID.code
        (described,) = talk.ask(DescribeGroupsRequest(groups=["g"]), 6).groups
        assert (described.group_state, described.members) == ("Empty", [])


def test_a_broker_that_is_not_the_coordinator_says_so() -> None:
    with Broker() as broker, Talk(broker.bootstrap_servers) as talk:
        assert join(talk, "g").error_code == errors.NOT_COORDINATOR.code
        assert fetch(talk, "g")["g"].error_code == errors.NOT_COORDINATOR.code


# --- restarts ---------------------------------------------------------------------------------------------------------


def test_a_member_outlives_a_restart_of_its_coordinator(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker, Talk(broker.bootstrap_servers) as talk:
        find(talk, "g")
        member = joined(talk, "g")
    with Broker(data_dir=tmp_path) as broker, Talk(broker.bootstrap_servers) as talk:
        beat = HeartbeatRequest(group_id="g", generation_id=member.generation_id, member_id=member.member_id)
        assert talk.ask(beat, 4).error_code == 0
        (described,) = talk.ask(DescribeGroupsRequest(groups=["g"]), 6).groups
        assert [each.member_assignment for each in described.members] == [b"all"]


def test_a_killed_broker_loses_no_offset_that_it_confirmed(tmp_path: Path) -> None:
    chance = random.Random(20260101)
    sent, confirmed = -1, -1

    def commit_until_it_is_gone() -> None:
        nonlocal sent, confirmed
        with Talk(process.bootstrap_servers) as talk, suppress(PeerGone):
            while True:
                sent += 1
                if commit(talk, "g", "t", sent) == 0:
                    confirmed = sent

    with BrokerProcess(tmp_path) as process:
        with Talk(process.bootstrap_servers) as talk:
            talk.create("t")
        for _ in range(5):
            with Talk(process.bootstrap_servers) as talk:
                find(talk, "g")
                rows = loaded(talk, "g").topics
                found = rows[0].partitions[0].committed_offset if rows else -1
                assert confirmed <= found <= sent
                confirmed = found
            thread = threading.Thread(target=commit_until_it_is_gone)
            thread.start()
            time.sleep(chance.uniform(0.1, 0.4))
            process.kill()
            thread.join()
            process.start()
    assert confirmed > 0
