"""Other people's record builders and readers as judges: what they write we read, and the reverse, with every codec."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from aiokafka.record import default_records as aiokafka_records
from kio.records.readers import read_batch as kio_read_batch

from barnabas.wire import batch, records
from barnabas.wire.compression import Codec

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of importlib, for the way it loads its schemas
    from kafka.record import default_records as kafka_python_records

UNPLACED = [
    (
        1_700_000_000_000 + index * 37 % 101,
        None if index % 5 == 0 else b"key-%d" % index,
        None if index % 7 == 0 else bytes([index % 251]) * (index * 13 % 400),
        [("trace", b"%d" % index), ("straße", b"") if index % 2 else ("null", None)] if index % 3 == 0 else [],
    )
    for index in range(900)
]
PEERS = {"kafka-python": kafka_python_records, "aiokafka": aiokafka_records}


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("peer", PEERS)
def test_what_a_peer_builds_is_read(peer: str, codec: Codec) -> None:
    builder = PEERS[peer].DefaultRecordBatchBuilder(
        magic=2,
        compression_type=int(codec),
        is_transactional=True,
        producer_id=123,
        producer_epoch=4,
        base_sequence=56,
        batch_size=1 << 20,
    )
    for offset, (timestamp, key, value, headers) in enumerate(UNPLACED):
        assert builder.append(offset, timestamp, key, value, headers) is not None
    built = bytes(builder.build())
    header = batch.read_header(built)
    assert batch.crc_matches(built, 0, header)
    assert header.codec is codec
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (123, 4, 56)
    assert header.last_sequence == 56 + len(UNPLACED) - 1
    payload = records.payload_of(built, 0, header, size_bytes_max=1 << 20)
    facts = records.check(
        payload, record_count=header.record_count, base_timestamp=header.base_timestamp, keys_required=True
    )
    assert facts.max_timestamp == header.max_timestamp
    assert facts.is_dense
    assert len(facts.keyless) == len(UNPLACED) // 5
    found = records.decode_batch(built)
    assert [(r.timestamp, r.key, r.value, list(r.headers)) for r in found] == UNPLACED
    assert [r.offset for r in found] == list(range(len(UNPLACED)))


def read_by(peer: str, sealed: bytes) -> list[tuple[Any, ...]]:
    found = PEERS[peer].DefaultRecordBatch(sealed)
    assert found.validate_crc()
    return [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in found]


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("peer", PEERS)
def test_what_we_build_is_read_by_a_peer(peer: str, codec: Codec) -> None:
    sealed = records.encode_batch(UNPLACED, base_offset=1_000, codec=codec)
    assert read_by(peer, bytes(sealed)) == [(1_000 + index, *record) for index, record in enumerate(UNPLACED)]


def test_kio_reads_what_we_build_byte_by_byte() -> None:
    sealed = records.encode_batch(UNPLACED, base_offset=5, leader_epoch=3, producer_id=8, producer_epoch=1)
    found, size = kio_read_batch(bytes(sealed), 0)
    header = batch.read_header(sealed)
    assert size == len(sealed)
    assert (found.crc, found.base_offset, found.partition_leader_epoch) == (header.crc, 5, 3)
    assert [(r.offset, r.key, r.value) for r in found.records] == [
        (5 + index, key, value) for index, (_, key, value, _) in enumerate(UNPLACED)
    ]
    assert [[(h.key, h.value) for h in r.headers] for r in found.records] == [
        [(name.encode(), content) for name, content in headers] for _, _, _, headers in UNPLACED
    ]


JAVA_BATCHES = sorted((Path(__file__).parents[2] / "data" / "java-batches").glob("*.bin"))
# What Kafka 4.3.1's MemoryRecordsBuilder was given for each of these files, from offset 42 on.
JAVA_RECORDS = [
    (
        1_700_000_000_000 + index,
        None if index % 5 == 0 else b"key-%d" % index,
        None if index % 7 == 0 else b"value-%d" % index * (index % 9 + 1),
        (("trace", b"x%d" % index), ("ü", None)) if index % 3 == 0 else (),
    )
    for index in range(40)
]


@pytest.mark.parametrize("path", JAVA_BATCHES, ids=lambda path: path.stem)
def test_what_java_built_is_read(path: Path) -> None:
    built = path.read_bytes()
    header = batch.read_header(built)
    assert header.size_bytes == len(built)
    assert header.codec.name.lower() == path.stem.split("-")[0]
    assert batch.crc_matches(built, 0, header)
    found = records.decode_batch(built)
    assert found == [(42 + index, *record) for index, record in enumerate(JAVA_RECORDS)]


def test_java_and_we_build_the_same_bytes_of_the_same_records() -> None:
    (path,) = (path for path in JAVA_BATCHES if path.stem == "none")
    assert records.encode_batch(JAVA_RECORDS, base_offset=42) == path.read_bytes()
