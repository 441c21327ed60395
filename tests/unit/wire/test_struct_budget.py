"""A message of any number of tiny structs is refused before they are made."""

from __future__ import annotations

import tracemalloc

import pytest

from barnabas.model.errors import Malformed
from barnabas.wire.decoder import STRUCTS_MAX
from barnabas.wire.message import decode
from barnabas.wire.messages.produce import ProduceRequest

MEMORY_BYTES_MAX = 4 * 1024 * 1024
HEAD = b"\x00" + b"\xff\xff" + bytes(4)  # no transactional id, acks=-1, no time-out
PARTITION = bytes(4) + b"\x00" + b"\x00"  # index, null records, no tags


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def test_more_structs_than_a_message_may_hold_are_refused_at_once() -> None:
    count = STRUCTS_MAX + 1
    body = HEAD + uvarint(2) + b"\x02t" + uvarint(count + 1) + PARTITION * count + b"\x00\x00"
    tracemalloc.start()
    try:
        with pytest.raises(Malformed, match="structs"):
            decode(ProduceRequest, 9, body)
        assert tracemalloc.get_traced_memory()[1] < MEMORY_BYTES_MAX
    finally:
        tracemalloc.stop()


def test_structs_are_counted_over_all_arrays() -> None:
    topic = b"\x02t" + uvarint(101) + PARTITION * 100 + b"\x00"
    count = STRUCTS_MAX // 100 + 1
    body = HEAD + uvarint(count + 1) + topic * count + b"\x00"
    with pytest.raises(Malformed, match="structs"):
        decode(ProduceRequest, 9, body)
