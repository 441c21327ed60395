"""Bad input over live sockets: the error that Kafka gives or a closed connection, and nobody else notices.

Every test ends with a good client on the same broker that is served at once.
"""

from __future__ import annotations

import contextlib
import gzip
import socket
import struct

import lz4.frame
import pytest
import zstandard
from cramjam import snappy
from hostile_frames import METADATA_FRAME, VERSIONS_FRAME, anonymous_kib, frame_of
from talk import Raw, Talk, batch, produce_request

from barnabas.model import errors
from barnabas.testing import Broker
from barnabas.wire.api import ApiKey
from barnabas.wire.batch import seal
from barnabas.wire.compression import Codec
from barnabas.wire.message import decode
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.metadata import MetadataRequest

pytestmark = pytest.mark.usefixtures("others_are_undisturbed")

# --- frames -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [-1, 0, -(2**31), 100 * 1024 * 1024 + 1, 2**31 - 1])
def test_a_size_that_cannot_be_closes_the_connection(raw: Raw, size: int) -> None:
    raw.send(struct.pack(">i", size) + b"x" * 100)
    assert raw.is_closed()


def test_a_bad_size_behind_a_good_request_leaves_its_answer(raw: Raw) -> None:
    raw.send(METADATA_FRAME + struct.pack(">i", -1))
    assert raw.receive_frame()[:4] == struct.pack(">i", 7)
    assert raw.is_closed()


@pytest.mark.parametrize("length", range(1, len(METADATA_FRAME)))
def test_a_request_that_is_cut_off_gets_no_answer(shared_broker: Broker, length: int) -> None:
    with Raw(shared_broker.bootstrap_servers) as raw:
        raw.send(METADATA_FRAME[:length])
        raw.socket.shutdown(socket.SHUT_WR)
        assert raw.is_closed()


@pytest.mark.parametrize("length", range(len(METADATA_FRAME) - 4))
def test_a_body_that_is_too_short_closes_the_connection(shared_broker: Broker, length: int) -> None:
    with Raw(shared_broker.bootstrap_servers) as raw:
        raw.send_frame(METADATA_FRAME[4 : 4 + length])
        assert raw.is_closed()


def test_one_byte_at_a_time_is_slow_but_right(raw: Raw, talk: Talk, name: str) -> None:
    raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    talk.create(name)
    frame = frame_of(produce_request(name, bytes(batch(b"slow"))), 9)
    for each in METADATA_FRAME + frame + METADATA_FRAME:
        raw.send(bytes([each]))
    assert len([raw.receive_frame() for _ in range(3)]) == 3
    assert [record.value for record in talk.read(name)] == [b"slow"]


def test_a_large_frame_in_pieces_is_put_together(raw: Raw, talk: Talk, name: str) -> None:
    talk.create(name)
    value = bytes(range(256)) * 3000
    frame = frame_of(produce_request(name, bytes(batch(value))), 9)
    for start in range(0, len(frame), 70_001):
        raw.send(frame[start : start + 70_001])
    raw.receive_frame()
    assert [record.value for record in talk.read(name)] == [value]


def test_a_size_that_is_never_filled_costs_no_memory(shared_broker: Broker) -> None:
    before = anonymous_kib()
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            raw = stack.enter_context(Raw(shared_broker.bootstrap_servers))
            raw.send(struct.pack(">i", 100 * 1024 * 1024) + b"\x00\x03\x00\x09" + b"x" * 70_000)
        with Talk(shared_broker.bootstrap_servers) as good:
            good.ask(MetadataRequest(topics=[]))
        grown = anonymous_kib() - before
    assert grown < 100 * 1024, f"{grown} KiB for 50 connections that promised 100 MiB each"


def test_half_open_connections_are_closed(raw: Raw) -> None:
    raw.send(METADATA_FRAME[:9])
    raw.socket.shutdown(socket.SHUT_WR)
    assert raw.is_closed()


def test_an_idle_connection_is_seen_off() -> None:
    with Broker(settings={"connections.max.idle.ms": "60000"}) as broker, Raw(broker.bootstrap_servers) as idle:
        idle.send(VERSIONS_FRAME)
        idle.receive_frame()
        for _ in range(8):
            broker.clock.advance("20s")
        assert idle.is_closed()


# --- headers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [4, 5, 6, 7, 38, 71, 95, 255, 32767, -1, -32768])
def test_an_unknown_api_closes_the_connection(raw: Raw, key: int) -> None:
    raw.send_frame(struct.pack(">hhih", key, 0, 1, -1) + b"\x00" * 8)
    assert raw.is_closed()


@pytest.mark.parametrize("version", [-1, 14, 99, 32767, -32768])
def test_an_unknown_version_closes_the_connection(raw: Raw, version: int) -> None:
    raw.send_frame(struct.pack(">hhih", ApiKey.METADATA, version, 1, -1) + b"\x00" * 8)
    assert raw.is_closed()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_produce_is_announced_from_0_and_refused_below_3(raw: Raw, version: int) -> None:
    raw.send_frame(struct.pack(">hhih", ApiKey.PRODUCE, version, 1, -1) + struct.pack(">hii", 1, 1000, 0))
    assert raw.is_closed()


