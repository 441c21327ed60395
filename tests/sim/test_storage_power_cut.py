"""The power fails at any write, rename or removal of appends, rolls, retention, compaction and checkpoints, from seeds.

A store of two logs runs with its cleaner and its chores in virtual time; at a number of disk operations drawn by lot
the disk is frozen as it is, and what was not synced is lost as chance has it. Afterwards the logs must be sound, and
nothing that was synced may be gone. ``BARNABAS_CUT_SEEDS=n`` tries more seeds, ``BARNABAS_SIM_SEED=n`` one of them
(see ``seeds``).
"""

from __future__ import annotations

import asyncio
import os
from random import Random
from struct import pack
from typing import Any

import pytest
from power_cutting import HOST, CuttingDisk, Told, tell, whole
from seeds import fresh_seeds

from barnabas.model.ids import TopicPartition
from barnabas.storage.cleaner import Cleaner
from barnabas.storage.cleaner_settings import CleanerSettings
from barnabas.storage.log import PartitionLog
from barnabas.storage.settings import TopicSettings
from barnabas.storage.store import LogStore
from barnabas.storage.validate import Origin, Rules, validate
from barnabas.testing.loop import SimulatedLoop
from barnabas.testing.world import SeededEntropy, simulated_world
from barnabas.wire.records import Record, encode_batch
from barnabas.world.timers import Timers
from barnabas.world.world import World

SEEDS = int(os.environ.get("BARNABAS_CUT_SEEDS", "40"))
LIVES = 3
PLAIN, KEYED = TopicPartition("plain", 0), TopicPartition("keyed", 0)
SETTINGS = {
    "plain": TopicSettings(
        segment_bytes=2000, index_interval_bytes=200, retention_bytes=6000, file_delete_delay_ms=100
    ),
    "keyed": TopicSettings(
        cleanup_policy=("compact",),
        segment_bytes=1500,
        index_interval_bytes=200,
        min_cleanable_dirty_ratio=0.01,
        delete_retention_ms=200,
        file_delete_delay_ms=100,
    ),
}
KEYS = 12


