"""Finding by time agrees with looking at every record."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from barnabas.storage.settings import TopicSettings
from barnabas.storage.timestamps import time_of_record
from barnabas.wire.compression import Codec
from barnabas.wire.records import encode_batch

if TYPE_CHECKING:
    from .conftest import Machine


def test_an_empty_log_has_no_times(machine: Machine) -> None:
    assert machine.log.offset_for_time(0) is None
    assert machine.log.offset_of_max_timestamp() is None


@pytest.mark.parametrize("seed", range(10))
def test_the_first_record_that_is_young_enough_is_found(new_machine: Callable[..., Machine], seed: int) -> None:
    chance = random.Random(seed)
    machine = new_machine(segment_bytes=700, index_interval_bytes=150)
    machine.open()
    now = machine.clock.now_ms
    moment = now - 10_000
    for _ in range(60):
        moment += chance.randrange(-40, 120)
        times = [moment + chance.randrange(-30, 30) for _ in range(chance.randrange(1, 4))]
        machine.append_batch(
            encode_batch([(time, b"k", b"v", ()) for time in times], codec=chance.choice([Codec.NONE, Codec.LZ4])),
            leader_epoch=3,
        )
    if seed % 2:
        machine.restart()
    records = machine.read_all()
    if seed % 3 == 0:
        machine.log.advance_high_watermark(len(records))
        machine.log.delete_records(20)
        records = records[20:]
    youngest = max(record.timestamp for record in records)
    for wanted in range(now - 10_200, youngest + 3, 37):
        naive = next((record for record in records if record.timestamp >= wanted), None)
        found = machine.log.offset_for_time(wanted)
        if naive is None:
            assert found is None
        else:
            assert found is not None
            # Kafka looks for the first segment that is young enough, so an older record may be passed over only if
            # an earlier segment holds none: the answer is exactly the first.
            assert (found.offset, found.timestamp, found.leader_epoch) == (naive.offset, naive.timestamp, 3)
    found = machine.log.offset_of_max_timestamp()
    assert found is not None
    if seed % 3:
        first = next(record for record in records if record.timestamp == youngest)
        assert (found.offset, found.timestamp) == (first.offset, youngest)


def test_with_append_time_a_batch_is_found_at_its_first_record(machine: Machine) -> None:
    machine.log.settings = TopicSettings(message_timestamp_type="LogAppendTime")
    machine.append(b"a", b"b", timestamp=5)
    found = machine.log.offset_for_time(machine.clock.now_ms)
    assert found is not None
    assert (found.offset, found.timestamp) == (0, machine.clock.now_ms)


@pytest.mark.parametrize("seed", range(10))
def test_the_time_of_the_next_record_is_found(new_machine: Callable[..., Machine], seed: int) -> None:
    chance = random.Random(seed)
    machine = new_machine(segment_bytes=700, index_interval_bytes=150)
    machine.open()
    for _ in range(40):
        times = [machine.clock.now_ms + chance.randrange(10_000) for _ in range(chance.randrange(1, 4))]
        codec = chance.choice([Codec.NONE, Codec.LZ4])
        machine.append_batch(encode_batch([(time, b"k", b"v", ()) for time in times], codec=codec), leader_epoch=3)
    for record in machine.read_all():
        segments = machine.log.segments.from_offset(record.offset)
        assert time_of_record(segments, record.offset) == record.timestamp
    end = machine.log.end_offset
    assert time_of_record(machine.log.segments.from_offset(end), end) is None
