"""The power fails at any write, rename or removal while a log moves between two disks and is written, cut and synced.

As in ``test_storage_power_cut``, but what was not synced is lost on each of the two disks by itself. Afterwards there
is one log, it is sound, and nothing that was synced is gone, wherever it was when that was promised.
``BARNABAS_MOVE_SEEDS=n`` tries more seeds, ``BARNABAS_SIM_SEED=n`` one of them (see ``seeds``).
"""

from __future__ import annotations

import asyncio
import os
from random import Random
from typing import Any

import pytest
from power_cutting import HOST, CuttingDisk, Told, tell, whole
from seeds import fresh_seeds

from barnabas.metadata.partition_image import PartitionImage
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.replication.log_moves import LogMoves
from barnabas.replication.partition import Partition
from barnabas.replication.replicas import Replicas
from barnabas.storage.doomed import DELETE_SUFFIX, FUTURE_SUFFIX
from barnabas.storage.future_logs import FutureLogs
from barnabas.storage.settings import TopicSettings
from barnabas.storage.store import LogStore
from barnabas.storage.validate import Rules, validate
from barnabas.testing.loop import SimulatedLoop
from barnabas.testing.world import SeededEntropy, simulated_world
from barnabas.wire.records import encode_batch
from barnabas.world.timers import Timers
from barnabas.world.world import World

SEEDS = int(os.environ.get("BARNABAS_MOVE_SEEDS", "12"))
LIVES = 4
HOMES = ("/a", "/b")
TOPIC_ID, DIRECTORY_ID = Uuid(bytes(range(16))), Uuid(bytes(range(1, 17)))
PLAIN = TopicPartition("plain", 0)
SETTINGS = TopicSettings(segment_bytes=1200, index_interval_bytes=200, retention_ms=-1, file_delete_delay_ms=30)


class TwoDisks(CuttingDisk):
    """The power fails for both, and each has its own order in which names reach the device."""

    left_after_step: int | None = None  # of a move: so many changes after a log or its copy gets another name

    def rename(self, source: str, target: str) -> None:
        is_step = source.endswith(FUTURE_SUFFIX) or target.endswith(DELETE_SUFFIX)
        if is_step and self.left is not None and self.left_after_step is not None:
            self.left, self.left_after_step = self.left_after_step, None
        super().rename(source, target)

    def crash(self, entropy: Any) -> None:
        mounts: dict[str, list[Any]] = {home: [] for home in HOMES}
        rest = []
        for change in self._pending:
            home = next((each for each in HOMES if id(change[0][0]) in self._inside(each)), None)
            (rest if home is None else mounts[home]).append(change)
        self._pending = rest
        for pending in mounts.values():
            self._pending += pending[: entropy.below(len(pending) + 1)]
        self.sync_names()
        super().crash(entropy)

    def _inside(self, home: str) -> set[int]:
        seen: set[int] = set()
        waiting = [self._find(home)]
        while waiting:
            node = waiting.pop()
            if hasattr(node, "entries") and id(node) not in seen:
                seen.add(id(node))
                waiting += [*node.entries.values(), *node.durable.values()]  # type: ignore[union-attr]
        return seen

    def sync_names(self) -> None:
        for change in self._pending:
            for directory, name, node in change:
                if node is None:
                    directory.durable.pop(name, None)
                else:
                    directory.durable[name] = node
        self._pending.clear()


