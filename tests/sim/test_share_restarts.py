"""A share group while its broker is killed or stopped at any moment, from seeds.

Members acquire, accept, release and forget records. A record whose acceptance was answered with success is never
delivered again, and every record is accepted in the end, but for those that were delivered as often as the group
allows. ``BARNABAS_SIM_SEEDS`` sets the number of stories, ``BARNABAS_SIM_SEED`` runs one of them.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from random import Random
from typing import Any

import pytest

from barnabas.broker.node.node import Node
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.profile import DEVELOPMENT
from barnabas.broker.share.share_partition import SharePartition
from barnabas.coordinator.share_state.shard import ShareStateShard
from barnabas.model import errors
from barnabas.model.ids import Uuid
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import simulated_world
from barnabas.transport.channel import Channel, PeerGone
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from barnabas.wire.messages.share_fetch import ShareFetchRequest
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.wire.records import encode_batch
from barnabas.world.memory import MemoryDisk

SEEDS = int(os.environ.get("BARNABAS_SIM_SEEDS", "200")) // 20
ONLY = os.environ.get("BARNABAS_SIM_SEED")
LIVES = 3
ABLATED_SEEDS = 8
MEMBERS = 3
RECORDS = 120
DELIVERIES_MAX = 10
BROKER, PORT, GROUP, TOPIC = "broker", 9092, "g", "t"
ACCEPT, RELEASE = 1, 2
SETTINGS = {
    **DEVELOPMENT,
    "listeners": f"PLAINTEXT://{BROKER}:{PORT}",
    "log.dirs": "/data",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
    "share.coordinator.state.topic.prune.interval.ms": "700",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "1000",
    "group.share.delivery.count.limit": str(DELIVERIES_MAX),
    "replica.high.watermark.checkpoint.interval.ms": "200",
}


class Ledger:
    """What all members of the group know of its records."""

    def __init__(self) -> None:
        self.accepted: set[int] = set()  # acceptance was answered with success
        self.undecided: set[int] = set()  # acceptance was sent, and no answer came
        self.deliveries: Counter[int] = Counter()  # as the members have seen them
        self.highest: Counter[int] = Counter()  # delivery counts as the broker has told them

    def delivered(self, offset: int, count: int) -> None:
        assert offset not in self.accepted, f"{offset} was delivered after it was accepted"
        assert 1 <= count <= DELIVERIES_MAX, f"{offset} was delivered {count} times"
        self.deliveries[offset] += 1
        self.highest[offset] = max(self.highest[offset], count)

    def is_done(self, offset: int) -> bool:
        return offset in self.accepted or offset in self.undecided or self.highest[offset] >= DELIVERIES_MAX


class Story:
    def __init__(self, seed: int) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.loop = loop
        self.chance = Random(f"share/{seed}")
        self.world = simulated_world(loop, seed)
        assert isinstance(self.world.disk, MemoryDisk)
        self.disk = self.world.disk
        self.disk.make_directory("/data")
        self.disk.sync_all()
        self.ledger = Ledger()
        self.topic_id = Uuid(bytes(16))

    async def start(self) -> None:
        self.node = Node(self.world, BrokerSettings.of(SETTINGS))
        await self.loop.start_on(BROKER, self.node.start())

    async def end(self) -> None:
        if self.chance.random() < 0.25:
            await self.loop.start_on(BROKER, self.node.stop())
        self.loop.network.kill(BROKER)
        self.disk.kill()

    async def prepare(self) -> None:
        channel = await Channel.connect(BROKER, PORT, client_id="test")
        topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        answer: Any = await channel.send(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
        self.topic_id = Uuid(answer.topics[0].topic_id)
        config = IncrementalAlterConfigsRequest.AlterableConfig(name="share.auto.offset.reset", value="earliest")
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=32, resource_name=GROUP, configs=[config]
        )
        await channel.send(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        await channel.send(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 6)
        at = 0
        while at < RECORDS:
            count = min(self.chance.choice((1, 3, 10)), RECORDS - at)
            batch = encode_batch([(1000, None, b"%d" % number, ()) for number in range(at, at + count)])
            row = ProduceRequest.PartitionProduceData(index=0, records=batch)
            data = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[row])
            await channel.send(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 9)
            at += count
        channel.close()

    async def member(self, name: str) -> None:
        """Acquire records and say something about them, until the broker is gone."""
        channel = await Channel.connect(BROKER, PORT, client_id=name)
        try:
            beat = ShareGroupHeartbeatRequest(
                group_id=GROUP, member_id=name, member_epoch=0, subscribed_topic_names=[TOPIC]
            )
            while True:
                answer: Any = await channel.send(beat, 1)
                if not answer.error_code:
                    break
                await asyncio.sleep(0.05)
            epoch = 0
            while channel.is_open:
                epoch = await self.turn(channel, name, epoch)
                if self.chance.random() < 0.1:
                    return  # without a word
        except PeerGone:
            pass
        finally:
            channel.close()

    async def turn(self, channel: Channel, name: str, epoch: int) -> int:
        """One fetch and what becomes of its records; the next epoch of the session."""
        row = ShareFetchRequest.FetchPartition(partition_index=0)
        answer: Any = await channel.send(
            ShareFetchRequest(
                group_id=GROUP,
                member_id=name,
                share_session_epoch=epoch,
                max_wait_ms=200,
                max_records=self.chance.choice((1, 5, 50)),
                batch_size=10,
                share_acquire_mode=self.chance.randrange(2),
                topics=[ShareFetchRequest.FetchTopic(topic_id=self.topic_id, partitions=[row])],
            ),
            2,
        )
        if answer.error_code:
            assert answer.error_code == errors.SHARE_SESSION_NOT_FOUND.code, errors.error_of(answer.error_code)
            return 0
        epoch += 1
        acquired = [each for topic in answer.responses for part in topic.partitions for each in part.acquired_records]
        for each in acquired:
            for offset in range(each.first_offset, each.last_offset + 1):
                self.ledger.delivered(offset, each.delivery_count)
        if not acquired or self.chance.random() < 0.1:
            return epoch  # its locks expire
        await asyncio.sleep(self.chance.choice((0, 0.01, 0.3)))
        return await self.acknowledge(channel, name, epoch, acquired)

    async def acknowledge(self, channel: Channel, name: str, epoch: int, acquired: list[Any]) -> int:
        accepted: set[int] = set()
        batches = []
        for each in acquired:
            kind = ACCEPT if self.chance.random() < 0.7 else RELEASE
            if kind == ACCEPT:
                accepted |= set(range(each.first_offset, each.last_offset + 1))
            batches.append(
                ShareAcknowledgeRequest.AcknowledgementBatch(
                    first_offset=each.first_offset, last_offset=each.last_offset, acknowledge_types=[kind]
                )
            )
        part = ShareAcknowledgeRequest.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        topic = ShareAcknowledgeRequest.AcknowledgeTopic(topic_id=self.topic_id, partitions=[part])
        request = ShareAcknowledgeRequest(group_id=GROUP, member_id=name, share_session_epoch=epoch, topics=[topic])
        try:
            answer: Any = await channel.send(request, 2)
        except PeerGone:
            self.ledger.undecided |= accepted
            raise
        code = answer.error_code or answer.responses[0].partitions[0].error_code
        if code == 0:
            self.ledger.accepted |= accepted
        elif code != errors.INVALID_RECORD_STATE.code:
            self.ledger.undecided |= accepted  # it may have been written all the same
        return epoch + 1

    async def finish(self) -> None:
        """Members with patience: in the end nothing is left."""
        deadline = self.loop.time() + 120
        number = 0
        while not all(self.ledger.is_done(offset) for offset in range(RECORDS)):
            left = [offset for offset in range(RECORDS) if not self.ledger.is_done(offset)]
            assert self.loop.time() < deadline, f"{left} were not accepted: {[self.ledger.highest[o] for o in left]}"
            number += 1
            await asyncio.wait_for(self.member(f"last-{number}"), 200)


async def tell(seed: int) -> None:
    story = Story(seed)
    await story.start()
    await story.prepare()
    for life in range(LIVES):
        members = [asyncio.ensure_future(story.member(f"m{life}-{number}")) for number in range(MEMBERS)]
        await asyncio.sleep(story.chance.uniform(0.2, 3))
        await story.end()
        await asyncio.gather(*members)
        await story.start()
    await story.finish()
    await story.loop.start_on(BROKER, story.node.stop())


@pytest.mark.parametrize("seed", [int(ONLY)] if ONLY else range(max(1, SEEDS)))
def test_no_accepted_record_comes_again_and_none_is_lost(seed: int) -> None:
    simulate(lambda: tell(seed), seed=seed)


def is_caught() -> bool:
    """Whether one of some stories fails."""
    for seed in range(ABLATED_SEEDS):
        try:
            simulate(lambda seed=seed: tell(seed), seed=seed)  # type: ignore[misc]
        except AssertionError:
            return True
    return False


def test_a_coordinator_that_answers_without_writing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShareStateShard, "_change", lambda self, effects, write, state, now_ms: effects)
    assert is_caught()


def test_a_lock_that_two_members_get_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = SharePartition.complete

    def forgetful(self: SharePartition, change: Any, **more: Any) -> Any:
        return original(self, change, **{**more, "is_written": False})

    monkeypatch.setattr(SharePartition, "complete", forgetful)
    assert is_caught()
