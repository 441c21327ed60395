"""Positions in Kafka's format, and how they move."""

from __future__ import annotations

import pytest

from barnabas.streams.errors import StateCorrupt
from barnabas.streams.positions import as_text, decode_position, encode_position, merge_into


def test_a_position_is_encoded_as_kafka_does_with_the_offset_of_the_last_record() -> None:
    # Version 0, one topic of one letter, one partition: 2, offset 6.
    data = bytes.fromhex("0000000001000000016100000001000000020000000000000006")
    assert encode_position({"a": {2: 7}}) == data
    assert decode_position(data) == {"a": {2: 7}}


def test_positions_survive_encoding_and_only_move_forward() -> None:
    position = {"lines": {0: 3, 1: 9}, "words-ü": {4: 1}}
    assert decode_position(encode_position(position)) == position
    merge_into(position, {"lines": {0: 5, 1: 2}, "more": {0: 1}})
    assert position == {"lines": {0: 5, 1: 9}, "words-ü": {4: 1}, "more": {0: 1}}
    assert as_text(position) == "lines-0: 5, lines-1: 9, more-0: 1, words-ü-4: 1"
    assert as_text({}) == "nothing read yet"


@pytest.mark.parametrize("data", [b"", b"\x07", b"\x00\x00\x00\x00\x09", encode_position({"a": {0: 1}})[:-1]])
def test_damaged_positions_are_refused(data: bytes) -> None:
    with pytest.raises(StateCorrupt):
        decode_position(data)
