"""Every rule a batch must satisfy, with the error Kafka answers, and every change the broker makes to it."""

from __future__ import annotations

from struct import pack_into
from typing import Any

import pytest

from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError
from barnabas.storage.settings import TopicSettings
from barnabas.storage.validate import InvalidRecords, Origin, Rules, Validated, needs_worker, validate
from barnabas.wire.batch import HEADER_BYTES, crc_matches, read_header, seal
from barnabas.wire.compression import Codec
from barnabas.wire.records import decode_batch, encode_batch

NOW_MS = 1_700_000_000_000


def batch(*values: bytes, timestamp: int = NOW_MS, key: bytes | None = b"k", **options: Any) -> bytearray:
    return encode_batch([(timestamp, key, value, ()) for value in values or (b"value",)], **options)


def validated(records: Any, *, origin: Origin = Origin.CLIENT, **settings: Any) -> Validated:
    return validate(records, Rules.of(TopicSettings(**settings), origin=origin), now_ms=NOW_MS)


def refused(error: WireError, records: Any, **options: Any) -> ApiError:
    with pytest.raises(ApiError) as raised:
        validated(records, **options)
    assert raised.value.error is error
    return raised.value


def patched(position: int, form: str, value: int, *, is_sealed: bool = True, **options: Any) -> bytearray:
    """A batch with one field of its header changed."""
    made = batch(b"one", b"two", **options)
    pack_into(form, made, position, value)
    if is_sealed:
        seal(made, 0)
    return made


def test_a_good_batch_passes_as_it_is() -> None:
    records = batch(b"one", b"two")
    before = bytes(records)
    result = validated(records)
    assert bytes(result.records) == before
    assert result.records is records
    assert result.max_timestamp == NOW_MS
    assert result.append_time_ms == -1
    assert result.header == read_header(before)


def test_read_only_bytes_become_writable() -> None:
    assert isinstance(validated(bytes(batch())).records, bytearray)
    assert isinstance(validated(memoryview(bytes(batch()))).records, bytearray)
    assert isinstance(validated(memoryview(batch())).records, memoryview)


@pytest.mark.parametrize(
    ("error", "records"),
    [
        (errors.INVALID_RECORD, b""),
        (errors.INVALID_RECORD, b"\0" * 40),
        (errors.INVALID_RECORD, patched(16, ">b", 1)),  # magic
        (errors.CORRUPT_MESSAGE, patched(8, ">i", 10, is_sealed=False)),  # length
        (errors.INVALID_RECORD, batch() + batch()),
        (errors.INVALID_RECORD, batch()[:-1]),
        (errors.CORRUPT_MESSAGE, patched(17, ">I", 1, is_sealed=False)),  # checksum
        (errors.INVALID_RECORD, patched(0, ">q", 5)),  # base offset
        (errors.INVALID_RECORD, patched(23, ">i", 5)),  # last offset delta
        (errors.INVALID_RECORD, patched(57, ">i", 3)),  # count
        (errors.INVALID_RECORD, patched(57, ">i", 0)),
        (errors.INVALID_RECORD, batch(is_control=True)),
        (errors.INVALID_RECORD, batch(producer_id=5, producer_epoch=0, base_sequence=-1)),
        (errors.UNSUPPORTED_COMPRESSION_TYPE, patched(21, ">h", 6)),
        (errors.INVALID_RECORD, patched(21, ">h", Codec.LZ4)),  # says lz4, is plain
        (errors.INVALID_TIMESTAMP, batch(append_time=NOW_MS)),
    ],
)
def test_what_a_client_may_not_send(error: WireError, records: bytes) -> None:
    refused(error, records)


def test_no_byte_of_a_batch_can_be_changed_unnoticed() -> None:
    good = batch(b"some value")
    for position in range(21, len(good)):
        bad = bytearray(good)
        bad[position] ^= 0x10
        with pytest.raises(ApiError):
            validated(bad)


def test_the_size_is_limited_as_it_is_stored() -> None:
    records = batch(b"x" * 1000)
    assert validated(records, max_message_bytes=len(records))
    refused(errors.MESSAGE_TOO_LARGE, records, max_message_bytes=len(records) - 1)
    assert validated(batch(b"x" * 10_000, codec=Codec.ZSTD), max_message_bytes=500)
    assert validated(records, origin=Origin.RAFT, max_message_bytes=10)
    refused(errors.MESSAGE_TOO_LARGE, records, origin=Origin.COORDINATOR, max_message_bytes=10)


