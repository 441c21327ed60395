"""Change events in Debezium's format: envelopes, keys, tombstones, heartbeats and transaction metadata. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from barnabas.connect.connectors.postgres.column_types import ColumnType, column_type
from barnabas.connect.connectors.postgres.pgoutput import UNCHANGED, Row
from barnabas.connect.connectors.postgres.selection import Selection
from barnabas.connect.connectors.postgres.settings import PostgresConfig
from barnabas.connect.connectors.postgres.tables import Table
from barnabas.connect.errors import DataError
from barnabas.connect.records import Header, Record
from barnabas.connect.schemas import INT64, STRING, Field, Schema, array, struct
from barnabas.model.version import __version__

NEW_KEY: Final = "__debezium.newkey"  # header of the delete when a key changes
OLD_KEY: Final = "__debezium.oldkey"  # header of the create when a key changes
KEY_LEFT: Final = "u-"  # first half of an update that changes the key: the old key is deleted
KEY_ARRIVED: Final = "u+"  # second half: the new key is created
_NOT_IN_TOPICS: Final = re.compile(r"[^\w.\-]", re.ASCII)
_STAMPS: Final = (Field("ts_ms", INT64), Field("ts_us", INT64), Field("ts_ns", INT64))
_OPTIONAL_STAMPS: Final = tuple(Field(each.name, INT64.as_optional()) for each in _STAMPS)

SOURCE: Final = struct(
    [
        Field("version", STRING),
        Field("connector", STRING),
        Field("name", STRING),
        Field("ts_ms", INT64),
        Field(
            "snapshot",
            Schema(
                STRING.type,
                optional=True,
                default="false",
                name="io.debezium.data.Enum",
                version=1,
                parameters={
                    "allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
                },
            ),
        ),
        Field("db", STRING),
        Field("sequence", STRING.as_optional()),
        *_OPTIONAL_STAMPS[1:],
        Field("schema", STRING),
        Field("table", STRING),
        Field("txId", INT64.as_optional()),
        Field("lsn", INT64.as_optional()),
        Field("xmin", INT64.as_optional()),
        Field("origin", STRING.as_optional()),
        Field("origin_lsn", INT64.as_optional()),
    ],
    name="io.debezium.connector.postgresql.Source",
    version=1,
)
TRANSACTION_BLOCK: Final = struct(
    [Field("id", STRING), Field("total_order", INT64), Field("data_collection_order", INT64)],
    name="event.block",
    version=1,
    optional=True,
)
TRANSACTION_KEY: Final = struct(
    [Field("id", STRING)], name="io.debezium.connector.common.TransactionMetadataKey", version=1
)
TRANSACTION_VALUE: Final = struct(
    [
        Field("status", STRING),
        Field("id", STRING),
        Field("event_count", INT64.as_optional()),
        Field(
            "data_collections",
            array(
                struct(
                    [Field("data_collection", STRING), Field("event_count", INT64)],
                    name="event.collection",
                    version=1,
                    optional=True,
                ),
                optional=True,
            ),
        ),
        Field("ts_ms", INT64),
    ],
    name="io.debezium.connector.common.TransactionMetadataValue",
    version=1,
)
HEARTBEAT_KEY: Final = struct(
    [Field("serverName", STRING)], name="io.debezium.connector.common.ServerNameKey", version=1
)
HEARTBEAT_VALUE: Final = struct([Field("ts_ms", INT64)], name="io.debezium.connector.common.Heartbeat", version=1)


class Origin(NamedTuple):
    """Where an event comes from."""

    lsn: int | None
    time_us: int  # time of the commit, or of the snapshot's query; microseconds since 1970
    xid: int | None = None
    last_commit_lsn: int | None = None
    snapshot: str = "false"
    transaction: tuple[str, int, int] | None = None  # id, order in the transaction, order in the table
    replicated_from: str | None = None  # replication origin: the server that the transaction was made on
    replicated_lsn: int | None = None  # its position there

    def next_in_transaction(self) -> Origin:
        """Return the origin of a second event of the same change."""
        if self.transaction is None:
            return self
        number, total, within = self.transaction
        return self._replace(transaction=(number, total + 1, within + 1))


@dataclass(frozen=True, slots=True)
class Event:
    """A change of a row, or a truncated table; picklable."""

    op: str  # c, u, d, r (read by a snapshot), t (truncated), KEY_LEFT or KEY_ARRIVED
    table: int  # position in the list of tables that goes with the events
    old: Row | None
    new: Row | None
    is_old_full: bool
    origin: Origin


@dataclass(frozen=True, slots=True)
class TransactionMark:
    """A transaction began or ended."""

    status: str
    id: str
    time_us: int
    counts: tuple[tuple[str, int], ...] = ()  # events of each table, at the end


@dataclass(slots=True)
class _Shape:
    """Schemas of a table's events, and its columns' types."""

    topic: str
    columns: tuple[tuple[int, str, ColumnType], ...]  # position in rows, name, type
    key: tuple[tuple[int, str, ColumnType], ...]
    envelope: Schema
    key_schema: Schema | None


class Envelopes:
    """Makes records of the events of some tables."""

    def __init__(self, config: PostgresConfig, tables: list[Table]) -> None:
        self._config = config
        self._tables = tables
        self._shapes: dict[int, _Shape] = {}
        self._selection = Selection(config)
        self._skipped = frozenset(config.skipped_operations)

    def topic(self, name: str) -> str:
        """Return a topic's name after the prefix."""
        return _NOT_IN_TOPICS.sub("_", f"{self._config.topic_prefix}.{name}")

    def records(self, event: Event, now_us: int) -> Iterator[Record]:
        """Yield the records of an event: one, or a delete and its tombstone."""
        shape = self._shape(event.table)
        op = {KEY_LEFT: "d", KEY_ARRIVED: "c"}.get(event.op, event.op)
        if op in self._skipped:
            return
        if op == "t":
            yield self._record(shape, event, op, None, None, None, now_us)
            return
        old_key, new_key = (_struct(shape.key, row) if row and shape.key else None for row in (event.old, event.new))
        before = self._before(shape, event)
        after = None if event.new is None or event.op == KEY_LEFT else _struct(shape.columns, _filled(event))
        key = old_key if after is None else new_key
        record = self._record(shape, event, op, key, before, after, now_us)
        if event.op == KEY_LEFT:
            record.headers.append(Header(NEW_KEY, new_key, shape.key_schema))
        elif event.op == KEY_ARRIVED:
            record.headers.append(Header(OLD_KEY, old_key, shape.key_schema))
        yield record
        if op == "d" and self._config.tombstones_on_delete and shape.key:
            yield Record(shape.topic, None, key, key_schema=shape.key_schema, headers=list(record.headers))

    def _before(self, shape: _Shape, event: Event) -> dict[str, Any] | None:
        """Return the old row: whole with a full replica identity; of a delete at least the key."""
        if event.old is None or event.op == KEY_ARRIVED or (event.op == "u" and not event.is_old_full):
            return None
        return _struct(shape.columns, event.old)

    def _record(self, shape: _Shape, event: Event, op: str, key: Any, before: Any, after: Any, now_us: int) -> Record:
        table, origin = self._tables[event.table], event.origin
        value = {
            "before": before,
            "after": after,
            "source": self._source(table, origin),
            "transaction": _block(origin),
            "op": op,
            "ts_ms": now_us // 1000,
            "ts_us": now_us,
            "ts_ns": now_us * 1000,
        }
        key_schema = shape.key_schema if key is not None else None
        return Record(shape.topic, value, key, key_schema=key_schema, value_schema=shape.envelope)

    def _source(self, table: Table, origin: Origin) -> dict[str, Any]:
        last = "null" if origin.last_commit_lsn is None else f'"{origin.last_commit_lsn}"'
        return {
            "version": __version__,
            "connector": "postgresql",
            "name": self._config.topic_prefix,
            "ts_ms": origin.time_us // 1000,
            "snapshot": origin.snapshot,
            "db": self._config.database_dbname,
            "sequence": f'[{last},"{origin.lsn}"]',
            "ts_us": origin.time_us,
            "ts_ns": origin.time_us * 1000,
            "schema": table.schema,
            "table": table.name,
            "txId": origin.xid,
            "lsn": origin.lsn,
            "xmin": None,
            "origin": origin.replicated_from,
            "origin_lsn": origin.replicated_lsn,
        }

    def _shape(self, number: int) -> _Shape:
        shape = self._shapes.get(number)
        if shape is None:
            shape = self._shapes[number] = self._made(self._tables[number])
        return shape

    def _made(self, table: Table) -> _Shape:
        found = []
        for position, column in enumerate(table.columns):
            kind = column_type(column, self._config)
            if kind is not None and self._selection.has_column(table.schema, table.name, column.name):
                found.append((position, column.name, kind))
        by_name = {name: each for each in found if (name := each[1])}
        missing = [name for name in table.key if name not in by_name]
        if missing:
            raise DataError(f"{table.full_name}: the key needs the columns {', '.join(missing)}, which are left out")
        key = tuple(by_name[name] for name in table.key)
        topic = self.topic(table.full_name)
        row = struct([Field(name, kind.schema) for _, name, kind in found], name=f"{topic}.Value", optional=True)
        envelope = struct(
            [
                Field("before", row),
                Field("after", row),
                Field("source", SOURCE),
                Field("transaction", TRANSACTION_BLOCK),
                Field("op", STRING),
                *_OPTIONAL_STAMPS,
            ],
            name=f"{topic}.Envelope",
            version=2,
        )
        key_schema = struct([Field(name, kind.schema) for _, name, kind in key], name=f"{topic}.Key") if key else None
        return _Shape(topic, tuple(found), key, envelope, key_schema)

    def mark(self, mark: TransactionMark) -> Record:
        """Return the record of a transaction's begin or end."""
        counts = [{"data_collection": name, "event_count": count} for name, count in mark.counts]
        is_end = mark.status == "END"
        value = {
            "status": mark.status,
            "id": mark.id,
            "event_count": sum(count for _, count in mark.counts) if is_end else None,
            "data_collections": counts if is_end else None,
            "ts_ms": mark.time_us // 1000,
        }
        topic = self.topic("transaction")
        return Record(topic, value, {"id": mark.id}, key_schema=TRANSACTION_KEY, value_schema=TRANSACTION_VALUE)

    def heartbeat(self, now_ms: int) -> Record:
        """Return a heartbeat."""
        topic = f"{self._config.topic_heartbeat_prefix}.{self._config.topic_prefix}"
        key = {"serverName": self._config.topic_prefix}
        return Record(topic, {"ts_ms": now_ms}, key, key_schema=HEARTBEAT_KEY, value_schema=HEARTBEAT_VALUE)


def _block(origin: Origin) -> dict[str, Any] | None:
    if origin.transaction is None:
        return None
    number, total, within = origin.transaction
    return {"id": number, "total_order": total, "data_collection_order": within}


def _filled(event: Event) -> Row:
    """Return the new row; large values that did not change are taken from the old row if it is whole."""
    assert event.new is not None
    if event.old is None or not event.is_old_full:
        return event.new
    return tuple(old if new is UNCHANGED else new for old, new in zip(event.old, event.new, strict=True))


def _struct(columns: tuple[tuple[int, str, ColumnType], ...], row: Row) -> dict[str, Any]:
    return {name: kind.value(row[position]) for position, name, kind in columns}
