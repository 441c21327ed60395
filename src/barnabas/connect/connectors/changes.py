"""Records as rows of a change table: the row, the operation, and the position in the topic. Pure.

An envelope of Debezium becomes the row after the change, or of a delete the row before it. Any other record is its own
row. The columns ``_op``, ``_topic``, ``_partition``, ``_offset`` and ``_timestamp`` are added.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from barnabas.connect.connectors.sql.values import plain
from barnabas.connect.errors import DataError
from barnabas.connect.records import Record
from barnabas.connect.schemas import INT32, INT64, STRING, Schema, infer, timestamp_schema

ENVELOPE: Final = frozenset(("before", "after", "op", "source"))
POSITION: Final[Mapping[str, Schema]] = {
    "_op": STRING,
    "_topic": STRING,
    "_partition": INT32,
    "_offset": INT64,
    "_timestamp": timestamp_schema(optional=True),
}


class ChangeRow(NamedTuple):
    """A row of a change table and the schemas of its columns."""

    values: dict[str, Any]
    schemas: dict[str, Schema]


def change_row(record: Record, *, with_tombstones: bool = False) -> ChangeRow | None:
    """Return the row of a record; None for a tombstone, unless it is to be a delete."""
    op, row, schema = _row(record, with_tombstones=with_tombstones)
    if row is None:
        return None
    if not isinstance(row, Mapping):
        raise DataError(f"a change table needs structs or objects, not {type(row).__name__}")
    fields = {field.name: field.schema for field in schema.fields} if schema is not None else {}
    schemas = {str(name): (fields.get(name) or infer(value)).as_optional() for name, value in row.items()}
    values = {str(name): plain(fields.get(name), value) for name, value in row.items()}
    stamp = record.timestamp_ms
    position = {
        "_op": op,
        "_topic": record.topic,
        "_partition": record.partition,
        "_offset": record.offset,
        "_timestamp": None if stamp is None else dt.datetime.fromtimestamp(stamp / 1000, dt.UTC),
    }
    return ChangeRow(values | position, schemas | dict(POSITION))


def _row(record: Record, *, with_tombstones: bool) -> tuple[str, Any, Schema | None]:
    value, schema = record.value, record.value_schema
    if value is None:
        return ("d", record.key, record.key_schema) if with_tombstones else ("d", None, None)
    if isinstance(value, Mapping) and value.keys() >= ENVELOPE:
        side = "before" if value["op"] == "d" else "after"
        field = schema.field(side) if schema is not None else None
        return str(value["op"]), value[side], None if field is None else field.schema
    return "u", value, schema