def test_the_broker_itself_writes_control_records() -> None:
    assert validated(batch(is_control=True), origin=Origin.COORDINATOR).is_client is False
    assert validated(batch(base_offset=17), origin=Origin.RAFT)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_compacted_topic_needs_keys(codec: Codec) -> None:
    records = encode_batch([(NOW_MS, key, b"v", ()) for key in (b"a", None, b"b", None)], codec=codec)
    error = refused(errors.INVALID_RECORD, records, cleanup_policy=("compact",))
    assert isinstance(error, InvalidRecords)
    assert [index for index, _ in error.record_errors] == [1, 3]
    assert validated(records)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
def test_timestamps_far_from_now_are_refused_one_by_one(codec: Codec) -> None:
    times = (NOW_MS, NOW_MS + 3_600_001, -1, NOW_MS - 10**9, NOW_MS + 3_600_000)
    records = encode_batch([(time, b"k", b"v", ()) for time in times], codec=codec)
    error = refused(errors.INVALID_TIMESTAMP, records)
    assert isinstance(error, InvalidRecords)
    assert [index for index, _ in error.record_errors] == [1]
    error = refused(errors.INVALID_TIMESTAMP, records, message_timestamp_before_max_ms=1000)
    assert isinstance(error, InvalidRecords)
    assert [index for index, _ in error.record_errors] == [1, 3]


def test_log_append_time_is_stamped_on_the_batch() -> None:
    records = batch(b"one", b"two", timestamp=5)
    result = validated(records, message_timestamp_type="LogAppendTime")
    assert result.append_time_ms == result.max_timestamp == NOW_MS
    assert result.header.uses_append_time
    assert crc_matches(result.records, 0, result.header)
    assert [record.timestamp for record in decode_batch(result.records)] == [NOW_MS, NOW_MS]


def test_log_append_time_asks_nothing_of_the_producers_clock() -> None:
    validated(batch(timestamp=NOW_MS + 10**12), message_timestamp_type="LogAppendTime")


def test_a_wrong_largest_timestamp_is_put_right() -> None:
    result = validated(patched(35, ">q", 1))
    assert result.header.max_timestamp == result.max_timestamp == NOW_MS
    assert crc_matches(result.records, 0, result.header)


@pytest.mark.parametrize("source", list(Codec))
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"])
def test_batches_are_stored_in_the_topics_codec(source: Codec, target: str) -> None:
    records = batch(b"one" * 50, b"two" * 50, codec=source, producer_id=3, producer_epoch=1, base_sequence=9)
    before = bytes(records)
    result = validated(records, compression_type=target)
    special = {"producer": source, "uncompressed": Codec.NONE}
    wanted = special[target] if target in special else Codec[target.upper()]
    assert result.header.codec == wanted
    assert (bytes(result.records) == before) == (wanted == source)
    assert decode_batch(result.records) == decode_batch(before)
    assert (result.header.producer_id, result.header.producer_epoch, result.header.base_sequence) == (3, 1, 9)
    assert crc_matches(result.records, 0, result.header)


def test_control_records_are_not_compressed() -> None:
    result = validated(batch(is_control=True), origin=Origin.COORDINATOR, compression_type="zstd")
    assert result.header.codec is Codec.NONE


def test_a_batch_that_grows_too_large_in_the_topics_codec_is_refused() -> None:
    records = batch(b"x" * 10_000, codec=Codec.ZSTD)
    refused(errors.MESSAGE_TOO_LARGE, records, compression_type="uncompressed", max_message_bytes=5000)


def test_offsets_that_are_not_dense_are_put_in_order() -> None:
    records = batch(b"one", b"two", b"three")
    # The second record's offset delta, behind its length, attributes and timestamp delta: 1 becomes 0, a varint.
    at = HEADER_BYTES + (records[HEADER_BYTES] >> 1) + 1 + 3
    assert records[at] == 2
    records[at] = 0
    seal(records, 0)
    result = validated(records)
    assert [record.offset for record in decode_batch(result.records)] == [0, 1, 2]
    assert [record.value for record in decode_batch(result.records)] == [b"one", b"two", b"three"]


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.storage.validate.UNCOMPRESSED_BYTES_MAX", 100_000)
    refused(errors.INVALID_RECORD, batch(bytes(200_000), codec=Codec.ZSTD))


def test_large_compressed_batches_go_to_a_worker() -> None:
    noise = bytes(index * 7919 % 251 for index in range(100_000))
    assert not needs_worker(batch(noise))
    assert not needs_worker(batch(b"small", codec=Codec.GZIP))
    large = batch(*[noise[index:] for index in range(8)], codec=Codec.NONE)
    large[22] |= Codec.LZ4
    assert needs_worker(large)
