"""Segments and snapshots for ``dump``: every batch with its header, checksum and, if asked for, its records.

Reading goes on behind a batch with a wrong checksum, because its length still says where the next one begins; it
ends at a header that makes no sense.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final

from barnabas.cli.files.dump_finding import Broken, Finding, Row, shown_time
from barnabas.model.errors import BarnabasError, CorruptBatch
from barnabas.model.ids import METADATA_TOPIC
from barnabas.wire.batch import HEADER_BYTES, BatchHeader, crc_matches, read_header
from barnabas.wire.records import Record, decode_batch

ZEROS_BYTES: Final = 4096
_MARKERS: Final = (
    "abort",
    "commit",
    "leader-change",
    "snapshot-header",
    "snapshot-footer",
    "kraft-version",
    "kraft-voters",
)


def read_batches(path: Path, arguments: Namespace) -> Iterator[Finding]:
    if path.stat().st_size == 0:
        return
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content, memoryview(content) as view:
        yield from _batches(path, view, arguments)


def _batches(path: Path, content: memoryview, arguments: Namespace) -> Iterator[Finding]:
    position, expected = 0, int(path.stem[:20]) if path.stem[:20].isdecimal() and path.suffix == ".log" else 0
    batches = records = 0
    while position < len(content):
        try:
            header = read_header(content, position)
        except CorruptBatch as error:
            if _is_zero(content, position):
                yield Row("padding", {"position": position, "bytes": len(content) - position})
            else:
                yield Broken(position, f"{error}; {len(content) - position} bytes behind this are not read")
            return
        if position + header.size_bytes > len(content):
            yield Broken(position, f"the batch of {header.size_bytes} bytes is cut off after {len(content) - position}")
            return
        is_sound = crc_matches(content, position, header)
        yield Row("batch", _facts(position, header, is_sound=is_sound))
        if header.base_offset < expected:
            yield Broken(position, f"offset {header.base_offset} should be at least {expected}")
        if not is_sound:
            yield Broken(position, f"the checksum is not {header.crc:#010x}")
        else:
            yield from _records(path, content, position, header, arguments)
        batches, records = batches + 1, records + header.record_count
        expected = header.next_offset
        position += header.size_bytes
    yield Row("total", {"batches": batches, "records": records, "bytes": position, "next_offset": expected})


def _is_zero(content: memoryview, position: int) -> bool:
    """A file that was made larger ahead of time ends in zeros, and that is no damage."""
    zeros = bytes(ZEROS_BYTES)
    for start in range(position, len(content), ZEROS_BYTES):
        piece = content[start : start + ZEROS_BYTES]
        if piece != zeros[: len(piece)]:
            return False
    return True


def _facts(position: int, header: BatchHeader, *, is_sound: bool) -> dict[str, object]:
    flags = [
        name
        for name, is_set in (
            ("transactional", header.is_transactional),
            ("control", header.is_control),
            ("append-time", header.uses_append_time),
            ("delete-horizon", header.has_delete_horizon),
        )
        if is_set
    ]
    has_producer = header.producer_id >= 0
    return {
        "position": position,
        "bytes": header.size_bytes,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.record_count,
        "leader_epoch": header.leader_epoch,
        "max_timestamp": shown_time(header.max_timestamp),
        "codec": _codec(header),
        "producer_id": header.producer_id if has_producer else None,
        "producer_epoch": header.producer_epoch if has_producer else None,
        "base_sequence": header.base_sequence if has_producer else None,
        "flags": ",".join(flags) or None,
        "crc": "ok" if is_sound else "WRONG",
    }


def _codec(header: BatchHeader) -> str:
    try:
        return header.codec.name.lower()
    except CorruptBatch:
        return "unknown"


def _records(
    path: Path, content: memoryview, position: int, header: BatchHeader, arguments: Namespace
) -> Iterator[Finding]:
    """Every record is decoded even if none is printed: a checksum proves what was written, not that it makes sense."""
    batch = bytes(content[position : position + header.size_bytes])
    try:
        records = decode_batch(batch)
    except BarnabasError as error:
        yield Broken(position + HEADER_BYTES, f"the records of offset {header.base_offset}: {error}")
        return
    if not arguments.records:
        return
    is_metadata = METADATA_TOPIC in path.parent.name or path.suffix == ".checkpoint"
    for record in records:
        facts: dict[str, object] = {"offset": record.offset, "timestamp": shown_time(record.timestamp)}
        if header.is_control:
            yield Row("record", facts | {"marker": _marker(record)})
        elif is_metadata:
            yield Row("record", facts | {"metadata": _metadata(record)})
        else:
            headers = {name: _text(value) for name, value in record.headers}
            data = {"key": _text(record.key), "value": _text(record.value), "headers": headers or None}
            yield Row("record", facts | data)


def _marker(record: Record) -> str:
    kind = int.from_bytes((record.key or b"")[2:4], "big")
    return _MARKERS[kind] if kind < len(_MARKERS) else f"type {kind}"


def _metadata(record: Record) -> str:
    from barnabas.metadata.records import decode_record

    try:
        return repr(decode_record(record.value or b""))
    except BarnabasError as error:
        return f"not a metadata record: {error}"


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")