class Story:
    cuts_after_step: tuple[int, ...] = (1, 3, 9)

    def __init__(self, seed: int) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.loop = loop
        self.chance = Random(f"move/{seed}")
        self.entropy = SeededEntropy(Random(f"cut/{seed}"))
        simulated = simulated_world(loop, seed)
        self.disk = TwoDisks(simulated.clock)
        self.world = World(clock=simulated.clock, disk=self.disk, entropy=simulated.entropy, workers=simulated.workers)
        for home in HOMES:
            self.disk.make_directory(home)
        self.disk.sync_all()
        self.disk.sync_delay_ms = self.chance.choice((0, 1, 7))
        self.told = Told()
        self.life = 0
        self.moves = self.cuts = 0

    async def open(self, timers: Timers) -> LogStore:
        return await LogStore.open(
            self.world,
            timers,
            HOMES,
            node_id=1,
            cluster_id="cluster",
            defaults=SETTINGS,
            settings_of=lambda topic: SETTINGS,
        )

    async def live(self) -> None:
        timers = Timers(self.world.clock)
        self.store = await self.open(timers)
        log = await self.store.create(PLAIN, TOPIC_ID, SETTINGS)
        replicas = Replicas(broker_id=1, store=self.store, settings_of=lambda image, topic: SETTINGS)
        image = PartitionImage((1,), (DIRECTORY_ID,), (1,), leader=1, leader_epoch=self.life)
        self.partition = Partition(broker_id=1, log=log, topic_id=TOPIC_ID, image=image)
        replicas.by_name["plain", 0] = self.partition
        self.mover = LogMoves(
            replicas, self.store, clock=self.world.clock, timers=timers, bytes_per_second=lambda: 1 << 40
        )
        self.mover.resume(self.moved)
        await asyncio.gather(self.write(), self.flush(), self.move(), self.chores())

    def moved(self, partition: Partition) -> None:
        self.moves += 1

    async def write(self) -> None:
        while True:
            if self.chance.random() < 0.03:
                self.delete()
            if self.chance.random() < 0.03:
                self.cut()
                await self.store.checkpoint()  # which the store does at once by itself, but waits for nobody
            for _ in range(self.chance.randrange(1, 4)):
                self.append()
            await asyncio.sleep(self.chance.choice((0, 0.001, 0.01)))

    def append(self) -> None:
        log, now_ms = self.partition.log, self.world.clock.wall_ms()
        values = [self.chance.randbytes(self.chance.choice((3, 60, 200))) for _ in range(self.chance.randrange(1, 4))]
        batch = encode_batch([(now_ms, b"k", value, ()) for value in values])
        validated = validate(batch, Rules.of(log.settings), now_ms=now_ms)
        at = log.append_as_leader(validated, leader_epoch=self.epoch, now_ms=now_ms).base_offset
        log.advance_high_watermark(log.end_offset)
        if not self.disk.cut.is_set():
            self.told.records |= {at + index: (b"k", value) for index, value in enumerate(values)}

    @property
    def epoch(self) -> int:
        return self.partition.log.latest_epoch if self.partition.log.latest_epoch >= self.life else self.life

    def cut(self) -> None:
        """As a follower does whose leader has another history; what follows is of a newer epoch."""
        log = self.partition.log
        offset = self.chance.randrange(log.log_start_offset, log.end_offset + 1)
        offset = min([offset, *(base for base, last in self.batches if base <= offset <= last)])
        if not self.disk.cut.is_set():
            self.told.forget_from(offset)
            self.told.synced_end = min(self.told.synced_end, offset)
        self.cuts += 1
        log.truncate_to(offset)
        log.begin_epoch(log.latest_epoch + 1, log.end_offset)

    def delete(self) -> None:
        """As DeleteRecords does; whether they stay away after a power cut is another promise."""
        log = self.partition.log
        start = self.chance.randrange(log.log_start_offset, log.high_watermark + 1)
        if not self.disk.cut.is_set():
            self.told.records = {offset: each for offset, each in self.told.records.items() if offset >= start}
        log.delete_records(start)
        log.retain(self.world.clock.wall_ms())

    @property
    def batches(self) -> list[tuple[int, int]]:
        segments = self.partition.log.segments.all()
        return [(header.base_offset, header.last_offset) for each in segments for _, header in each.headers()]

    async def flush(self) -> None:
        while True:
            await asyncio.sleep(self.chance.choice((0.001, 0.02, 0.05)))
            cuts, end = self.cuts, self.partition.log.end_offset
            await self.partition.log.flush()
            if not self.disk.cut.is_set() and self.cuts == cuts:
                self.told.synced_end = max(self.told.synced_end, end)

    async def move(self) -> None:
        while True:
            await asyncio.sleep(self.chance.choice((0, 0.01, 0.05)))
            try:
                await self.mover.move(PLAIN, self.chance.choice(HOMES))
            except ApiError as error:
                raise AssertionError(f"the move is refused: {error}") from error

    async def chores(self) -> None:
        while True:
            await asyncio.sleep(self.chance.choice((0.005, 0.03)))
            await self.store.checkpoint()

    async def run(self) -> None:
        for _ in range(LIVES):
            self.life += 1000
            self.disk.left = self.chance.randrange(1, 1200)
            self.disk.left_after_step = self.chance.choice((None, *self.cuts_after_step))
            life = self.loop.start_on(HOST, self.live())
            await self.disk.cut.wait()
            self.loop.network.kill(HOST)
            del life
            self.disk.lose_power(self.entropy)
            await self.check()

    async def check(self) -> None:
        store = await self.open(Timers(self.world.clock))
        assert not store.offline
        strays = [f"{home}/{name}" for home in HOMES for name in self.disk.list(home) if name.endswith("-stray")]
        # A log of which nothing was ever promised may vanish under its copy.
        assert not strays or self.told.synced_end == 0, f"{strays} are left"
        for stray in strays:
            self.disk.remove_tree(stray)
        log = store.get(PLAIN)
        if log is None:
            assert self.told.synced_end == 0, "a log that was synced is gone"
            self.told.forget_from(0)
        else:
            assert log.end_offset >= self.told.synced_end, "what was synced is gone"
            found = {record.offset: record for record in whole(log)}
            for offset, record in found.items():
                if offset in self.told.records:
                    told = self.told.records[offset]
                    assert (record.key, record.value) == told or offset >= self.told.synced_end, f"{offset} is another"
            missing = [offset for offset in self.told.records if offset < self.told.synced_end and offset not in found]
            assert not missing, f"offsets {missing[:5]} were synced and are gone"
            self.told.forget_from(log.end_offset)
            self.told.records = {offset: (b"k", found[offset].value) for offset in self.told.records}
        await store.close(clean=False)
        self.disk.kill()


def run(seed: int) -> int:
    async def main() -> int:
        story = Story(seed)
        await story.run()
        return story.moves

    return tell(seed, main)


def test_a_log_that_moves_is_never_lost_nor_doubled() -> None:
    seeds = fresh_seeds(21, SEEDS)
    moves = sum(run(seed) for seed in seeds)
    if len(seeds) > 1:
        print(f"{SEEDS} seeds, {SEEDS * LIVES} power cuts, {moves} moves")
        assert moves > SEEDS // 2


def test_the_simulation_sees_a_copy_that_a_start_does_not_take_for_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(self: FutureLogs, homes: object) -> None: ...

    monkeypatch.setattr(FutureLogs, "finish", nothing)
    monkeypatch.setattr(Story, "cuts_after_step", (1, 2))
    with pytest.raises(AssertionError, match="BARNABAS_SIM_SEED"):
        sum(run(seed) for seed in range(100))
