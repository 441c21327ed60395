"""Bytes from nowhere into the record codec: records or CorruptBatch, the same compiled and interpreted, and no more.

``python tests/fuzz/fuzz_records.py -runs=1000000`` hands the choice of bytes to atheris; the property tests call
``check_payload`` and ``check_batch`` with mutations of sound batches. The first byte picks a record count and a base
timestamp for the rest, which is tried as records and, behind a sealed header, as a batch of every codec.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from barnabas.model.errors import CorruptBatch
from barnabas.wire import batch, columns, record_codec, records
from barnabas.wire.batch import BatchHeader
from barnabas.wire.compression import Codec
from barnabas.wire.records import Record

SIZE_BYTES_MAX = 1 << 20
INT64_MAX = (1 << 63) - 1
BASE_TIMESTAMPS = (0, 1_700_000_000_000, -1, INT64_MAX)


def load_interpreted() -> ModuleType:
    source = Path(records.__file__).parent / "record_codec.py"
    spec = importlib.util.spec_from_file_location("interpreted_record_codec", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


INTERPRETED = load_interpreted()


def outcome(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except CorruptBatch:
        return CorruptBatch


def fill(codec: ModuleType, payload: bytes, header: BatchHeader) -> Any:
    rows = min(header.record_count, len(payload))

    def cells() -> tuple[Any, ...]:
        bounds = memoryview(bytearray(4 * (rows + 1))).cast("i")
        return bounds, bytearray(len(payload)), bytearray(b"\xff" * ((rows + 7) // 8))

    keys, values = cells(), cells()
    numbers = [memoryview(bytearray(8 * rows)).cast("q") for _ in range(2)]
    columns = (*numbers, codec.BytesColumn(*keys), codec.BytesColumn(*values))
    found = codec.fill(payload, header, 0, INT64_MAX, columns, 0)
    return found, [bytes(column) for column in (*numbers, *keys, *values)]


def check_payload(payload: bytes, record_count: int, base_timestamp: int) -> None:
    """Both forms of the codec say the same of the same bytes, and the sound ones are written as they were read."""
    header = BatchHeader(0, 0, 0, 2, 0, 0, 0, base_timestamp, 0, -1, -1, -1, record_count)
    reads: list[Callable[[ModuleType], Any]] = [
        lambda codec: codec.check(payload, record_count, base_timestamp, True),
        lambda codec: codec.decode(payload, header, Record),
        lambda codec: fill(codec, payload, header),
    ]
    for read in reads:
        compiled = outcome(lambda read=read: read(record_codec))  # type: ignore[misc]
        assert compiled == outcome(lambda read=read: read(INTERPRETED))  # type: ignore[misc]
    found = outcome(lambda: record_codec.decode(payload, header, Record))
    sane = found is not CorruptBatch and all(abs(record.timestamp) < 1 << 61 for record in found)
    if sane and found:
        again = records.decode_batch(records.encode_batch([record[1:] for record in found]))
        assert [record[1:] for record in again] == [record[1:] for record in found]


def check_batch(buffer: bytes) -> None:
    """Whatever the bytes: records or CorruptBatch."""
    found = outcome(lambda: records.decode_all(buffer, size_bytes_max=SIZE_BYTES_MAX))
    assert found is CorruptBatch or all(type(record) is Record for record in found)
    table = outcome(
        lambda: columns.to_arrow(
            buffer, topic="t", partition=0, with_headers=True, check_crcs=False, size_bytes_max=SIZE_BYTES_MAX
        )
    )
    if table is not CorruptBatch:
        table.validate(full=True)
        headers = [tuple((pair["key"], pair["value"]) for pair in row or ()) for row in table["headers"].to_pylist()]
        if found is not CorruptBatch and len(found) == len(headers):
            assert headers == [record.headers for record in found]


def check(data: bytes) -> None:
    if not data:
        return
    record_count, payload = data[0] >> 2, data[1:]
    base_timestamp = BASE_TIMESTAMPS[data[0] & 3]
    check_payload(payload, record_count, base_timestamp)
    check_batch(payload)
    for codec in Codec:
        plain = bytearray(batch.HEADER_BYTES) + payload
        batch.HEADER.pack_into(
            plain, 0, 0, len(plain) - 12, 0, 2, 0, codec, 0, base_timestamp, 0, -1, -1, -1, record_count
        )
        check_batch(bytes(plain))


def main() -> None:
    import atheris

    # The compiled form shows no coverage; its twin leads the way for both.
    for name in ("_rest", "_headers", "_record", "_header_pairs", "check", "decode", "fill"):
        setattr(INTERPRETED, name, atheris.instrument_func(getattr(INTERPRETED, name)))
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
