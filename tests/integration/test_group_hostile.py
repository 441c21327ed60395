"""Bad guests of a group coordinator: each gets Kafka's error or a closed door, and another group notices nothing.

The other group has a member that beats and commits all the while; its coordinator must not have been loaded again.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from talk import Talk, address_of

from barnabas.coordinator.groups.settings import PROTOCOLS_PER_MEMBER_MAX
from barnabas.model import errors
from barnabas.testing import Broker
from barnabas.transport.channel import Channel, PeerGone
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest

INT64_MAX = 2**63 - 1
TOPIC = "t"
BYSTANDER_SECONDS_MAX = 3.0  # for a heartbeat and a commit, on a machine that does other things besides


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    # One partition of offsets: so all groups have the same coordinator's shard.
    with Broker(settings={"offsets.topic.num.partitions": "1"}) as running, Talk(running.bootstrap_servers) as talk:
        talk.create(TOPIC)
        deadline = time.monotonic() + 10
        while talk.ask(FindCoordinatorRequest(key="g"), 3).error_code or committed(talk, "first"):
            assert time.monotonic() < deadline, "the coordinator is not there"
        yield running


@pytest.fixture
def talk(broker: Broker) -> Iterator[Talk]:
    with Talk(broker.bootstrap_servers) as connection:
        yield connection


@pytest.fixture
def bystander(broker: Broker, talk: Talk, name: str) -> Iterator[Bystander]:
    with Talk(broker.bootstrap_servers) as own:
        group = Bystander(own, f"bystander-of-{name}", broker)
        yield group
        group.check()
        assert broker.node.services.groups.runtime.shard(0) is group.shard, "the coordinator was loaded again"


class Bystander:
    """A group with one member that goes on whatever others do."""

    def __init__(self, talk: Talk, group: str, broker: Broker) -> None:
        self._talk = talk
        self.group = group
        self.member_id, self.generation = join_alone(talk, group)
        self.shard = broker.node.services.groups.runtime.shard(0)
        self._offset = 0
        self.check()

    def check(self) -> None:
        started = time.monotonic()
        self._offset += 1
        assert beat(self._talk, self.group, self.member_id, self.generation) == errors.NONE.code
        who = {"member_id": self.member_id, "generation_id_or_member_epoch": self.generation}
        assert committed(self._talk, self.group, offset=self._offset, version=9, **who) == errors.NONE.code
        assert fetched(self._talk, self.group) == self._offset
        assert time.monotonic() - started < BYSTANDER_SECONDS_MAX


def join_request(group: str, member_id: str = "", metadata: bytes = b"", protocols: int = 1) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[
            JoinGroupRequest.JoinGroupRequestProtocol(name=f"range{number or ''}", metadata=metadata)
            for number in range(protocols)
        ],
    )


def join_alone(talk: Talk, group: str) -> tuple[str, int]:
    answer = talk.ask(join_request(group), 3)
    assert answer.error_code == errors.NONE.code
    assert sync(talk, group, answer.member_id, answer.generation_id) == errors.NONE.code
    return answer.member_id, answer.generation_id


def sync(talk: Talk, group: str, member_id: str, generation: int, **more: Any) -> int:
    request = SyncGroupRequest(group_id=group, generation_id=generation, member_id=member_id, **more)
    return int(talk.ask(request, 3).error_code)


def beat(talk: Talk, group: str, member_id: str, generation: int, **more: Any) -> int:
    request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id, **more)
    return int(talk.ask(request, 3).error_code)


def commit_request(group: str, offset: int = 1, note: str | None = None, **more: Any) -> OffsetCommitRequest:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=note
    )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    return OffsetCommitRequest(group_id=group, topics=[topic], **more)


def committed(talk: Talk, group: str, *, version: int = 4, **more: Any) -> int:
    return int(talk.ask(commit_request(group, **more), version).topics[0].partitions[0].error_code)


def fetched(talk: Talk, group: str) -> int:
    topics = [OffsetFetchRequest.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])]
    return int(talk.ask(OffsetFetchRequest(group_id=group, topics=topics), 5).topics[0].partitions[0].committed_offset)


def listed(talk: Talk) -> set[str]:
    return {group.group_id for group in talk.ask(ListGroupsRequest(), 4).groups}


@pytest.mark.parametrize("retention_time_ms", [INT64_MAX, INT64_MAX - 1, 0, -(2**63)])
def test_a_retention_at_the_limit_does_not_break_the_coordinator(
    talk: Talk, bystander: Bystander, name: str, retention_time_ms: int
) -> None:
    assert committed(talk, name, offset=INT64_MAX, retention_time_ms=retention_time_ms) == errors.NONE.code


def test_a_join_with_100_megabytes_of_metadata_ends_its_connection(
    broker: Broker, bystander: Bystander, name: str
) -> None:
    with Talk(broker.bootstrap_servers) as hostile:
        with pytest.raises((PeerGone, ConnectionError)):
            hostile.ask(join_request(name, metadata=bytes(100_000_000)), 5)
        bystander.check()
    assert not broker.node.services.groups.runtime.shard(0).groups.keys() & {name}  # type: ignore[attr-defined]


def test_a_join_with_as_much_as_a_request_may_have_is_refused(talk: Talk, bystander: Bystander, name: str) -> None:
    answer = talk.ask(join_request(name, metadata=bytes(3_900_000)), 3)
    assert answer.error_code == errors.MESSAGE_TOO_LARGE.code
    assert name not in listed(talk)


def test_a_member_that_would_make_the_group_too_large_for_its_line_is_refused_and_the_others_stay(
    talk: Talk, bystander: Bystander, name: str
) -> None:
    """Each is small enough by itself; together they would end the group for all of them."""
    first = talk.ask(join_request(name, metadata=bytes(700_000)), 3)
    assert first.error_code == errors.NONE.code
    for _ in range(3):
        answer = talk.ask(join_request(name, metadata=bytes(700_000)), 3)
        assert answer.error_code == errors.GROUP_MAX_SIZE_REACHED.code
    assert beat(talk, name, first.member_id, first.generation_id) == errors.NONE.code


def leave_request(group: str, member_id: str) -> LeaveGroupRequest:
    return LeaveGroupRequest(group_id=group, members=[LeaveGroupRequest.MemberIdentity(member_id=member_id)])


def test_a_member_that_offers_countless_protocols_is_refused(talk: Talk, bystander: Bystander, name: str) -> None:
    answer = talk.ask(join_request(name, protocols=PROTOCOLS_PER_MEMBER_MAX + 1), 3)
    assert answer.error_code == errors.GROUP_MAX_SIZE_REACHED.code


def test_forged_ids_and_generations_are_told_so_and_harm_nobody(talk: Talk, bystander: Bystander) -> None:
    group, member_id, generation = bystander.group, bystander.member_id, bystander.generation
    unknown, illegal = errors.UNKNOWN_MEMBER_ID.code, errors.ILLEGAL_GENERATION.code
    assert talk.ask(join_request(group, "forged"), 5).error_code == unknown
    assert beat(talk, group, "forged", generation) == unknown
    assert beat(talk, group, member_id, generation + 1) == illegal
    assert beat(talk, group, member_id, -1) == illegal
    assert beat(talk, group, member_id, generation, group_instance_id="forged") == unknown
    assert sync(talk, group, "forged", generation) == unknown
    assert sync(talk, group, member_id, generation + 1) == illegal
    left = talk.ask(leave_request(group, "forged"), 3)
    assert left.members[0].error_code == unknown
    for who, when, error in (("forged", generation, unknown), (member_id, generation + 1, illegal)):
        code = committed(talk, group, version=9, offset=99, member_id=who, generation_id_or_member_epoch=when)
        assert code == error


def test_nobody_commits_for_a_group_that_has_members(talk: Talk, bystander: Bystander) -> None:
    before = fetched(talk, bystander.group)
    assert committed(talk, bystander.group, version=9, offset=99) == errors.UNKNOWN_MEMBER_ID.code
    assert fetched(talk, bystander.group) == before


def test_a_group_whose_commit_is_refused_leaves_no_trace(talk: Talk, bystander: Bystander, name: str) -> None:
    assert committed(talk, name, note="x" * 5_000) == errors.OFFSET_METADATA_TOO_LARGE.code
    assert committed(talk, name, version=9, generation_id_or_member_epoch=3) == errors.GROUP_ID_NOT_FOUND.code
    assert name not in listed(talk)


def test_a_pattern_meant_to_hang_takes_no_time(talk: Talk, bystander: Bystander, name: str) -> None:
    talk.create("a" * 200)
    request = ConsumerGroupHeartbeatRequest(
        group_id=name,
        member_id="m",
        rebalance_timeout_ms=60_000,
        subscribed_topic_regex="(a|a)*(a+)+(a*)*b",
        topic_partitions=[],
    )
    started = time.monotonic()
    assert talk.ask(request, 1).error_code == errors.NONE.code
    bystander.check()
    assert time.monotonic() - started < 2


@pytest.mark.slow
def test_ten_thousand_groups_disturb_nobody(talk: Talk, bystander: Bystander, name: str) -> None:
    for start in range(0, 10_000, 500):
        requests = [(commit_request(f"{name}-{number}"), 4) for number in range(start, start + 500)]
        answers = talk.ask_all(*requests)
        assert not any(answer.topics[0].partitions[0].error_code for answer in answers)
        bystander.check()
    assert len(listed(talk)) >= 10_000
    bystander.check()


@pytest.mark.slow
def test_a_group_of_a_thousand_members_disturbs_nobody(
    broker: Broker, talk: Talk, bystander: Bystander, name: str
) -> None:
    """A thousand new ones wait for the first one to join again; then all have their generation, and all leave."""
    first, _ = join_alone(talk, name)
    ids: list[str] = []
    joined: list[int] = []
    thread = threading.Thread(target=lambda: asyncio.run(crowd(broker.bootstrap_servers, name, ids, joined)))
    thread.start()
    deadline = time.monotonic() + 30
    while len(talk.ask(DescribeGroupsRequest(groups=[name]), 5).groups[0].members) < 1001:
        assert time.monotonic() < deadline, "not all have joined"
        bystander.check()
    answer = talk.ask(join_request(name, first), 9)
    thread.join()
    assert joined == [errors.NONE.code] * 1000
    assert len(answer.members) == 1001
    bystander.check()
    gone = [LeaveGroupRequest.MemberIdentity(member_id=member_id) for member_id in ids]
    talk.ask(LeaveGroupRequest(group_id=name, members=gone), 3)
    bystander.check()


async def crowd(bootstrap_servers: str, group: str, ids: list[str], joined: list[int]) -> None:
    """A thousand members, each on a connection of its own."""
    channels = [await Channel.connect(*address_of(bootstrap_servers), client_id="crowd") for _ in range(1000)]
    asked: list[Any] = await asyncio.gather(*(channel.send(join_request(group), 9) for channel in channels))
    ids += [answer.member_id for answer in asked]
    joins = (join_request(group, member_id, bytes(200)) for member_id in ids)
    answers: list[Any] = await asyncio.gather(
        *(channel.send(join, 9) for channel, join in zip(channels, joins, strict=True))
    )
    joined += [answer.error_code for answer in answers]
    for channel in channels:
        channel.close()
        await channel.closed
