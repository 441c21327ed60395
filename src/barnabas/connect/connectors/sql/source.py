"""The SQL source: tables, or a query, read again and again: as a whole, or what is new by a growing id or a time."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final, Literal

from barnabas.connect.connectors.sql.database import VALUE, Database, quoted
from barnabas.connect.connectors.sql.opening import open_database
from barnabas.connect.connectors.sql.settings import SqlSourceConfig
from barnabas.connect.connectors.sql.urls import address_of
from barnabas.connect.errors import ConnectError, OffsetError
from barnabas.connect.plugins import Context, Source, connector
from barnabas.connect.records import Entry, Limit, Offset, Part, Record
from barnabas.connect.schemas import Field, struct

QUERY: Final = "query"  # stands for a table's name if the source reads a query
RUN: Final = "run"  # how many times a table was read as a whole
ID: Final = "incrementing"
TIME: Final = "timestamp"


@connector(
    "sql-source",
    aliases=["io.confluent.connect.jdbc.JdbcSourceConnector", "io.aiven.connect.jdbc.JdbcSourceConnector"],
)
class SqlSource(Source[SqlSourceConfig]):
    """Reads rows of tables."""

    Config = SqlSourceConfig
    lane: ClassVar[Literal["shared", "own"]] = "own"
    every: ClassVar[str] = "5 s"
    replay: ClassVar[Literal["stop", "keep"]] = "keep"

    def __init__(self, config: SqlSourceConfig, context: Context) -> None:
        super().__init__(config, context)
        self._database: Database | None = None
        self._read_at = float("-inf")

    @property
    def database(self) -> Database:
        """Return the session, which is opened when it is first needed."""
        if self._database is None:
            config = self.config
            address = address_of(config.connection_url, config.connection_user, config.connection_password.reveal())
            self._database = open_database(address)
        return self._database

    def close(self) -> None:
        """Close the session."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _tables(self) -> list[str]:
        config = self.config
        if config.query:
            return [QUERY]
        names = self.database.tables(config.schema_pattern)
        missing = [name for name in config.table_whitelist if name not in names]
        if missing:
            raise ConnectError(f"there is no table {', '.join(missing)} in {self.database.address}")
        return [name for name in config.table_whitelist or names if name not in config.table_blacklist]

    # --- how far to read ------------------------------------------------------------------------------------------

    def latest(self, since: Offset, limit: Limit) -> Offset:
        """Return the place up to which rows can be read now, for each table."""
        if self.config.mode == "bulk":
            now = time.monotonic()
            if now - self._read_at < self.config.poll_interval_ms / 1000:
                return since
            self._read_at = now
            return {name: {RUN: since.get(name, {}).get(RUN, 0) + 1} for name in self._tables()}
        rows = min(self.config.batch_max_rows, limit.records)
        until = dict(since)
        for name in self._tables():
            found = self._end(name, since.get(name, {}), rows)
            if found is not None:
                until[name] = found
        return until

    def _end(self, table: str, since: dict[str, Any], rows: int) -> dict[str, Any] | None:
        """Return the place of the last row that is new, at most so many rows on; None if none is new."""
        columns = self._columns()
        where, values = self._where(since, None)
        names, order = ", ".join(map(quoted, columns)), ", ".join(f"{quoted(name)} desc" for name in columns)
        inner = f"select {names} from {self._from(table)} where {where} order by {names} limit {rows}"
        found = self.database.execute(f"select * from ({inner}) as page order by {order} limit 1", values)
        if not found:
            return None
        place = dict(zip(self._kinds(), (_json(value) for value in found[0]), strict=True))
        return None if place == since else place

    def _columns(self) -> list[str]:
        config = self.config
        times = [config.timestamp_column_name] if config.has_time else []
        return [*times, *([config.incrementing_column_name] if config.has_id else [])]

    def _kinds(self) -> list[str]:
        return [*([TIME] if self.config.has_time else []), *([ID] if self.config.has_id else [])]

    def _from(self, table: str) -> str:
        return f"({self.config.query}) as query" if self.config.query else self.database.name(self._name(table))

    def _name(self, table: str) -> str:
        return f"{self.config.schema_pattern}.{table}" if self.database.address.kind == "postgresql" else table

    def _where(self, since: dict[str, Any], until: dict[str, Any] | None) -> tuple[str, list[Any]]:
        """Return the condition for rows after a place and up to another one."""
        columns = self._columns()
        row = f"({', '.join(map(quoted, columns))})" if len(columns) > 1 else quoted(columns[0])
        marks = f"({', '.join(VALUE for _ in columns)})" if len(columns) > 1 else VALUE
        parts = [f"{quoted(name)} is not null" for name in columns]
        values: list[Any] = []
        for operator, place in ((">", since), ("<=", until)):
            if place:
                parts.append(f"{row} {operator} {marks}")
                values += [place[kind] for kind in self._kinds()]
        if until is None and self.config.has_time and self.config.timestamp_delay_interval_ms:
            parts.append(f"{quoted(columns[0])} <= {VALUE}")
            age = dt.timedelta(milliseconds=self.config.timestamp_delay_interval_ms)
            values.append((dt.datetime.now(dt.UTC) - age).replace(tzinfo=None).isoformat(" "))
        return " and ".join(parts), values

    # --- what to read ---------------------------------------------------------------------------------------------

    def split(self, since: Offset, until: Offset, tasks: int) -> Sequence[Part]:
        """Return the tables that have new rows, spread over the tasks."""
        names = [name for name in sorted(until) if until[name] != since.get(name)]
        return [Part(since, until, names[task::tasks]) for task in range(min(tasks, len(names)))]

    def read(self, part: Part) -> Iterator[Record]:
        """Yield the rows of some tables between two places."""
        for name in part.data:
            yield from self._rows(name, part.since.get(name, {}), part.until[name])

    def _rows(self, table: str, since: dict[str, Any], until: dict[str, Any]) -> Iterator[Record]:
        topic = self.config.topic_prefix + ("" if self.config.query else table)
        statement = f"select * from {self._from(table)}"
        values: list[Any] = []
        if self.config.mode != "bulk":
            where, values = self._where(since, until)
            statement += f" where {where} order by {', '.join(map(quoted, self._columns()))}"
        for columns, row in self.database.read(statement, values):
            schema = struct(
                [Field(column, kind) for column, kind in columns], name=None if self.config.query else table
            )
            value = {column: each for (column, _), each in zip(columns, row, strict=True)}
            yield Record(topic, value, value_schema=schema)

    # --- offsets --------------------------------------------------------------------------------------------------

    def entries(self, offset: Offset) -> list[Entry]:
        """Return one entry per table, as the JDBC source does."""
        kind = QUERY if self.config.query else "table"
        return [Entry({kind: name}, place) for name, place in sorted(offset.items())]

    def offset(self, entries: Sequence[Entry]) -> Offset:
        """Return the places by table."""
        kind = QUERY if self.config.query else "table"
        made: Offset = {}
        for partition, offset in entries:
            if set(partition) != {kind} or not isinstance(partition[kind], str):
                raise OffsetError(f"a partition must have the key {kind!r} with a string, and no other")
            if not isinstance(offset, dict) or not set(offset) <= {RUN, ID, TIME}:
                raise OffsetError(f"an offset has the keys {RUN!r}, or {TIME!r} and {ID!r}")
            made[partition[kind]] = dict(offset)
        return made


def _json(value: Any) -> Any:
    """Return a value of a place as JSON: times as text in UTC."""
    if isinstance(value, dt.datetime):
        shown = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo is not None else value
        return shown.isoformat(" ")
    if isinstance(value, int | str):
        return value
    return str(value)
