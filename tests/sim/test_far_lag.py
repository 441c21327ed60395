"""How far groups are behind in partitions of other brokers, in virtual time: asked while somebody looks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.broker.lag import remote_lag as far_lag
from barnabas.broker.lag import remote_queries as far_questions
from barnabas.broker.lag.group_lag import Lag
from barnabas.broker.lag.remote_lag import PAUSE_MS
from barnabas.broker.node.node import Node
from barnabas.client.producer import Producer
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model.ids import OFFSETS_TOPIC
from barnabas.testing.loop import simulate
from barnabas.testing.simulated_cluster import BROKER_PORT, SimulatedCluster
from barnabas.transport.channel import Channel
from barnabas.wire.message import Message
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_records import DeleteRecordsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest

VIRTUAL_SECONDS_MAX = 3600.0
PARTITIONS = 6
HOUR_MS = 3_600_000
SOON_S = 1.0
LOOKING_MS = AGE_MS_MAX = 12_000  # less than usual: a cluster that idles takes its time even here


async def ask(number: int, request: Message, version: int) -> Any:
    channel = await Channel.connect(f"node{number}", BROKER_PORT, client_id="test")
    try:
        return await channel.send(request, version)
    finally:
        channel.close()


class Groups:
    """Three brokers, a topic with one replica to a partition, and what groups have committed."""

    def __init__(self, seed: int = 1) -> None:
        self.cluster = SimulatedCluster(seed, brokers=3)
        self.coordinator = 0

    async def start(self) -> None:
        await self.cluster.start_all()
        topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=1)
        (row,) = (await ask(1, CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 7)).topics
        assert row.error_code == 0, row.error_message

    async def write(self, *times_ms: int) -> None:
        settings = ProducerSettings(bootstrap_servers=self.cluster.bootstrap_servers)
        async with Producer(settings, world=self.cluster.worlds[1]) as producer:
            for time_ms in times_ms:
                for index in range(PARTITIONS):
                    await producer.send("t", b"v", partition=index, timestamp_ms=time_ms)

    async def commit(self, *offsets: int, group_id: str = "g") -> None:
        while True:
            found = await ask(1, FindCoordinatorRequest(key=group_id), 3)
            if found.error_code == 0:
                self.coordinator = found.node_id
                parts = [
                    OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
                    for index, offset in enumerate(offsets)
                ]
                topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=parts)
                answer = await ask(found.node_id, OffsetCommitRequest(group_id=group_id, topics=[topic]), 7)
                if all(row.error_code == 0 for topic in answer.topics for row in topic.partitions):
                    return
            await asyncio.sleep(0.1)

    @property
    def node(self) -> Node:
        return self.cluster.nodes[self.coordinator]

    def rows(self) -> list[Lag]:
        return list(self.node.services.groups.lags.rows())

    def leader(self, index: int) -> int:
        return self.node.services.image.topics.by_name["t"].partitions[index].leader

    def far(self) -> list[int]:
        return [index for index in range(PARTITIONS) if self.leader(index) != self.coordinator]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[ListOffsetsRequest]:
    """What is asked of the leaders."""
    requests: list[ListOffsetsRequest] = []
    original = far_questions.Questions.take

    def take(self: Any, response: Any, request: ListOffsetsRequest) -> None:
        requests.append(request)
        original(self, response, request)

    monkeypatch.setattr(far_questions.Questions, "take", take)
    return requests


def test_leaders_elsewhere_are_asked_while_somebody_looks(
    monkeypatch: pytest.MonkeyPatch, sent: list[ListOffsetsRequest]
) -> None:
    monkeypatch.setattr(far_lag, "LOOKING_MS", LOOKING_MS)

    async def whole() -> None:
        groups = Groups()
        await groups.start()
        now_ms = groups.cluster.worlds[1].clock.wall_ms()
        await groups.write(*(now_ms - HOUR_MS * back for back in (5, 4, 3, 2)))
        await groups.commit(0, 1, 2, 3, 4, 0)
        await asyncio.sleep(2 * PAUSE_MS / 1000)
        assert not sent  # nobody looks
        far = groups.far()
        assert 0 < len(far) < PARTITIONS
        assert {row.partition for row in groups.rows() if row.records is None} == set(far)
        await asyncio.sleep(SOON_S)
        rows = groups.rows()
        assert [row.records for row in rows] == [4, 3, 2, 1, 0, 4]
        assert [row.behind_ms for row in rows] == [3 * HOUR_MS, 2 * HOUR_MS, HOUR_MS, 0, 0, 3 * HOUR_MS]
        for row, back in zip(rows, (5, 4, 3, 2, 0, 5), strict=True):
            assert row.waiting_ms is not None
            assert 0 <= row.waiting_ms - HOUR_MS * back <= (90_000 if back else 0)
        await groups.write(now_ms - HOUR_MS)
        await groups.commit(4, 4, 4, 4, 4, 5)
        await asyncio.sleep(PAUSE_MS / 1000 + SOON_S)
        assert [row.records for row in groups.rows()] == [1, 1, 1, 1, 1, 0]
        await asyncio.sleep((LOOKING_MS + PAUSE_MS) / 1000)
        count = len(sent)
        await asyncio.sleep(2 * PAUSE_MS / 1000)
        assert len(sent) == count  # nobody has looked for long
        assert {row.partition for row in groups.rows() if row.records is None} == set(groups.far())
        await groups.cluster.stop_all()

    simulate(whole, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)


def test_the_time_of_a_record_is_read_once(sent: list[ListOffsetsRequest]) -> None:
    async def whole() -> None:
        groups = Groups()
        await groups.start()
        await groups.write(1000, 2000)
        await groups.commit(*[0] * PARTITIONS)
        groups.rows()
        await asyncio.sleep(4 * PAUSE_MS / 1000)
        asked = [row.unread_offsets for request in sent for topic in request.topics for row in topic.partitions]
        assert len(asked) >= 3 * len(groups.far())
        assert [offsets for offsets in asked if offsets] == [[0]] * len(groups.far())
        assert [row.behind_ms for row in groups.rows()] == [1000] * PARTITIONS
        await groups.cluster.stop_all()

    simulate(whole, seed=2, time_s_max=VIRTUAL_SECONDS_MAX)


def test_a_group_behind_the_start_of_a_log_waits_for_the_first_record_that_is_left() -> None:
    async def whole() -> None:
        groups = Groups()
        await groups.start()
        await groups.write(1000, 2000, 3000)
        await groups.commit(*[0] * PARTITIONS)
        groups.rows()
        await asyncio.sleep(SOON_S)
        index = groups.far()[0]
        assert groups.rows()[index].behind_ms == 2000
        part = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=index, offset=2)
        topic = DeleteRecordsRequest.DeleteRecordsTopic(name="t", partitions=[part])
        await ask(groups.leader(index), DeleteRecordsRequest(topics=[topic], timeout_ms=1000), 2)
        await asyncio.sleep(2 * PAUSE_MS / 1000 + SOON_S)
        row = groups.rows()[index]
        assert (row.records, row.behind_ms) == (3, 0)
        await groups.cluster.stop_all()

    simulate(whole, seed=3, time_s_max=VIRTUAL_SECONDS_MAX)


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_leader_that_is_gone_or_silent_leaves_a_gap_and_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    monkeypatch.setattr(far_lag, "AGE_MS_MAX", AGE_MS_MAX)

    async def whole() -> None:
        groups = Groups()
        await groups.start()
        await groups.write(1000, 2000)
        await groups.commit(*[1] * PARTITIONS)
        groups.rows()
        await asyncio.sleep(SOON_S)
        gone = groups.leader(groups.far()[0])
        theirs = {index for index in range(PARTITIONS) if groups.leader(index) == gone}
        if is_killed:
            groups.cluster.kill(gone)
        else:
            groups.cluster.cut_off(gone)
        await asyncio.sleep(AGE_MS_MAX / 1000 + 3 * PAUSE_MS / 1000)
        rows = groups.rows()
        assert {row.partition for row in rows if row.records is None} == theirs
        assert {row.records for row in rows if row.partition not in theirs} == {1}
        if is_killed:
            await groups.cluster.start(gone)
        else:
            groups.cluster.heal()
        await asyncio.sleep(2 * PAUSE_MS / 1000 + SOON_S)
        assert {row.records for row in groups.rows()} == {1}
        await groups.cluster.stop_all()

    simulate(whole, seed=4, time_s_max=VIRTUAL_SECONDS_MAX)


def test_one_round_asks_about_few(monkeypatch: pytest.MonkeyPatch, sent: list[ListOffsetsRequest]) -> None:
    async def whole() -> None:
        groups = Groups()
        await groups.start()
        await groups.write(1000)
        await groups.commit(*[0] * PARTITIONS)
        count = len(groups.far())
        monkeypatch.setattr(far_lag, "ROWS_MAX", count - 1)
        groups.rows()
        await asyncio.sleep(SOON_S)
        assert sum(row.records is None for row in groups.rows()) == 1
        assert groups.node.services.groups.lags.left_out == 1
        await groups.cluster.stop_all()

    simulate(whole, seed=5, time_s_max=VIRTUAL_SECONDS_MAX)


def test_a_broker_stops_at_once_while_others_are_asked() -> None:
    async def whole() -> None:
        groups = Groups()
        await groups.start()
        await groups.write(1000)
        await groups.commit(*[0] * PARTITIONS)
        other = groups.leader(groups.far()[0])
        groups.cluster.pause(other)
        groups.rows()
        await asyncio.sleep(0.1)
        assert OFFSETS_TOPIC in groups.node.services.image.topics.by_name
        node = groups.node
        await node.services.groups.lags.stop()
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("far-lags")]
        groups.cluster.resume(other)
        await groups.cluster.stop_all()

    simulate(whole, seed=6, time_s_max=VIRTUAL_SECONDS_MAX)
