"""A broker killed or stopped at any moment, from seeds: no offset that a group has committed is lost or goes back.

Groups commit rising offsets, some with several requests on their way, some in a hurry to look what is committed; the
cleaner runs over their topic meanwhile. ``BARNABAS_SIM_SEEDS`` says how many stories are told, ``BARNABAS_SIM_SEED``
which one.
"""

from __future__ import annotations

import asyncio
import os
from random import Random

import pytest

from barnabas.broker.node.node import Node
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.profile import DEVELOPMENT
from barnabas.model import errors
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import simulated_world
from barnabas.transport.channel import Channel, PeerGone
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.world.memory import MemoryDisk

SEEDS = int(os.environ.get("BARNABAS_SIM_SEEDS", "200")) // 20
ONLY = os.environ.get("BARNABAS_SIM_SEED")
LIVES = 3
GROUPS = 3
IN_FLIGHT_MAX = 3
NOTE_BYTES_MAX = 16_000  # so that segments roll, and the cleaner has something to do
BROKER = "broker"
PORT = 9092
TOPIC = "t"
SETTINGS = {
    **DEVELOPMENT,
    "listeners": f"PLAINTEXT://{BROKER}:{PORT}",
    "log.dirs": "/data",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.segment.bytes": str(1 << 20),
    "offset.metadata.max.bytes": str(NOTE_BYTES_MAX),
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "replica.high.watermark.checkpoint.interval.ms": "200",
}
PASSING = (errors.COORDINATOR_LOAD_IN_PROGRESS.code, errors.NOT_COORDINATOR.code, errors.COORDINATOR_NOT_AVAILABLE.code)


class Ledger:
    """What one group knows of its offset."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.sent = -1
        self.known = -1  # confirmed, or seen: it must never be less again

    def saw(self, offset: int) -> None:
        assert offset <= self.sent, f"{self.group_id} is at {offset}, which nobody committed"
        assert offset >= self.known, f"{self.group_id} went back from {self.known} to {offset}"
        self.known = offset


class Story:
    def __init__(self, seed: int, *, loses_power: bool = False) -> None:
        self.loses_power = loses_power
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.loop = loop
        self.chance = Random(f"groups/{seed}")
        self.world = simulated_world(loop, seed)
        assert isinstance(self.world.disk, MemoryDisk)
        self.disk = self.world.disk
        self.disk.make_directory("/data")
        self.disk.sync_all()
        self.ledgers = [Ledger(f"group-{number}") for number in range(GROUPS)]

    async def start(self) -> None:
        self.node = Node(self.world, BrokerSettings.of(SETTINGS))
        await self.loop.start_on(BROKER, self.node.start())

    async def end(self) -> None:
        if self.chance.random() < 0.25:
            await self.loop.start_on(BROKER, self.node.stop())
        self.loop.network.kill(BROKER)
        if self.loses_power:
            self.disk.crash(self.world.entropy)
        else:
            self.disk.kill()

    async def prepare(self) -> None:
        channel = await Channel.connect(BROKER, PORT, client_id="test")
        topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        await channel.send(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
        await channel.send(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6)
        channel.close()

    async def live(self, ledger: Ledger) -> None:
        """Commit and look, until the broker is gone."""
        channel = await Channel.connect(BROKER, PORT, client_id="test")
        waiting: set[asyncio.Task[None]] = set()
        try:
            while channel.is_open:
                if len(waiting) < IN_FLIGHT_MAX:
                    ledger.sent += 1
                    task = asyncio.ensure_future(self._commit(channel, ledger, ledger.sent))
                    waiting.add(task)
                    task.add_done_callback(waiting.discard)
                if self.chance.random() < 0.2:
                    await self.look(channel, ledger)
                await asyncio.sleep(self.chance.uniform(0, 0.02))
        except PeerGone:
            pass
        finally:
            await asyncio.gather(*waiting)

    async def _commit(self, channel: Channel, ledger: Ledger, offset: int) -> None:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata="." * self.chance.randrange(NOTE_BYTES_MAX)
        )
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
        try:
            answer = await channel.send(OffsetCommitRequest(group_id=ledger.group_id, topics=[topic]), 9)
        except PeerGone:
            return
        code = answer.topics[0].partitions[0].error_code
        assert code in (0, *PASSING), errors.error_of(code)
        if code == 0:
            ledger.known = max(ledger.known, offset)

    async def look(self, channel: Channel, ledger: Ledger) -> bool:
        """Whether the coordinator was ready to say."""
        topic = OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=ledger.group_id, topics=[topic])
        answer = await channel.send(OffsetFetchRequest(groups=[group]), 9)
        row = answer.groups[0]
        assert row.error_code in (0, *PASSING), errors.error_of(row.error_code)
        if row.error_code == 0:
            ledger.saw(row.topics[0].partitions[0].committed_offset)
        return row.error_code == 0

    async def check(self) -> None:
        channel = await Channel.connect(BROKER, PORT, client_id="test")
        for ledger in self.ledgers:
            while not await self.look(channel, ledger):
                await asyncio.sleep(0.01)
        channel.close()

    async def run(self) -> None:
        await self.start()
        await self.prepare()
        for _ in range(LIVES):
            load = asyncio.gather(*map(self.live, self.ledgers))
            await asyncio.sleep(self.chance.uniform(0.05, 1.0))
            await self.end()
            await load
            await self.start()
            await self.check()
        await self.end()


def test_no_committed_offset_is_lost_or_goes_back_whenever_the_broker_is_killed() -> None:
    async def main(seed: int) -> None:
        await Story(seed).run()

    for seed in [int(ONLY)] if ONLY else range(SEEDS):
        try:
            simulate(lambda seed=seed: main(seed), seed=seed)  # type: ignore[misc]
        except AssertionError as error:
            raise AssertionError(f"BARNABAS_SIM_SEED={seed}: {error}") from error


def test_the_simulation_can_see_an_offset_that_is_lost() -> None:
    """What is not synced is lost with the machine's power: some seed must show it."""

    async def main(seed: int) -> None:
        await Story(seed, loses_power=True).run()

    def run_all() -> None:
        for seed in range(20):
            simulate(lambda seed=seed: main(seed), seed=seed)  # type: ignore[misc]

    with pytest.raises(AssertionError, match="went back"):
        run_all()
