"""Files as a sink: each batch writes new files whose names follow from the offsets, so that a replay changes nothing.

``FileStreamSink`` takes the keys of Kafka's connector of that name and appends lines to one file, at least once.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import msgspec

from barnabas.connect.arrow import to_table
from barnabas.connect.config import Config, doc
from barnabas.connect.converters import text_of
from barnabas.connect.errors import DataError
from barnabas.connect.json_schemas import value_to_json
from barnabas.connect.plugins import Context, Sink, connector
from barnabas.connect.records import Batch, Record

_EXTENSIONS = {"lines": "txt", "json": "json", "csv": "csv", "parquet": "parquet"}


class FilesSinkConfig(Config):
    """Keys of the files sink."""

    path: Annotated[str, doc("Directory to write to; each topic has a directory of its own there", importance="HIGH")]
    format: Annotated[Literal["lines", "json", "csv", "parquet"], doc("Format of the files", importance="HIGH")] = (
        "json"
    )


@connector("files-sink")
class FilesSink(Sink[FilesSinkConfig]):
    """Writes ``PATH/TOPIC/TOPIC+PARTITION+FIRST-OFFSET.json``, exactly once."""

    Config = FilesSinkConfig

    def __init__(self, config: FilesSinkConfig, context: Context) -> None:
        super().__init__(config, context)
        self._records: list[Record] = []

    def put(self, records: Sequence[Record]) -> None:
        """Keep records until the batch is complete; those that do not fit the format are refused."""
        kept = [record for record in records if record.value is not None]
        if kept:
            for _, group in groupby(kept, key=_place):
                encoded(list(group), self.config.format)
        self._records.extend(kept)

    def flush(self, batch: Batch) -> list[str]:
        """Write one file per partition; return their names."""
        written = []
        ordered = sorted(self._records, key=lambda record: (*_place(record), record.offset or 0))
        for (topic, partition), group in groupby(ordered, key=_place):
            records = list(group)
            name = f"{quote(topic, safe='')}+{partition}+{records[0].offset:020d}.{_EXTENSIONS[self.config.format]}"
            folder = Path(self.config.path) / quote(topic, safe="")
            folder.mkdir(parents=True, exist_ok=True)
            write_once(folder / name, encoded(records, self.config.format))
            written.append(str(folder / name))
        self._records.clear()
        return written


def _place(record: Record) -> tuple[str, int]:
    return record.topic, record.partition or 0


def encoded(records: Sequence[Record], kind: str) -> bytes:
    """Return records as the content of a file."""
    if kind == "lines":
        return b"".join(text_of(record.value).encode() + b"\n" for record in records)
    if kind == "json":
        values = [value_to_json(record.value_schema, record.value) for record in records]
        return b"".join(msgspec.json.encode(value) + b"\n" for value in values)
    if kind == "csv":
        return _csv(records)
    return _parquet(records)


def _csv(records: Sequence[Record]) -> bytes:
    rows = [_fields(record) for record in records]
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else text_of(value) for name, value in row.items()} for row in rows)
    return text.getvalue().encode()


def _fields(record: Record) -> dict[str, Any]:
    if not isinstance(record.value, dict):
        raise DataError(f"CSV needs structs or objects, not {type(record.value).__name__}")
    return record.value


def _parquet(records: Sequence[Record]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = to_table([record.value for record in records], records[0].value_schema)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


def write_once(path: Path, data: bytes) -> None:
    """Write a file that appears whole; one that is there already is left alone."""
    if path.exists():
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)


class FileStreamSinkConfig(Config):
    """Keys of Kafka's FileStreamSink."""

    file: Annotated[str, doc("File to append to", importance="HIGH")]


@connector("org.apache.kafka.connect.file.FileStreamSinkConnector")
class FileStreamSink(Sink[FileStreamSinkConfig]):
    """Appends the values as lines to one file."""

    Config = FileStreamSinkConfig

    def __init__(self, config: FileStreamSinkConfig, context: Context) -> None:
        super().__init__(config, context)
        self._lines: list[bytes] = []

    def put(self, records: Sequence[Record]) -> None:
        """Keep lines until the batch is complete."""
        self._lines.extend([text_of(record.value).encode() + b"\n" for record in records if record.value is not None])

    def flush(self, batch: Batch) -> None:
        """Append all lines in one write."""
        if self._lines:
            with Path(self.config.file).open("ab") as file:
                file.write(b"".join(self._lines))
                file.flush()
                os.fsync(file.fileno())
        self._lines.clear()
