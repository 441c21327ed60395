"""Every message in every version comes back from its bytes as it went in."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.wire.message import Message, decode, decode_from, encode, encode_parts

few = settings(max_examples=6, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@few
@given(random=st.randoms(use_true_random=False))
def test_a_message_survives_its_bytes(
    message_class: type[Message], version: int, make_message: Callable[..., Any], random: Random
) -> None:
    message = make_message(message_class, version, random)
    data = encode(message, version)
    decoded, position = decode_from(message_class, version, b"before" + data + b"behind", 6)
    assert decoded == message
    assert position == 6 + len(data)
    assert type(decoded) is message_class
    assert encode(decoded, version) == data
    assert decode(message_class, version, bytearray(data)) == message


def test_parts_are_the_same_bytes(message_class: type[Message], make_message: Callable[..., Any]) -> None:
    for version in message_class.versions:
        message = make_message(message_class, version, Random(7))
        out, parts = bytearray(b"head"), []
        encode_parts(message, version, out, parts)
        assert b"".join([*parts, out]) == b"head" + encode(message, version)


def test_what_the_constructor_leaves_out_is_the_default(message_class: type[Message]) -> None:
    for version in message_class.versions:
        message = message_class()
        assert decode(message_class, version, encode(message, version)) == message
