"""A broker's two directories, one partition in the first of them, and what moves it: no network, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.metadata.partition_image import PartitionImage
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.replication.log_moves import LogMoves
from barnabas.replication.partition import Partition
from barnabas.replication.replicas import Replicas
from barnabas.storage.log import PartitionLog
from barnabas.storage.settings import TopicSettings
from barnabas.storage.store import LogStore
from barnabas.storage.validate import Origin, Rules, validate
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import simulated_world
from barnabas.wire.records import decode_all, encode_batch
from barnabas.world.memory import MemoryDisk
from barnabas.world.timers import Timers

FIRST, SECOND = "/first", "/second"
TOPIC_ID, DIRECTORY_ID = Uuid(bytes(range(16))), Uuid(bytes(range(1, 17)))
ORDERS = TopicPartition("orders", 0)
SECONDS_MAX = 600


class Moving:
    def __init__(self, **settings: Any) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.world = simulated_world(loop, 1)
        assert isinstance(self.world.disk, MemoryDisk)
        self.disk = self.world.disk
        self.settings = TopicSettings(**{"file_delete_delay_ms": 1000, **settings})
        self.moved_count = 0

    async def start(self) -> Moving:
        self.timers = Timers(self.world.clock)
        self.store = await LogStore.open(
            self.world,
            self.timers,
            (FIRST, SECOND),
            node_id=1,
            cluster_id="cluster",
            defaults=self.settings,
            settings_of=lambda topic: self.settings,
        )
        self.store.prefer(ORDERS, FIRST)
        log = await self.store.create(ORDERS, TOPIC_ID, self.settings)
        self.replicas = Replicas(broker_id=1, store=self.store, settings_of=lambda image, topic: self.settings)
        self.store.on_offline = lambda path, error: self.replicas.directory_failed(path)
        image = PartitionImage((1,), (DIRECTORY_ID,), (1,), leader=1, leader_epoch=0)
        self.partition = Partition(broker_id=1, log=log, topic_id=TOPIC_ID, image=image)
        self.replicas.by_name["orders", 0] = self.partition
        self.moves = LogMoves(
            self.replicas, self.store, clock=self.world.clock, timers=self.timers, bytes_per_second=lambda: 1 << 40
        )
        self.moves.resume(self._moved)
        return self

    def _moved(self, partition: Partition) -> None:
        self.moved_count += 1

    async def die(self) -> None:
        """The process is killed; what it has written is there."""
        await self.moves.stop()
        await self.store.close(clean=False)
        self.timers.close()
        self.disk.kill()

    @property
    def log(self) -> PartitionLog:
        return self.partition.log

    def append(self, value: bytes, *, leader_epoch: int = 0, **options: Any) -> None:
        now_ms = self.world.clock.wall_ms()
        batch = encode_batch([(now_ms, options.pop("key", b"k"), value, ())], **options)
        rules = Rules.of(self.log.settings, origin=Origin.COORDINATOR if "is_control" in options else Origin.CLIENT)
        self.log.append_as_leader(validate(batch, rules, now_ms=now_ms), leader_epoch=leader_epoch, now_ms=now_ms)
        self.log.advance_high_watermark(self.log.end_offset)

    def values(self) -> list[bytes | None]:
        segments = self.log.segments.all()
        records = [record for each in segments for record in decode_all(each.read_batch(0, each.size_bytes))]
        return [record.value for record in records if record.offset >= self.log.log_start_offset]

    async def move(self, path: str = SECOND) -> None:
        await self.moves.move(ORDERS, path)

    async def settled(self) -> None:
        while len(self.moves._tasks):
            await asyncio.sleep(0.001)

    def names(self, path: str, suffix: str = "") -> list[str]:
        return [name for name in self.disk.list(path) if name.startswith("orders-0") and name.endswith(suffix)]


def play(story: Callable[[Moving], Coroutine[Any, Any, None]], **settings: Any) -> None:
    async def main() -> None:
        moving = await Moving(**settings).start()
        await story(moving)
        await moving.die()

    simulate(main, time_s_max=SECONDS_MAX)