@pytest.mark.parametrize("rest", [b"", b"\x00", b"\xff" * 50], ids=["nothing", "tags", "rubbish"])
@pytest.mark.parametrize("version", [99, 5, 32767])
def test_versions_from_the_future_are_answered_in_the_layout_of_0(raw: Raw, version: int, rest: bytes) -> None:
    raw.send_frame(struct.pack(">hhih", ApiKey.API_VERSIONS, version, 42, -1) + b"\x00" + rest)
    answer = raw.receive_frame()
    assert answer[:4] == struct.pack(">i", 42)
    response = decode(ApiVersionsResponse, 0, answer, 4)
    assert response.error_code == errors.UNSUPPORTED_VERSION.code
    assert [(row.api_key, row.min_version, row.max_version) for row in response.api_keys] == [(18, 0, 4)]
    raw.send(VERSIONS_FRAME)
    assert raw.receive_frame()[:4] == struct.pack(">i", 7)


@pytest.mark.parametrize("client_id", [None, "", "x" * 32767, "a\nb \x1b[31m", "ü"])
def test_any_client_id_is_served(raw: Raw, client_id: str | None) -> None:
    raw.send(frame_of(MetadataRequest(topics=[]), 9, client_id=client_id))
    assert raw.receive_frame()[:4] == struct.pack(">i", 7)


@pytest.mark.parametrize("length", [-2, -32768, 20, 32767])
def test_a_client_id_that_lies_about_its_length(raw: Raw, length: int) -> None:
    raw.send_frame(struct.pack(">hhih", ApiKey.METADATA, 1, 1, length) + b"\xff\xff\xff\xff")
    if length >= 0:
        assert raw.is_closed()
    else:  # anything negative is null to Kafka's own reader of headers
        assert raw.receive_frame()[:4] == struct.pack(">i", 1)


def test_a_client_id_that_is_no_text_closes_the_connection(raw: Raw) -> None:
    raw.send_frame(struct.pack(">hhih", ApiKey.METADATA, 1, 1, 2) + b"\xff\xfe" + b"\xff" * 4)
    assert raw.is_closed()


# --- counts that lie --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2**31 - 1, 1_000_000, 102])
def test_a_count_that_lies_closes_the_connection(raw: Raw, count: int) -> None:
    before = anonymous_kib()
    raw.send_frame(struct.pack(">hhihi", ApiKey.METADATA, 1, 1, -1, count) + b"\x00" * 100)
    assert raw.is_closed()
    assert anonymous_kib() - before < 20 * 1024


@pytest.mark.parametrize("count", [-1, -2, -(2**31)])
def test_any_negative_count_is_null_as_in_kafka(raw: Raw, count: int) -> None:
    raw.send_frame(struct.pack(">hhihi", ApiKey.METADATA, 1, 1, -1, count))
    assert raw.receive_frame()[:4] == struct.pack(">i", 1)


def test_a_request_full_of_tiny_elements_is_not_even_read(raw: Raw) -> None:
    """Eight million names, each true to its word: an honest count can be an attack too."""
    count = 8 * 1024 * 1024
    names = b"\x01\x00" * count
    head = struct.pack(">hhih", ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 1, -1) + b"\x00" + uvarint(count + 1)
    raw.send_frame(head + names + struct.pack(">i", 10) + b"\xff\x00")
    assert raw.is_closed()


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


@pytest.mark.parametrize("tail", [b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\xff", b"\x80\x80\x80\x80\x80\x01"])
def test_a_compact_count_that_lies_closes_the_connection(raw: Raw, tail: bytes) -> None:
    raw.send_frame(struct.pack(">hhih", ApiKey.METADATA, 12, 1, -1) + b"\x00" + tail)
    assert raw.is_closed()


def test_many_unknown_tags_are_bounded(raw: Raw) -> None:
    tags = b"".join(b"%c\x00" % (number % 128) for number in range(50_000))
    raw.send_frame(struct.pack(">hhih", ApiKey.METADATA, 12, 1, -1) + b"\xd0\x86\x03" + tags + b"\x01\x00\x00\x00")
    with contextlib.suppress(ConnectionError):
        raw.receive_frame()


# --- records ----------------------------------------------------------------------------------------------------------


def bomb(codec: Codec, size: int) -> bytes:
    """A small payload that claims, and has, an enormous content."""
    zeros = bytes(size)
    match codec:
        case Codec.GZIP:
            return gzip.compress(zeros, compresslevel=1)
        case Codec.SNAPPY:
            return bytes(snappy.compress_raw(zeros))
        case Codec.LZ4:
            return lz4.frame.compress(zeros)
        case _:
            return zstandard.compress(zeros)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_zip_bomb_is_refused_and_costs_little(talk: Talk, name: str, codec: Codec) -> None:
    talk.create(name, max_message_bytes=str(64 * 1024 * 1024))
    payload = bomb(codec, 136 * 1024 * 1024)
    data = bytearray(batch(b"x")[:61]) + payload
    data[8:12] = struct.pack(">i", len(data) - 12)
    data[21:23] = struct.pack(">h", codec)
    seal(data, 0)
    row = talk.produce(name, bytes(data))
    assert row.error_code in (errors.INVALID_RECORD.code, errors.CORRUPT_MESSAGE.code)
    assert talk.produce(name, batch(b"good")).base_offset == 0


def test_a_batch_of_random_bytes_is_refused(talk: Talk, name: str) -> None:
    talk.create(name)
    for size in (1, 12, 17, 60, 61, 62, 1000):
        row = talk.produce(name, bytes((7 * each) % 251 for each in range(size)))
        assert row.error_code in (errors.INVALID_RECORD.code, errors.CORRUPT_MESSAGE.code)
