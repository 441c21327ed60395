"""Varints and tags: the slow paths behind the compiled codecs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.model.errors import Malformed
from barnabas.wire.primitives import (
    CACHED_COUNT_MAX,
    CACHED_LAYOUTS_MAX,
    Packers,
    Unencodable,
    Unpackers,
    append_records,
    read_tag,
    read_varint,
    skip_tags,
    write_varint,
)


@given(st.integers(0, 2**31 - 1))
def test_a_varint_survives(value: int) -> None:
    out = bytearray(b"..")
    write_varint(out, value)
    assert read_varint(memoryview(out), 2) == (value, len(out))
    assert len(out) - 2 == max(1, -(-value.bit_length() // 7))


@pytest.mark.parametrize(
    ("data", "value"),
    [(b"\x00", 0), (b"\x7f", 127), (b"\x80\x01", 128), (b"\xff\xff\xff\xff\x0f", 2**32 - 1), (b"\x81\x00", 1)],
)
def test_known_varints(data: bytes, value: int) -> None:
    assert read_varint(memoryview(data), 0) == (value, len(data))


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff\x1f", b"\xff\xff\xff\xff\xff\x01", b"\x80\x80\x80\x80\x80"])
def test_a_varint_beyond_32_bits_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        read_varint(memoryview(data + b"\0"), 0)


def test_a_length_beyond_31_bits_cannot_be_written() -> None:
    with pytest.raises(Unencodable):
        write_varint(bytearray(), 2**31)


def test_tags_are_passed_over_within_the_message() -> None:
    view = memoryview(b"\x02\x01\x00\x05\x02ab.")
    assert skip_tags(view, 0) == 7
    assert read_tag(view, 1) == (1, 3, 3)
    with pytest.raises(Malformed, match="beyond"):
        read_tag(memoryview(b"\x01\x05abcd"), 0)


def test_records_outside_of_memory_need_parts() -> None:
    with pytest.raises(Unencodable):
        append_records(object(), bytearray(), None)


def test_layouts_are_remembered_only_while_they_are_short_and_few() -> None:
    unpackers = Unpackers("name", "s", "", compact=True)
    assert unpackers[3](b"ab", 0) == (b"ab",)
    assert unpackers[CACHED_COUNT_MAX + 2](bytes(CACHED_COUNT_MAX + 1), 0)
    assert list(unpackers) == [3]
    with pytest.raises(Malformed, match="name must not be null"):
        unpackers[0]
    packers = Packers(["h", "b"], ["i"], compact=False)
    assert packers[1](1, 2, 3) == b"\0\x01\0\0\0\x02\x03"
    assert packers[-1](1, 3) == b"\0\x01\x03"
    pairs = Packers(["", "", ""], ["b", "b"], compact=True)
    for first in range(1, 100):
        for second in range(1, 100):
            assert len(pairs[first, second](*[0] * (first + second - 2))) == first + second - 2
    assert len(pairs) == CACHED_LAYOUTS_MAX
