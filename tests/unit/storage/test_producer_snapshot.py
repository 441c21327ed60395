"""Snapshots hold the last batches of each producer and are found out when they are torn."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c

from barnabas.model.errors import Malformed
from barnabas.storage.producer_snapshot import ProducerSnapshots, decode_snapshot, encode_snapshot
from barnabas.storage.producers import AppendedBatch, Producer
from barnabas.world.memory import MemoryDisk
from barnabas.world.real import RealClock


def producer(producer_id: int = 7) -> Producer:
    made = Producer(producer_id)
    made.epoch, made.coordinator_epoch, made.last_timestamp, made.transaction_first_offset = 2, 3, 1234, 40
    made.batches.append(AppendedBatch(8, 48, 1, 1200))
    made.batches.append(AppendedBatch(9, 50, 0, 1234))
    return made


def snapshots(*offsets: int) -> ProducerSnapshots:
    disk = MemoryDisk(RealClock())
    disk.make_directory("/log")
    made = ProducerSnapshots(disk, "/log")
    for offset in offsets:
        made.take([producer(offset)], offset)
    return made


def test_the_last_batches_come_back() -> None:
    (read,) = decode_snapshot(encode_snapshot([producer()]))
    assert list(read.batches) == [AppendedBatch(8, 48, 1, 1200), AppendedBatch(9, 50, 0, 1234)]
    assert read.last_sequence == 9
    assert (read.producer_id, read.epoch, read.coordinator_epoch, read.last_timestamp) == (7, 2, 3, 1234)
    assert read.transaction_first_offset == 40


def test_the_window_of_every_producer_comes_back() -> None:
    made = []
    for number in range(10):
        each = Producer(number)
        each.last_timestamp = 5
        for sequence in range(number):
            each.batches.append(AppendedBatch(sequence, 100 + sequence, 0, 5))
        made.append(each)
    read = decode_snapshot(encode_snapshot(made))
    assert [each.batches for each in read] == [each.batches for each in made]


def test_what_kafka_wrote_has_only_the_last_batch() -> None:
    body = struct.pack(">iqhiqiqiq", 1, 7, 2, 9, 50, 0, 1234, 3, -1)
    (read,) = decode_snapshot(struct.pack(">hI", 1, crc32c(body)) + body)
    assert list(read.batches) == [AppendedBatch(9, 50, 0, 1234)]


@pytest.mark.parametrize(
    "earlier",
    [
        b"something else",
        b"earlier\x01" + bytes(5),
        b"earlier\x01" + struct.pack(">qb", 7, 0),
        b"earlier\x01" + struct.pack(">qb", 7, -1),
        b"earlier\x01" + struct.pack(">qb", 7, 5) + bytes(5 * 24),
        b"earlier\x01" + struct.pack(">qb", 7, 2) + bytes(24),
    ],
)
def test_an_end_that_makes_no_sense_is_refused_though_its_checksum_is_right(earlier: bytes) -> None:
    body = struct.pack(">iqhiqiqiq", 1, 7, 2, 9, 50, 0, 1234, 3, -1) + earlier
    with pytest.raises(Malformed):
        decode_snapshot(struct.pack(">hI", 1, crc32c(body)) + body)


def test_a_producer_without_batches_comes_back_without() -> None:
    (read,) = decode_snapshot(encode_snapshot([Producer(9)]))
    assert not read.batches
    assert read.transaction_first_offset == -1


def test_every_torn_or_changed_snapshot_is_refused() -> None:
    content = encode_snapshot([producer(), producer(8)])
    for size in range(len(content)):
        with pytest.raises(Malformed):
            decode_snapshot(content[:size])
    for position in range(len(content)):
        with pytest.raises(Malformed):
            decode_snapshot(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])


def test_the_newest_readable_snapshot_is_loaded() -> None:
    made = snapshots(10, 20, 30)
    file = made._disk.open(made.path(20))
    file.truncate(9)
    loaded = made.load(offset_max=25)
    assert loaded is not None
    assert loaded[1] == 10
    assert made.offsets == [10, 30]
    assert not made._disk.exists(made.path(20))


def test_snapshots_out_of_the_log_are_removed() -> None:
    made = snapshots(10, 20, 30, 40)
    made.keep_between(10, 30)
    assert made.offsets == [20, 30]


def test_strays_go_but_the_one_of_the_last_shutdown_stays() -> None:
    made = snapshots(10, 15, 20, 25)
    made.remove_strays([0, 10, 20])
    assert made.offsets == [10, 20, 25]
    made.remove_strays([0, 10, 30])
    assert made.offsets == [10]
