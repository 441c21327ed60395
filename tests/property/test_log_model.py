"""A log against a list of records: whatever is done to it, and however often the power fails, they agree.

The model knows which records were flushed. After a crash the log must be a prefix of the model that holds all of them;
from then on the model is cut to what is left.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, NamedTuple

import pytest
from hand_clock import HandClock
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.storage.log import PartitionLog
from barnabas.storage.settings import TopicSettings
from barnabas.storage.validate import Rules, validate
from barnabas.testing.world import InlineWorkers, SeededEntropy
from barnabas.wire.compression import Codec
from barnabas.wire.records import decode_all, encode_batch
from barnabas.world.memory import MemoryDisk
from barnabas.world.world import World

START_MS = 1_700_000_000_000
DIRECTORY = "/data/model-0"
SETTINGS = TopicSettings(
    segment_bytes=900, index_interval_bytes=120, retention_bytes=2500, message_timestamp_after_max_ms=10**12
)


class Expected(NamedTuple):
    timestamp: int
    value: bytes
    batch_start: int


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.disk = MemoryDisk(HandClock(START_MS))
        self.disk.make_directory("/data")
        self.disk.sync_all()
        self.world = World(
            clock=HandClock(START_MS),
            disk=self.disk,
            entropy=SeededEntropy(random.Random(1)),
            workers=InlineWorkers(random.Random(1)),
        )
        self.records: list[Expected] = []
        self.start_offset = 0
        self.durable_offset = 0
        self.checkpoint = 0  # what a checkpoint file says
        self.epoch = 0
        self.sequences: dict[int, int] = {}

    @initialize()
    def open_first(self) -> None:
        self.open(was_clean=False)

    def open(self, *, was_clean: bool) -> None:
        opening = PartitionLog.open(
            self.world,
            DIRECTORY,
            TopicPartition("model", 0),
            SETTINGS,
            topic_id=None,
            log_start_offset=self.start_offset,
            recovery_point=min(self.checkpoint, self.start_offset + len(self.records)),
            was_clean=was_clean,
        )
        self.log = asyncio.run(opening)
        self.log.advance_high_watermark(self.log.end_offset)

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.records)

    # --- what is done to it ---------------------------------------------------------------------------------------

    @rule(
        values=st.lists(st.binary(max_size=150), min_size=1, max_size=4),
        times=st.lists(st.integers(-500, 500), min_size=4, max_size=4),
        codec=st.sampled_from([Codec.NONE, Codec.LZ4]),
        producer_id=st.sampled_from([-1, -1, 5, 6]),
    )
    def append(self, values: list[bytes], times: list[int], codec: Codec, producer_id: int) -> None:
        stamps = [START_MS + self.end_offset * 10 + time for time in times]
        sequence = self.sequences.get(producer_id, 0)
        options: dict[str, Any] = {}
        if producer_id >= 0:
            options = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        batch = encode_batch(
            [(stamp, b"k", value, ()) for stamp, value in zip(stamps, values, strict=False)], codec=codec, **options
        )
        repeat = bytes(batch)
        start = self.end_offset
        assert self.write(batch).base_offset == start
        self.records += [Expected(stamp, value, start) for stamp, value in zip(stamps, values, strict=False)]
        if producer_id >= 0:
            self.sequences[producer_id] = sequence + len(values)
            again = self.write(bytearray(repeat))
            assert again.is_duplicate
            assert again.base_offset == start
            assert self.log.end_offset == self.end_offset

    def write(self, batch: bytearray) -> Any:
        rules = Rules.of(SETTINGS)
        appended = self.log.append_as_leader(
            validate(batch, rules, now_ms=START_MS), leader_epoch=self.epoch, now_ms=START_MS
        )
        self.log.advance_high_watermark(self.log.end_offset)
        return appended

    @rule()
    def flush(self) -> None:
        asyncio.run(self.log.flush())
        self.durable_offset = self.end_offset

    @rule()
    def write_checkpoint(self) -> None:
        self.checkpoint = self.log.recovery_checkpoint

    @rule(back=st.integers(0, 12))
    def truncate(self, back: int) -> None:
        """Anywhere: the whole batch goes. The recovery point on disk follows, as the store sees to."""
        offset = max(self.start_offset, self.end_offset - back)
        self.log.truncate_to(offset)
        if offset < self.end_offset:
            offset = max(self.start_offset, self.records[offset - self.start_offset].batch_start)
        del self.records[offset - self.start_offset :]
        self.epoch += 1
        # What was cut may come back after a crash unless the cut is made durable, as a follower does.
        asyncio.run(self.log.flush())
        self.durable_offset = offset
        self.checkpoint = min(self.checkpoint, self.log.recovery_checkpoint)
        self.sequences = {
            producer_id: producer.last_sequence + 1 for producer_id, producer in self.log.producers.by_id.items()
        }

    @rule()
    def retain(self) -> None:
        self.log.retain(START_MS)
        self.move_start(self.log.log_start_offset)

    @precondition(lambda self: self.records)
    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        offset = self.start_offset + int(share * len(self.records))
        self.log.delete_records(offset)
        self.move_start(offset)

    def move_start(self, offset: int) -> None:
        assert offset >= self.start_offset
        del self.records[: offset - self.start_offset]
        self.start_offset = offset
        self.durable_offset = max(self.durable_offset, offset)

    # --- what happens to it ---------------------------------------------------------------------------------------

    @rule()
    def restart(self) -> None:
        asyncio.run(self.log.close())
        self.disk.kill()
        self.durable_offset = self.checkpoint = self.end_offset
        self.open(was_clean=True)
        assert self.log.recovery_point == self.end_offset

    @rule()
    def kill(self) -> None:
        """The process dies: every written byte is there."""
        self.disk.kill()
        self.open(was_clean=False)
        assert self.log.end_offset == self.end_offset

    @rule(seed=st.integers(0, 2**32))
    def crash(self, seed: int) -> None:
        """The power fails: what was flushed is there, and nothing that was never written."""
        self.disk.crash(SeededEntropy(random.Random(seed)))
        self.open(was_clean=False)
        end = self.log.end_offset
        assert self.durable_offset <= end <= max(self.end_offset, self.start_offset)
        del self.records[end - self.start_offset :]
        self.sequences = {
            producer_id: producer.last_sequence + 1 for producer_id, producer in self.log.producers.by_id.items()
        }

    # --- what must always hold ------------------------------------------------------------------------------------

    @invariant()
    def offsets_agree(self) -> None:
        if hasattr(self, "log"):
            assert (self.log.log_start_offset, self.log.end_offset) == (self.start_offset, self.end_offset)
            assert self.log.log_start_offset <= self.log.last_stable_offset <= self.log.end_offset

    @rule(share=st.floats(0, 1), size_bytes_max=st.integers(0, 1500), below=st.integers(0, 10))
    def read(self, share: float, size_bytes_max: int, below: int) -> None:
        offset = self.start_offset + int(share * len(self.records))
        bound = max(self.start_offset, self.end_offset - below)
        found = self.log.read(offset, size_bytes_max=size_bytes_max, end_offset_max=bound, at_least_one=True)
        if found.records is None:
            # Nothing whole lies between the offset and the bound.
            assert offset >= bound or self.batch_end(offset) > bound
            return
        data = found.records.file.read(found.records.position, found.records.size_bytes)
        records = decode_all(data)
        assert records
        assert records[0].offset <= offset <= self.batch_end(records[0].offset) - 1
        for record in records:
            assert record.offset < found.next_offset_bound <= bound
            if record.offset >= self.start_offset:
                expected = self.records[record.offset - self.start_offset]
                assert (record.timestamp, record.value) == (expected.timestamp, expected.value)

    def batch_end(self, offset: int) -> int:
        """Where the batch of an offset ends."""
        at = max(offset, self.start_offset) - self.start_offset
        start = self.records[at].batch_start
        while at < len(self.records) and self.records[at].batch_start == start:
            at += 1
        return self.start_offset + at

    @rule(time=st.integers(-600, 3000))
    def find_by_time(self, time: int) -> None:
        wanted = START_MS + time * 5
        found = self.log.offset_for_time(wanted)
        first = next(
            (offset for offset, each in enumerate(self.records, self.start_offset) if each.timestamp >= wanted), None
        )
        assert (found.offset if found else None) == first

    @rule(distance=st.integers(1, 5))
    def read_outside(self, distance: int) -> None:
        for offset in (self.start_offset - distance, self.end_offset + distance):
            with pytest.raises(ApiError) as raised:
                self.log.read(offset, size_bytes_max=10, end_offset_max=self.end_offset, at_least_one=True)
            assert raised.value.error is errors.OFFSET_OUT_OF_RANGE


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_what_follows_a_cut_to_the_start_of_a_log_survives_a_kill() -> None:
    """The log starts within a batch, is cut back to there, and goes on: a gap that nothing has rotted."""
    log = LogMachine()
    log.open_first()
    log.append(codec=Codec.NONE, producer_id=-1, times=[0] * 4, values=[b"", b""])
    log.delete_records(share=0.5)
    log.truncate(back=1)
    log.append(codec=Codec.NONE, producer_id=-1, times=[0] * 4, values=[b""])
    log.kill()
