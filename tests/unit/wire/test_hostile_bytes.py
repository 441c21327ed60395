"""Bytes that are not what they should be: cut, inflated, padded with unknown fields, or simply noise."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barnabas.model.errors import Malformed
from barnabas.wire.message import Message, decode, decode_from, encode
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.primitives import TAGGED_FIELDS_MAX

FUZZ = Path(__file__).parents[2] / "fuzz" / "fuzz_wire.py"
HUGE_VARINT = b"\xff\xff\xff\xff\x0f"
HUGE_COUNTS = (b"\x7f\xff\xff\xff", HUGE_VARINT, b"\xff\xff\xff\xff\x07", b"\xff\xff\x7f", b"\x80\x80\x80\x80\x80")


def sample(cls: type[Message], version: int, make: Callable[..., Any], *, size_bytes_max: int) -> bytes:
    """The longest of a few random messages that is not too long, or the shortest."""
    random = Random(f"{cls.__name__}-{version}")
    made = sorted((encode(make(cls, version, random), version) for _ in range(12)), key=len)
    return ([data for data in made if len(data) <= size_bytes_max] or made[:1])[-1]


def test_a_message_that_is_cut_anywhere_is_malformed(
    message_class: type[Message], make_message: Callable[..., Any]
) -> None:
    for version in sorted({message_class.versions[0], message_class.versions[-1]}):
        data = sample(message_class, version, make_message, size_bytes_max=600)
        for size in range(len(data)):
            with pytest.raises(Malformed):
                decode(message_class, version, data[:size])


def test_no_count_allocates_more_than_its_bytes_are_worth(
    message_class: type[Message], make_message: Callable[..., Any]
) -> None:
    version = message_class.versions[-1]
    data = sample(message_class, version, make_message, size_bytes_max=250)
    decode(message_class, version, encode(message_class(), version))
    tracemalloc.start()
    try:
        for position in range(len(data)):
            for count in HUGE_COUNTS:
                tracemalloc.reset_peak()
                before, _ = tracemalloc.get_traced_memory()
                with suppress(Malformed):
                    decode(message_class, version, data[:position] + count + data[position + len(count) :])
                _, peak = tracemalloc.get_traced_memory()
                assert peak - before < 200_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("cls", "version", "data"),
    [
        (MetadataRequest, 12, HUGE_VARINT),
        (MetadataRequest, 0, b"\x7f\xff\xff\xff"),
        (MetadataResponse, 9, b"\0\0\0\0" + HUGE_VARINT),
        (FetchRequest, 4, b"\0" * 17 + b"\x7f\xff\xff\xff" + b"\0" * 1000),
        (ProduceRequest, 9, b"\0\0\0\0\0\0\0\x02\x02a\x02\0\0\0\0" + HUGE_VARINT),
    ],
)
def test_a_count_beyond_the_frame_is_malformed(cls: type[Message], version: int, data: bytes) -> None:
    with pytest.raises(Malformed):
        decode(cls, version, data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\0\0\0\0\0\0\0\x02\x02\xff\x01\0\0", "codec"),  # not UTF-8
        (b"\0\0\0\0\0\0\0\0\0", "topic_data must not be null"),
        (b"\0\0\0\0\0\0\0\x02\0\x01\0\0", "name must not be null"),
        (b"\0\0\0\0\0\0\0\x02\x02a\0\0\0\0\0\0", "partition_data must not be null"),
        (b"\0\0\0\0\0\0\0\x02\x81\x80\x02" + b"a" * 32768 + b"\x01\0\0", "longer than 32767"),
        (b"\x80\x80\x80\x80\x80\x00", "does not end"),
        (b"\xff\xff\xff\xff\x1f\x00", "wider than 32 bits"),
    ],
)
def test_the_reason_is_named(data: bytes, reason: str) -> None:
    with pytest.raises(Malformed, match=reason):
        decode(ProduceRequest, 9, data)


def test_a_null_where_none_may_be_is_malformed_in_the_old_encoding_too() -> None:
    with pytest.raises(Malformed, match="must not be null"):
        decode(FetchRequest, 4, b"\0" * 17 + b"\0\0\0\x01" + b"\xff\xff" + b"\0\0\0\0")
    with pytest.raises(Malformed, match="must not be null"):
        decode(FetchRequest, 4, b"\0" * 17 + b"\xff\xff\xff\xff" + b"\0\0\0\0")


def test_unknown_tagged_fields_are_passed_over(message_class: type[Message]) -> None:
    version = message_class.versions[-1]
    if not message_class.is_flexible(version):
        pytest.skip("the last version is not flexible")
    message = message_class()
    data = encode(message, version)
    assert data[-1] == 0
    # Two fields that nobody knows: tag 100 with three bytes and tag 300 with none.
    decoded, position = decode_from(message_class, version, data[:-1] + b"\x02\x64\x03abc\xac\x02\x00rest", 0)
    assert decoded == message
    assert position == len(data) + 8


def test_unknown_tagged_fields_of_nested_structs_are_passed_over() -> None:
    data = b"\0\0\0\0\0\0\0\x02\x02a\x02\0\0\0\x05\0\x01\x09\x01z\x01\x63\x00\x00"
    decoded = decode(ProduceRequest, 9, data)
    assert decoded.topic_data[0].name == "a"
    assert decoded.topic_data[0].partition_data[0].index == 5


def test_the_number_of_tagged_fields_is_bounded() -> None:
    plain = encode(MetadataRequest(), 12)[:-1]
    fields = TAGGED_FIELDS_MAX + 1
    count = bytes([fields & 0x7F | 0x80, fields >> 7])
    with pytest.raises(Malformed, match="tagged fields"):
        decode(MetadataRequest, 12, plain + count + b"\x63\x00" * fields)


@pytest.mark.parametrize("cls", [MetadataRequest, FetchResponse])
def test_a_tagged_field_cannot_reach_beyond_the_message(cls: type[Message]) -> None:
    plain = encode(cls(), 12)[:-1]
    with pytest.raises(Malformed):
        decode(cls, 12, plain + b"\x01\x63\x05abcd")


def test_a_known_tagged_field_must_have_the_size_it_says() -> None:
    request = FetchRequest(cluster_id="abc")
    data = encode(request, 12)
    assert data.endswith(b"\x01\x00\x04\x04abc")
    for wrong in (b"\x01\x00\x03\x04abc", b"\x01\x00\x05\x04abc."):
        with pytest.raises(Malformed, match="cluster_id"):
            decode(FetchRequest, 12, data[:-7] + wrong)


def test_mutated_messages_decode_or_are_malformed(
    message_class: type[Message], make_message: Callable[..., Any]
) -> None:
    """A small slice of what the fuzzer does, from a seed."""
    specification = spec_from_file_location("fuzz_wire", FUZZ)
    assert specification
    assert specification.loader
    fuzz = module_from_spec(specification)
    specification.loader.exec_module(fuzz)
    random = Random(message_class.__name__)
    for _ in range(60):
        version = random.choice(message_class.versions)
        data = bytearray(encode(make_message(message_class, version, random), version)[:2000])
        for _ in range(random.randint(1, 4)):
            if data:
                data[random.randrange(len(data))] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
        fuzz.check_message(message_class, version, bytes(data))
    for _ in range(20):
        fuzz.check(random.randbytes(random.randrange(40)))
