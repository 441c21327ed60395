"""The record codec twice, compiled and interpreted, and records written byte by byte.

Payloads are written here without the codec, so that a mistake shared by encoder and decoder has nowhere to hide.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from barnabas.wire import record_codec, record_encoder, record_headers, records
from barnabas.wire.batch import BatchHeader
from barnabas.wire.records import Record

WIRE = Path(records.__file__).parent
INT64_MAX = (1 << 63) - 1


def interpreted(name: str) -> ModuleType:
    """The module from its source, whether or not a compiled one stands beside it."""
    spec = importlib.util.spec_from_file_location(f"interpreted_{name}", WIRE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


INTERPRETED = SimpleNamespace(
    codec=interpreted("record_codec"), encoder=interpreted("record_encoder"), headers=interpreted("record_headers")
)
COMPILED = SimpleNamespace(codec=record_codec, encoder=record_encoder, headers=record_headers)


def varint(value: int) -> bytes:
    raw = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*out, raw])


def field(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def framed(body: bytes) -> bytes:
    return varint(len(body)) + body


def a_record(
    offset_delta: int = 0,
    timestamp_delta: int = 0,
    key: bytes | None = b"key",
    value: bytes | None = b"value",
    headers: tuple[tuple[bytes, bytes | None], ...] = (),
) -> bytes:
    pairs = b"".join(field(name) + field(content) for name, content in headers)
    deltas = varint(timestamp_delta) + varint(offset_delta)
    return framed(b"\x00" + deltas + field(key) + field(value) + varint(len(headers)) + pairs)


def a_header(record_count: int, **fields: int) -> BatchHeader:
    return BatchHeader(0, 0, 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, record_count)._replace(**fields)


def decode(twin: Any, payload: bytes, record_count: int, **fields: int) -> list[Record]:
    found: list[Record] = twin.codec.decode(payload, a_header(record_count, **fields), Record)
    return found


SAMPLE = [
    Record(50, 1_000, b"k", b"v", ()),
    Record(51, 999, None, b"x" * 300, (("trace", b"\x00\xff"), ("empty", b""), ("null", None))),
    Record(52, 5_000_000_000, b"", None, (("straße-東京-🚀", b"y" * 70), ("", b"z"))),
    Record(53, 1_000, b"q" * 9_000, b"", ()),
]


def payload_of(sample: list[Record], *, base_offset: int = 50, base_timestamp: int = 1_000) -> bytes:
    return b"".join(
        a_record(
            record.offset - base_offset,
            record.timestamp - base_timestamp,
            record.key,
            record.value,
            tuple((name.encode(), content) for name, content in record.headers),
        )
        for record in sample
    )


def body(*parts: bytes) -> bytes:
    return framed(b"".join(parts))


def columns_for(twin: Any, rows: int, size_bytes: int) -> tuple[Any, ...]:
    def int64() -> memoryview:
        return memoryview(bytearray(8 * rows)).cast("q")

    def cells() -> Any:
        bounds = memoryview(bytearray(4 * (rows + 1))).cast("i")
        return bounds, bytearray(size_bytes), bytearray(b"\xff" * ((rows + 7) // 8))

    keys, values = cells(), cells()
    twin_columns = (int64(), int64(), twin.codec.BytesColumn(*keys), twin.codec.BytesColumn(*values))
    return twin_columns, keys, values


def fill(twin: Any, payload: bytes, record_count: int, **fields: int) -> Any:
    columns, keys, values = columns_for(twin, max(record_count, 0), len(payload))
    rows = twin.codec.fill(payload, a_header(record_count, **fields), 0, INT64_MAX, columns, 0)
    return rows, columns, keys, values
