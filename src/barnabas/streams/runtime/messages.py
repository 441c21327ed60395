"""Values of internal records that are more than a value: changes of tables, subscriptions and their responses.

Packed with MessagePack; keys and values inside are packed by their own serdes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from barnabas.streams.runtime.failures import Handler
from barnabas.streams.runtime.wiring import Forward
from barnabas.streams.serdes import Codec
from barnabas.streams.topology.operators import Payload

__all__ = ["payload_decoder", "payload_encoder"]

_encode: Final = msgspec.msgpack.Encoder().encode
_decode_change: Final = msgspec.msgpack.Decoder(tuple[bytes | None, bytes | None, bool]).decode
# Instruction, primary key, hash of the left value, partition of the left row.
_decode_subscription: Final = msgspec.msgpack.Decoder(tuple[int, bytes, bytes | None, int]).decode
# Hash of the left value, right value.
_decode_response: Final = msgspec.msgpack.Decoder(tuple[bytes | None, bytes | None]).decode


def payload_encoder(payload: Payload, write: Forward, codec: Codec, fail: Handler) -> Forward:
    """Return the function of a sink for a payload; ``write`` takes key, bytes, timestamp, headers and partition."""
    pack = codec.pack

    def change(key: Any, new: Any, old: Any, timestamp: int, headers: Any, latest: bool) -> None:
        try:
            packed = _encode((None if new is None else pack(new), None if old is None else pack(old), latest))
        except Exception as error:  # noqa: BLE001 - serdes of users raise what they like
            fail(error)
            return
        write(key, packed, timestamp, headers)

    def subscription(
        foreign_key: Any, message: tuple[int, Any, bytes | None, int], timestamp: int, headers: Any
    ) -> None:
        instruction, primary_key, digest, partition = message
        try:
            packed = _encode((instruction, pack(primary_key), digest, partition))
        except Exception as error:  # noqa: BLE001 - serdes of users raise what they like
            fail(error)
            return
        write(foreign_key, packed, timestamp, headers)

    def response(primary_key: Any, message: tuple[bytes | None, Any, int], timestamp: int, headers: Any) -> None:
        digest, right, partition = message
        try:
            packed = _encode((digest, None if right is None else pack(right)))
        except Exception as error:  # noqa: BLE001 - serdes of users raise what they like
            fail(error)
            return
        write(primary_key, packed, timestamp, headers, partition)

    if payload == "change":
        return change
    return subscription if payload == "subscription" else response


def payload_decoder(payload: Payload, forward: Forward, codec: Codec) -> tuple[Forward, Callable[[bytes], Any]]:
    """Return the function that a source calls with a record, and the decoder of its value."""
    unpack = codec.unpack

    def decode_change(data: bytes) -> tuple[Any, Any, bool]:
        new, old, latest = _decode_change(data)
        return None if new is None else unpack(new), None if old is None else unpack(old), latest

    def forward_change(key: Any, change: tuple[Any, Any, bool], timestamp: int, headers: Any) -> None:
        forward(key, change[0], change[1], timestamp, headers, change[2])

    def decode_subscription(data: bytes) -> tuple[int, Any, bytes | None, int]:
        instruction, primary_key, digest, partition = _decode_subscription(data)
        return instruction, unpack(primary_key), digest, partition

    def decode_response(data: bytes) -> tuple[bytes | None, Any]:
        digest, right = _decode_response(data)
        return digest, None if right is None else unpack(right)

    if payload == "change":
        return forward_change, decode_change
    return forward, decode_subscription if payload == "subscription" else decode_response
