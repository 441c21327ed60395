"""A compacted log beside a list of all that was ever written to it, and what a reader must find in it.

What is done to it, and when the power fails, is said by ``test_compaction_model``.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from struct import pack, unpack_from
from typing import Any, NamedTuple

from cuttable_machine import CuttableDisk, PowerCut, PromptWorkers
from hand_clock import HandClock

from barnabas.model.ids import TopicPartition
from barnabas.storage.cleaner import Cleaner
from barnabas.storage.cleaner_settings import CleanerSettings
from barnabas.storage.log import PartitionLog
from barnabas.storage.settings import TopicSettings
from barnabas.storage.store import LogStore
from barnabas.storage.validate import Origin, Rules, validate
from barnabas.testing.world import SeededEntropy
from barnabas.wire.batch import BatchHeader, crc_matches, iterate
from barnabas.wire.compression import Codec
from barnabas.wire.records import Record, decode_batch, encode_batch
from barnabas.world.timers import Timers
from barnabas.world.world import World

START_MS = 1_700_000_000_000
PARTITION = TopicPartition("keyed", 0)
RETENTION_MS = 1000
KEYS = [b"key %d" % number for number in range(14)]


class Written(NamedTuple):
    """A batch as it was written; a marker has no records."""

    base_offset: int
    last_offset: int
    records: tuple[Record, ...]
    producer_id: int
    is_transactional: bool
    marker: bool | None  # of a control batch: whether it commits


def committed(batches: list[Written], *, below: int) -> Iterator[Record]:
    """The records that a reader of committed ones is to see; below the stable offset the fate of all is known."""
    ends = {index: batch.marker for index, batch in enumerate(batches) if batch.marker is not None}
    for index, batch in enumerate(batches):
        if batch.last_offset >= below or batch.marker is not None:
            continue
        if batch.is_transactional:
            end = next(at for at in ends if at > index and batches[at].producer_id == batch.producer_id)
            if not ends[end]:
                continue
        yield from batch.records


class Model:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = HandClock(START_MS)
        self.disk = CuttableDisk(self.clock)
        self.disk.make_directory("/data")
        self.disk.sync_all()
        self.world = World(
            clock=self.clock,
            disk=self.disk,
            entropy=SeededEntropy(random.Random(seed)),
            workers=PromptWorkers(),
        )
        self.settings = TopicSettings(
            cleanup_policy=("compact",),
            segment_bytes=self.chance.choice([500, 900, 2500]),
            index_interval_bytes=100,
            delete_retention_ms=RETENTION_MS,
            min_cleanable_dirty_ratio=0.0,
            file_delete_delay_ms=0,
            message_timestamp_after_max_ms=10**12,
        )
        self.buffer_bytes = self.chance.choice([1 << 20, 1 << 20, 24 * 10])  # ten places: not for all keys
        self.batches: list[Written] = []
        self.sequences: dict[int, int] = {}
        self.open_transactions: set[int] = set()
        self.tombstones_since: dict[int, int] = {}  # by offset, when it was written

    # --- lives ----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        # Files that were to vanish later stay where they are if the power fails first.
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: (
                None if isinstance(context.get("exception"), PowerCut) else loop.default_exception_handler(context)
            )
        )
        self.timers = Timers(self.clock)
        # As the broker does: what the topics are set to is only known after their logs were opened.
        defaults = TopicSettings()
        self.store = await LogStore.open(
            self.world,
            self.timers,
            ["/data"],
            node_id=1,
            cluster_id="c",
            defaults=defaults,
            settings_of=lambda topic: defaults,
        )
        self.log = await self.store.create(PARTITION, None, self.settings)
        self.log.settings = self.settings
        self.log.advance_high_watermark(self.log.end_offset)
        settings = CleanerSettings(dedupe_buffer_bytes=self.buffer_bytes)
        self.cleaner = Cleaner(self.world, self.timers, self.store, settings=lambda: settings)

    def lose_files(self) -> None:
        """What can be made anew from the batches may be gone."""
        directory = "/data/keyed-0"
        if self.chance.random() < 0.5:
            for name in self.disk.list(directory):
                if name.endswith(".snapshot"):
                    self.disk.remove(f"{directory}/{name}")
        if self.chance.random() < 0.3:
            self.disk.remove("/data/recovery-point-offset-checkpoint")
        if self.chance.random() < 0.1:
            self.disk.remove("/data/cleaner-offset-checkpoint")

    def after_crash(self, flushed: int) -> None:
        end = self.log.end_offset
        assert end >= flushed
        self.batches = [batch for batch in self.batches if batch.last_offset < end]
        self.open_transactions = set()
        for batch in self.batches:
            if batch.marker is not None:
                self.open_transactions.discard(batch.producer_id)
            elif batch.is_transactional:
                self.open_transactions.add(batch.producer_id)
        for producer_id in list(self.sequences):
            state = self.log.producers.by_id.get(producer_id)
            written = [each for each in self.batches if each.producer_id == producer_id and each.marker is None]
            if written:
                assert state is not None
                expected = sum(len(each.records) for each in written) - 1
                assert state.last_sequence == expected
                self.sequences[producer_id] = expected + 1
            else:
                self.sequences[producer_id] = 0

    # --- deeds ----------------------------------------------------------------------------------------------------

    def append(self) -> None:
        producer_id = self.chance.choice([-1, -1, 7, 20, 21])
        is_transactional = producer_id >= 20
        records = []
        for _ in range(self.chance.randrange(1, 6)):
            value = None if self.chance.random() < 0.2 else self.chance.randbytes(self.chance.randrange(40))
            headers = (("h", b"x"),) if self.chance.random() < 0.2 else ()
            time = self.clock.now_ms + self.chance.randrange(-50, 50)
            records.append((time, self.chance.choice(KEYS), value, headers))
        facts: dict[str, Any] = {}
        if producer_id >= 0:
            facts = {
                "producer_id": producer_id,
                "producer_epoch": 0,
                "base_sequence": self.sequences.get(producer_id, 0),
                "is_transactional": is_transactional,
            }
            self.sequences[producer_id] = self.sequences.get(producer_id, 0) + len(records)
        batch = encode_batch(records, codec=self.chance.choice([Codec.NONE, Codec.NONE, *Codec]), **facts)
        base = self.write(batch, Origin.CLIENT)
        placed = tuple(Record(base + index, *record) for index, record in enumerate(records))
        self.batches.append(Written(base, base + len(placed) - 1, placed, producer_id, is_transactional, None))
        for record in placed:
            if record.value is None:
                self.tombstones_since[record.offset] = self.clock.now_ms
        if is_transactional:
            self.open_transactions.add(producer_id)

    def end_transaction(self) -> None:
        if not self.open_transactions:
            return
        producer_id = self.chance.choice(sorted(self.open_transactions))
        self.open_transactions.discard(producer_id)
        is_commit = self.chance.random() < 0.6
        marker = encode_batch(
            [(self.clock.now_ms, pack(">hh", 0, is_commit), pack(">hi", 0, 0), ())],
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=True,
            is_control=True,
        )
        base = self.write(marker, Origin.COORDINATOR)
        # The marker has its own epoch's state: a transaction of this epoch goes on numbering.
        self.batches.append(Written(base, base, (), producer_id, True, is_commit))

    def write(self, batch: bytearray, origin: Origin) -> int:
        rules = Rules.of(self.settings, origin=origin)
        validated = validate(batch, rules, now_ms=self.clock.now_ms)
        appended = self.log.append_as_leader(validated, leader_epoch=0, now_ms=self.clock.now_ms)
        self.log.advance_high_watermark(self.log.end_offset)
        return appended.base_offset

    # --- what must hold -------------------------------------------------------------------------------------------

    def raw_batches(self) -> Iterator[tuple[BatchHeader, list[Record]]]:
        offset = self.log.log_start_offset
        while offset < self.log.end_offset:
            read = self.log.read(offset, size_bytes_max=600, end_offset_max=self.log.end_offset, at_least_one=True)
            if read.records is None:
                return
            data = read.records.file.read(read.records.position, read.records.size_bytes)
            start = offset
            for position, header in iterate(data):
                assert crc_matches(data, position, header)
                assert header.last_offset >= offset
                yield header, decode_batch(data, position)
                offset = header.next_offset
            assert offset > start

    def check(self) -> None:
        log = self.log
        assert log.end_offset == (self.batches[-1].last_offset + 1 if self.batches else 0)
        written = {record.offset: record for batch in self.batches for record in batch.records}
        stable = log.last_stable_offset
        aborted = sorted(log.aborted_transactions(0, stable), key=lambda each: each.first_offset)
        seen: dict[bytes | None, Record] = {}
        void: set[int] = set()
        previous = -1
        for header, records in self.raw_batches():
            assert header.base_offset > previous
            previous = header.last_offset
            if header.last_offset >= stable:
                for record in records:
                    assert header.is_control or record == written[record.offset]
                continue
            while aborted and aborted[0].first_offset <= header.last_offset:
                void.add(aborted.pop(0).producer_id)
            if header.is_control:
                if records and unpack_from(">hh", records[0].key or b"")[1] == 0:
                    void.discard(header.producer_id)
                continue
            for record in records:
                assert record == written[record.offset]
                if not (header.is_transactional and header.producer_id in void):
                    seen[record.key] = record
        expected = {record.key: record for record in committed(self.batches, below=stable)}
        for key, record in expected.items():
            if record.value is not None:
                assert seen.get(key) == record
            else:
                # A tombstone may be gone after its time; what it has deleted never comes back.
                assert seen.get(key) in (None, record)
                if self.clock.now_ms < self.tombstones_since[record.offset] + RETENTION_MS:
                    assert seen.get(key) == record
        assert set(seen) <= set(expected)
        self.check_indexes(log)

    def check_indexes(self, log: PartitionLog) -> None:
        segments = log.segments.all()
        for segment, following in zip(segments, [*segments[1:], None], strict=True):
            batches = dict(segment.headers())
            for offset, position in zip(segment.offset_index.offsets, segment.offset_index.positions, strict=True):
                assert batches[position].last_offset == segment.base_offset + offset
            times = [header.max_timestamp for header in batches.values() if header.record_count]
            assert segment.max_timestamp == max(times, default=-1)
            if following is not None and batches:
                assert max(header.last_offset for header in batches.values()) < following.base_offset

    def check_clean(self) -> None:
        """Below the point that was cleaned every key is there once."""
        cleaned = self.log.cleaned_offset
        assert cleaned is not None
        keys = [
            record.key
            for header, records in self.raw_batches()
            for record in records
            if not header.is_control and record.offset < cleaned
        ]
        assert len(keys) == len(set(keys))

    async def clean(self) -> bool:
        done = await self.cleaner.clean_dirtiest()
        assert not [name for name in self.disk.list("/data/keyed-0") if name.endswith((".cleaned", ".swap"))]
        return done
