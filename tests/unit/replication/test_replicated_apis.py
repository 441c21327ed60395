"""Fetch, ListOffsets and DeleteRecords where partitions have several replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from trio import TOPIC, TOPIC_ID, Broker, Trio

from barnabas.model import errors
from barnabas.testing.loop import simulate
from barnabas.wire.messages.delete_records import DeleteRecordsRequest
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsRequest

RACK_AWARE = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}


def play(scene: Callable[[Trio], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with Trio(**options) as trio:
            await scene(trio)

    simulate(main, time_s_max=3600)


async def acknowledged(trio: Trio, *values: bytes) -> None:
    leader = trio.leader()
    for value in values:
        assert await leader.acknowledged(trio.append(leader, value))


async def fetch(
    trio: Trio, broker: Broker, offset: int = 0, *, rack: str = "", epoch: int = -1, version: int = 18, **more: Any
) -> FetchResponse.PartitionData:
    request = FetchRequest(
        rack_id=rack,
        max_wait_ms=0,
        session_epoch=-1,
        topics=[
            FetchRequest.FetchTopic(
                topic=TOPIC if version < 13 else "",
                topic_id=TOPIC_ID,
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=0, fetch_offset=offset, partition_max_bytes=1000, current_leader_epoch=epoch
                    )
                ],
            )
        ],
        **more,
    )
    ((row,),) = [topic.partitions for topic in (await trio.ask_broker(broker, request, version)).responses]
    assert isinstance(row, FetchResponse.PartitionData)
    return row


async def list_offset(trio: Trio, broker: Broker, timestamp: int, *, replica_id: int = -1, version: int = 11) -> Any:
    asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=replica_id, topics=[ListOffsetsRequest.ListOffsetsTopic(name=TOPIC, partitions=[asked])]
    )
    return (await trio.ask_broker(broker, request, version)).topics[0].partitions[0]


# --- what followers are told ------------------------------------------------------------------------------------------


def test_a_follower_hears_of_a_high_watermark_that_moves_after_it_moved_it_itself() -> None:
    async def scene(trio: Trio) -> None:
        leader = trio.brokers[1]
        for broker in (2, 3):
            trio.isolate(broker)
        await trio.settled(0)
        trio.append(leader.partition, b"one")
        trio.append(leader.partition, b"two")
        second, third = FollowersSession(trio, leader, 2), FollowersSession(trio, leader, 3)
        await third.fetch(1)
        assert await second.fetch(2) == 1, "what it has itself makes the difference"
        assert await second.fetch() is None, "nothing has happened since"
        assert await third.fetch(2) == 2
        assert await second.fetch() == 2

    play(scene)


class FollowersSession:
    """The fetches of a follower, made by hand: the high watermark that it is told, if it is told any."""

    def __init__(self, trio: Trio, leader: Broker, broker_id: int) -> None:
        self._trio, self._leader, self._broker_id = trio, leader, broker_id
        self._session_id = self._session_epoch = 0

    async def fetch(self, offset: int | None = None) -> int | None:
        topics = []
        if offset is not None:
            wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
            topics = [FetchRequest.FetchTopic(topic_id=TOPIC_ID, partitions=[wanted])]
        request = FetchRequest(
            max_wait_ms=0,
            replica_state=FetchRequest.ReplicaState(replica_id=self._broker_id, replica_epoch=-1),
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=topics,
        )
        answer = await self._trio.ask_broker(self._leader, request, 18)
        assert answer.error_code == 0
        self._session_id, self._session_epoch = answer.session_id, self._session_epoch + 1
        return next((row.high_watermark for topic in answer.responses for row in topic.partitions), None)


# --- consumers at followers (KIP-392) ---------------------------------------------------------------------------------


def test_a_follower_serves_consumers_up_to_its_own_high_watermark() -> None:
    async def scene(trio: Trio) -> None:
        await acknowledged(trio, b"one")
        await trio.settled()
        trio.isolate(2)
        trio.append(trio.brokers[1].partition, b"two")
        row = await fetch(trio, trio.brokers[2])
        assert (row.error_code, row.high_watermark) == (0, 1)
        assert row.records
        assert not (await fetch(trio, trio.brokers[2], 1)).records

    play(scene)


@pytest.mark.parametrize(("version", "error"), [(10, errors.NOT_LEADER_OR_FOLLOWER), (11, errors.NONE)])
def test_consumers_too_old_to_know_of_it_read_from_the_leader_only(version: int, error: errors.WireError) -> None:
    async def scene(trio: Trio) -> None:
        await acknowledged(trio, b"one")
        assert (await fetch(trio, trio.brokers[2], version=version)).error_code == error.code

    play(scene)


@pytest.mark.parametrize(("epoch", "error"), [(0, errors.FENCED_LEADER_EPOCH), (2, errors.UNKNOWN_LEADER_EPOCH)])
def test_a_follower_checks_the_epoch_too_and_names_the_leader(epoch: int, error: errors.WireError) -> None:
    async def scene(trio: Trio) -> None:
        trio.change(leader=3)
        await trio.settled(10)
        row = await fetch(trio, trio.brokers[2], epoch=epoch)
        assert row.error_code == error.code
        if error is errors.FENCED_LEADER_EPOCH:
            assert (row.current_leader.leader_id, row.current_leader.leader_epoch) == (3, 1)

    play(scene)


def test_a_consumer_is_sent_to_the_replica_in_its_rack() -> None:
    async def scene(trio: Trio) -> None:
        for broker in trio.brokers.values():
            trio.register(broker, rack="abc"[broker.id - 1])
        await acknowledged(trio, b"one")
        await trio.settled()
        leader = trio.brokers[1]
        sent = await fetch(trio, leader, rack="b")
        assert (sent.preferred_read_replica, sent.records, sent.high_watermark) == (2, b"", 1)
        for rack in ("a", "", "elsewhere"):
            stays = await fetch(trio, leader, rack=rack)
            assert (stays.preferred_read_replica, bool(stays.records)) == (-1, True)
        assert (await fetch(trio, trio.brokers[2], rack="b")).records, "the follower sends nobody on"
        trio.change(isr=[1, 3])
        await trio.settled(0)
        assert (await fetch(trio, leader, rack="b")).preferred_read_replica == -1, "it is not in sync"
        assert (await fetch(trio, leader, 1, rack="c")).preferred_read_replica == 3
        trio.isolate(3)
        trio.append(leader.partition, b"two")
        trio.change(isr=[1, 2, 3])
        await trio.settled(10)
        assert (await fetch(trio, leader, 2, rack="c")).preferred_read_replica == -1, "it does not have the offset"

    play(scene, settings=RACK_AWARE)


def test_without_a_selector_nobody_is_sent_anywhere() -> None:
    async def scene(trio: Trio) -> None:
        for broker in trio.brokers.values():
            trio.register(broker, rack="abc"[broker.id - 1])
        await acknowledged(trio, b"one")
        await trio.settled()
        assert (await fetch(trio, trio.brokers[1], rack="b")).records

    play(scene)


# --- followers --------------------------------------------------------------------------------------------------------


def follower_state(broker_id: int, epoch: int) -> dict[str, Any]:
    return {"replica_state": FetchRequest.ReplicaState(replica_id=broker_id, replica_epoch=epoch)}


def test_a_follower_reads_to_the_end_and_counts_by_what_it_asks_for() -> None:
    async def scene(trio: Trio) -> None:
        trio.part()
        leader = trio.brokers[1]
        trio.append(leader.partition, b"one")
        for number in (2, 3):
            epoch = trio.brokers[number].epoch
            row = await fetch(trio, leader, 0, epoch=0, **follower_state(number, epoch))
            assert row.records
            assert leader.partition.log.high_watermark == 0
            await fetch(trio, leader, 1, epoch=0, **follower_state(number, epoch))
        assert leader.partition.log.high_watermark == 1

    play(scene)


def test_a_fetch_from_before_a_restart_counts_for_nothing() -> None:
    async def scene(trio: Trio) -> None:
        trio.part()
        leader, follower = trio.brokers[1], trio.brokers[2]
        trio.append(leader.partition, b"one")
        row = await fetch(trio, leader, 1, epoch=0, **follower_state(2, follower.epoch - 1))
        assert row.error_code == errors.NOT_LEADER_OR_FOLLOWER.code
        assert leader.partition.in_sync is not None
        assert leader.partition.in_sync.followers[2].end_offset != 1

    play(scene)


def test_who_is_no_replica_is_told_to_come_back() -> None:
    async def scene(trio: Trio) -> None:
        row = await fetch(trio, trio.brokers[1], epoch=0, **follower_state(9, 1))
        assert row.error_code == errors.UNKNOWN_LEADER_EPOCH.code

    play(scene)


def test_an_offset_that_the_leader_does_not_have_counts_for_nothing() -> None:
    async def scene(trio: Trio) -> None:
        trio.part()
        leader = trio.brokers[1]
        assert leader.partition.in_sync is not None
        before = leader.partition.in_sync.followers[2].end_offset
        row = await fetch(trio, leader, 99, epoch=0, **follower_state(2, trio.brokers[2].epoch))
        assert row.error_code == errors.OFFSET_OUT_OF_RANGE.code
        assert leader.partition.in_sync.followers[2].end_offset == before

    play(scene)


def test_a_new_partition_does_not_wait_for_the_long_poll_of_the_others() -> None:
    async def scene(trio: Trio) -> None:
        await acknowledged(trio, b"one")
        await trio.settled(100)  # by now the followers wait at the leader
        trio.add_partition(1, leader=1)
        await asyncio.sleep(0)
        begin = trio.loop.time()
        while (TOPIC_ID, 1) not in trio.brokers[1].replicas.by_id:
            await asyncio.sleep(0.001)
        partition = trio.brokers[1].replicas.by_id[TOPIC_ID, 1]
        assert await partition.acknowledged(trio.append(partition, b"first"))
        assert trio.loop.time() - begin < 0.1, "replica.fetch.wait.max.ms is 500"

    play(scene)


def test_a_follower_that_is_throttled_and_behind_comes_slowly_and_one_in_sync_does_not() -> None:
    async def scene(trio: Trio) -> None:
        await acknowledged(trio, b"one")
        trio.isolate(3)
        trio.fence(trio.brokers[3])
        trio.change(isr=[1, 2])
        begin = trio.loop.time()
        for _ in range(50):
            await acknowledged(trio, b"x" * 1000)
        assert trio.loop.time() - begin < 1, "what is in sync is not throttled"
        trio.heal()
        trio.register(trio.brokers[3])
        begin = trio.loop.time()
        while trio.brokers[3].partition.log.end_offset < trio.leader().log.end_offset:
            await trio.settled(100)
        assert 5 < trio.loop.time() - begin < 40, "50 KB at 5 KB a second, and what went to the other before"

    settings = {"replica.fetch.max.bytes": "2000"}
    rates: dict[str, dict[str, Any]] = {
        "leader": {"leader_replication_throttled_replicas": ("0:1",)},
        "follower": {"follower_replication_throttled_replicas": ("*",)},
    }
    for side, topic in rates.items():
        play(scene, settings={**settings, f"{side}.replication.throttled.rate": "5000"}, **topic)


# --- offsets ----------------------------------------------------------------------------------------------------------


def test_a_follower_is_told_the_end_of_the_log_and_a_consumer_the_high_watermark() -> None:
    async def scene(trio: Trio) -> None:
        await acknowledged(trio, b"one")
        trio.part()
        leader = trio.brokers[1]
        trio.append(leader.partition, b"two")
        assert (await list_offset(trio, leader, -1, replica_id=2)).offset == 2
        assert (await list_offset(trio, leader, -1)).offset == 1
        row = await list_offset(trio, trio.brokers[2], -1)
        assert row.error_code == errors.NOT_LEADER_OR_FOLLOWER.code

    play(scene)


def test_a_new_leader_does_not_say_where_the_log_ends_before_it_knows() -> None:
    async def scene(trio: Trio) -> None:
        await acknowledged(trio, b"one")
        trio.part()
        trio.change(leader=2)
        await trio.settled(10)
        leader = trio.brokers[2]
        assert leader.partition.log.high_watermark == 0, "it has the record, and has not heard that all have it"
        assert (await list_offset(trio, leader, -1)).error_code == errors.OFFSET_NOT_AVAILABLE.code
        assert (await list_offset(trio, leader, -1, version=4)).error_code == errors.LEADER_NOT_AVAILABLE.code
        assert (await list_offset(trio, leader, -2)).offset == 0
        trio.heal()
        await trio.settled()
        assert (await list_offset(trio, leader, -1)).offset == 1

    play(scene)


async def delete(trio: Trio, *, timeout_ms: int) -> Any:
    asked = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=-1)
    request = DeleteRecordsRequest(
        timeout_ms=timeout_ms, topics=[DeleteRecordsRequest.DeleteRecordsTopic(name=TOPIC, partitions=[asked])]
    )
    return (await trio.ask_broker(trio.brokers[1], request, 2)).topics[0].partitions[0]


def test_records_are_deleted_when_they_are_gone_everywhere() -> None:
    async def scene(trio: Trio) -> None:
        await acknowledged(trio, b"one", b"two")
        row = await delete(trio, timeout_ms=10_000)
        assert (row.error_code, row.low_watermark) == (0, 2)
        assert [broker.partition.log.log_start_offset for broker in trio.brokers.values()] == [2, 2, 2]

    play(scene)


def test_a_deletion_that_a_replica_does_not_hear_of_times_out() -> None:
    async def scene(trio: Trio) -> None:
        await acknowledged(trio, b"one")
        await trio.settled()
        trio.isolate(3)
        row = await delete(trio, timeout_ms=3000)
        assert (row.error_code, row.low_watermark) == (errors.REQUEST_TIMED_OUT.code, -1)
        trio.fence(trio.brokers[3])
        await trio.settled(10)
        row = await delete(trio, timeout_ms=3000)
        assert (row.error_code, row.low_watermark) == (0, 1), "who is dead is not waited for"

    play(scene)


def test_a_client_that_never_comes_back_costs_a_partition_nothing() -> None:
    async def scene(trio: Trio) -> None:
        leader = trio.brokers[1]
        request = FetchRequest(
            max_wait_ms=0,
            topics=[
                FetchRequest.FetchTopic(
                    topic_id=TOPIC_ID, partitions=[FetchRequest.FetchPartition(partition=0, partition_max_bytes=1000)]
                )
            ],
            session_epoch=0,
        )
        before = len(leader.partition.readers)
        for _ in range(20):
            await trio.ask_broker(leader, request, 18)
        assert len(leader.partition.readers) == before + 20
        await acknowledged(trio, b"one")
        await trio.settled()
        assert len(leader.partition.readers) == before

    play(scene)