class Story:
    def __init__(self, seed: int) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.loop = loop
        self.chance = Random(f"storage/{seed}")
        self.entropy = SeededEntropy(Random(f"cut/{seed}"))
        simulated = simulated_world(loop, seed)
        self.disk = CuttingDisk(simulated.clock)
        self.world = World(clock=simulated.clock, disk=self.disk, entropy=simulated.entropy, workers=simulated.workers)
        self.disk.make_directory("/data")
        self.disk.sync_all()
        self.disk.sync_delay_ms = self.chance.choice((0, 1, 7))
        self.told = {PLAIN: Told(), KEYED: Told()}
        self.producer_id = 0
        self.life = 0  # a broker that comes back leads in a new epoch
        self.rounds = 0

    # --- one life -------------------------------------------------------------------------------------------------

    async def live(self) -> None:
        timers = Timers(self.world.clock)
        self.store = await self.open(timers)
        for partition in (PLAIN, KEYED):
            await self.store.create(partition, None, SETTINGS[partition.topic])
            self.store.logs[partition].settings = SETTINGS[partition.topic]
        self.cleaner = Cleaner(
            self.world, timers, self.store, settings=lambda: CleanerSettings(backoff_ms=self.chance.choice((1, 30)))
        )
        self.cleaner.start()
        work = [self.write(PLAIN), self.write(KEYED), self.flush(PLAIN), self.flush(KEYED), self.chores()]
        await asyncio.gather(*work)

    async def open(self, timers: Timers) -> LogStore:
        return await LogStore.open(
            self.world,
            timers,
            ["/data"],
            node_id=1,
            cluster_id="cluster",
            defaults=SETTINGS["plain"],
            settings_of=lambda topic: SETTINGS[topic],
        )

    async def write(self, partition: TopicPartition) -> None:
        log, told = self.store.logs[partition], self.told[partition]
        for producer_id in sorted(log.producers.by_id):
            if log.producers.has_open_transaction(producer_id):
                self.end(log, told, producer_id, is_commit=False)
        while True:
            if partition is KEYED and self.chance.random() < 0.3:
                self.producer_id += 1
                producer_id, sequence = self.producer_id, 0
                for _ in range(self.chance.randrange(1, 4)):
                    sequence += self.append(log, told, producer_id=producer_id, base_sequence=sequence)
                    await asyncio.sleep(self.chance.choice((0, 0.002)))
                self.end(log, told, producer_id, is_commit=self.chance.random() < 0.6)
            else:
                self.append(log, told)
            log.advance_high_watermark(log.end_offset)
            await asyncio.sleep(self.chance.choice((0, 0, 0.001, 0.01)))

    def append(self, log: PartitionLog, told: Told, **producer: int) -> int:
        now_ms = self.world.clock.wall_ms()
        records = []
        for _ in range(self.chance.randrange(1, 4)):
            value = None if self.chance.random() < 0.15 else self.chance.randbytes(self.chance.choice((3, 60, 200)))
            records.append((now_ms, b"%d" % self.chance.randrange(KEYS), value, ()))
        more: dict[str, Any] = {**producer, "producer_epoch": 0, "is_transactional": True} if producer else {}
        batch = encode_batch(records, **more)
        validated = validate(batch, Rules.of(log.settings), now_ms=now_ms)
        at = log.append_as_leader(validated, leader_epoch=self.life, now_ms=now_ms).base_offset
        if not self.disk.cut.is_set():
            for index, (_, key, value, _) in enumerate(records):
                told.records[at + index] = key, value
                if producer:
                    told.owners[at + index] = producer["producer_id"]
        return len(records)

    def end(self, log: PartitionLog, told: Told, producer_id: int, *, is_commit: bool) -> None:
        now_ms = self.world.clock.wall_ms()
        marker = encode_batch(
            [(now_ms, pack(">hh", 0, is_commit), pack(">hi", 0, 0), ())],
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=True,
            is_control=True,
        )
        validated = validate(marker, Rules.of(log.settings, origin=Origin.COORDINATOR), now_ms=now_ms)
        at = log.append_as_leader(validated, leader_epoch=self.life, now_ms=now_ms).base_offset
        if not self.disk.cut.is_set():
            told.fates[producer_id] = at, is_commit

    async def flush(self, partition: TopicPartition) -> None:
        log, told = self.store.logs[partition], self.told[partition]
        while True:
            await asyncio.sleep(self.chance.choice((0.001, 0.02, 0.05)))
            end = log.end_offset
            await log.flush()
            if not self.disk.cut.is_set():
                told.synced_end = max(told.synced_end, end)

    async def chores(self) -> None:
        while True:
            await asyncio.sleep(self.chance.choice((0.005, 0.03)))
            await self.chance.choice((self.store.checkpoint, self.store.retain_all))()

    # --- and after ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        for _ in range(LIVES):
            self.life += 1
            self.disk.left = self.chance.randrange(1, 1500)
            life = self.loop.start_on(HOST, self.live())
            await self.disk.cut.wait()
            self.rounds += self.cleaner.rounds_count if hasattr(self, "cleaner") else 0
            self.loop.network.kill(HOST)
            del life
            self.disk.lose_power(self.entropy)
            await self.check()

    async def check(self) -> None:
        """Open it all once more, look at everything, and leave it as a crash would, so that the next life recovers."""
        store = await self.open(Timers(self.world.clock))
        assert not store.offline
        for partition, told in self.told.items():
            log = store.get(partition)
            if log is None:
                assert told.synced_end == 0, "a log that was synced is gone"
                told.forget_from(0)
                continue
            assert log.end_offset >= told.synced_end, "what was synced is gone"
            found = {record.offset: record for record in whole(log)}
            for offset, record in found.items():
                if offset in told.records:
                    assert (record.key, record.value) == told.records[offset], f"offset {offset} is another record"
            if partition is PLAIN:
                missing = [o for o in told.records if log.log_start_offset <= o < told.synced_end and o not in found]
                assert not missing, f"offsets {missing[:5]} were synced and are gone"
            else:
                self.check_keys(told, found, log)
            told.forget_from(log.end_offset)
            if partition is KEYED:
                # A crash between a swap and its checkpoint makes lost records look like compacted ones.
                gone = [offset for offset in told.records if offset >= told.synced_end and offset not in found]
                for offset in gone:
                    del told.records[offset]
        await store.close(clean=False)
        self.disk.kill()

    def check_keys(self, told: Told, found: dict[int, Record], log: PartitionLog) -> None:
        """The last synced and decided value of each key is there, or a later one."""
        aborted = {each.producer_id for each in log.aborted_transactions(log.log_start_offset, log.end_offset)}
        wrongly = [owner for owner in aborted if told.fates.get(owner, (0, False))[1]]
        assert not wrongly, f"committed transactions of {wrongly} are said to be aborted"
        for key in {record[0] for record in told.records.values()}:
            offsets = [
                offset
                for offset, (each, _) in told.records.items()
                if each == key and offset < told.synced_end and self.is_committed(told, offset)
            ]
            if not offsets:
                continue
            last = max(offsets)
            later = [o for o, record in found.items() if record.key == key and o >= last]
            assert later or told.records[last][1] is None, f"the last value of {key!r}, at {last}, is gone"

    def is_committed(self, told: Told, offset: int) -> bool:
        owner = told.owners.get(offset)
        if owner is None:
            return True
        marker, is_commit = told.fates.get(owner, (told.synced_end, False))
        return is_commit and marker < told.synced_end


def run(seed: int) -> int:
    async def main() -> int:
        story = Story(seed)
        await story.run()
        return story.rounds

    return tell(seed, main)


def test_nothing_that_was_synced_is_lost() -> None:
    seeds = fresh_seeds(20, SEEDS)
    rounds = sum(run(seed) for seed in seeds)
    if len(seeds) > 1:
        print(f"{SEEDS} seeds, {SEEDS * LIVES} power cuts, {rounds} rounds of cleaning")
        assert rounds > SEEDS // 2, "the cleaner had its part in it"


def test_the_simulation_sees_a_swap_that_is_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cleaner that renames before its files are on the device is caught."""
    from barnabas.storage.swapping import CleanedSegment

    async def nothing(self: CleanedSegment) -> None:
        self.write_indexes(is_closing=True)

    monkeypatch.setattr(CleanedSegment, "sync", nothing)
    with pytest.raises(AssertionError, match="BARNABAS_SIM_SEED"):
        sum(run(seed) for seed in range(300))
