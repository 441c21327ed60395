"""PostgreSQL as a database of the SQL connectors, by psycopg 3. Rows are written in bulk by COPY."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import msgspec

from barnabas.connect.connectors.sql.database import MARKERS, VALUE, Database, quoted, set_clause
from barnabas.connect.connectors.sql.urls import Address
from barnabas.connect.connectors.sql.values import postgres_type
from barnabas.connect.errors import ConnectError, DataError, RetriableError
from barnabas.connect.schemas import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    STRING,
    Schema,
    Type,
    array,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)

CONNECT_SECONDS: Final = 10
FETCH_ROWS: Final = 5000
_PASSING: Final = ("08", "40", "53", "55P03", "57")  # SQLSTATE: connection, rollback, resources, locks, shutdown
_SCHEMAS: Final[dict[str, Schema]] = {
    "bool": BOOLEAN,
    "int2": INT16,
    "int4": INT32,
    "int8": INT64,
    "oid": INT64,
    "float4": FLOAT32,
    "float8": FLOAT64,
    "bytea": BYTES,
    "date": date_schema(),
    "time": time_schema(),
    "timestamp": timestamp_schema(),
    "timestamptz": timestamp_schema(),
}


class PostgresqlDatabase(Database):
    """A session of PostgreSQL."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        try:
            import psycopg
        except ImportError as error:
            raise ConnectError("PostgreSQL needs psycopg: pip install 'barnabas[postgres]'") from error
        with self.errors(f"cannot connect to {address}"):
            given: dict[str, Any] = {
                "connect_timeout": CONNECT_SECONDS,
                "application_name": "barnabas-connect",
            } | address.parameters
            self._connection = psycopg.connect(
                **given, autocommit=True, options="-c TimeZone=UTC", client_encoding="utf8"
            )
        self._stages = itertools.count()

    @contextmanager
    def errors(self, action: str) -> Iterator[None]:
        """Raise the driver's errors as this package's."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            text = f"PostgreSQL: {action}: {str(error).strip()}"
            state = error.sqlstate or ""
            if state.startswith(_PASSING) or (isinstance(error, psycopg.OperationalError) and not state):
                raise RetriableError(text) from error
            raise DataError(text) from error

    def begin(self) -> None:
        """Begin a transaction."""
        with self.errors("cannot begin"):
            self._connection.execute("begin")

    def commit(self) -> None:
        """Commit it."""
        with self.errors("cannot commit"):
            self._connection.execute("commit")

    def savepoint(self) -> AbstractContextManager[Any]:
        """Undo what was done within if it raises."""
        return self._connection.transaction()

    def close(self) -> None:
        """Close the session."""
        self._connection.close()

    def name(self, table: str) -> str:
        """Return a table's name in quotes; ``schema.table`` has two parts."""
        return ".".join(quoted(part) for part in table.split(".", 1))

    def column_type(self, schema: Schema) -> str:
        """Return the type of a column."""
        return postgres_type(schema)

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table."""
        rows = self.execute(
            "select attname from pg_attribute where attnum > 0 and not attisdropped"
            f" and attrelid = to_regclass({VALUE}) order by attnum",
            (self.name(table),),
        )
        return [row[0] for row in rows]

    def create(self, table: str, columns: Any, key: Sequence[str]) -> None:
        """Create a table; two tasks that do so at the same time wait for each other."""
        self.execute(f"select pg_advisory_xact_lock(hashtext({VALUE}))", (self.name(table),))
        super().create(table, columns, key)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement; return its rows."""
        with self.errors("a statement failed"):
            text = statement.replace("%", "%%").replace(VALUE, "%s") if values else statement
            cursor = self._connection.execute(text.encode(), values or None)
            return cursor.fetchall() if cursor.description is not None else []

    def _copy(self, target: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        names = ", ".join(map(quoted, columns))
        statement = f"copy {target} ({names}) from stdin".encode()
        action = f"cannot write to {target}"
        with self.errors(action), self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def _staged(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
        """Return a temporary table with these rows."""
        stage = f'pg_temp."rows_{next(self._stages)}"'
        names = ", ".join(map(quoted, columns))
        self.execute(
            f"create temporary table {stage} on commit drop as select {names} from {self.name(table)} with no data"
        )
        self._copy(stage, columns, rows)
        return stage

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows."""
        self._copy(self.name(table), columns, rows)

    def upsert(self, table: str, columns: Sequence[str], key: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows, or update those whose key exists; each key occurs once."""
        stage, names = self._staged(table, columns, rows), ", ".join(map(quoted, columns))
        changes = set_clause(columns, key, "excluded.")
        action = f"do update set {changes}" if changes else "do nothing"
        target = ", ".join(map(quoted, key))
        self.execute(
            f"insert into {self.name(table)} ({names}) select {names} from {stage} on conflict ({target}) {action}"
        )
        self.execute(f"drop table {stage}")

    def update(self, table: str, columns: Sequence[str], key: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Update the rows whose key exists."""
        stage, changes = self._staged(table, columns, rows), set_clause(columns, key, "s.")
        if changes:
            where = " and ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in key)
            self.execute(f"update {self.name(table)} t set {changes} from {stage} s where {where}")
        self.execute(f"drop table {stage}")

    def delete(self, table: str, key: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Delete rows by key."""
        stage = self._staged(table, key, rows)
        where = " and ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in key)
        self.execute(f"delete from {self.name(table)} t using {stage} s where {where}")
        self.execute(f"drop table {stage}")

    def ensure_markers(self) -> None:
        """Create the table of markers."""
        if not self.columns(MARKERS):
            self.execute(f"select pg_advisory_xact_lock(hashtext({VALUE}))", (MARKERS,))
            super().ensure_markers()

    def last_batch(self, sink: str, task: int) -> int | None:
        """Return the last batch of a sink's task, and lock its marker: a task that is left over waits, then stops."""
        self.execute(
            f"insert into {MARKERS} (sink, task, batch) values ({VALUE}, {VALUE}, -1) on conflict do nothing",
            (sink, task),
        )
        rows = self.execute(
            f"select batch from {MARKERS} where sink = {VALUE} and task = {VALUE} for update", (sink, task)
        )
        return int(rows[0][0]) if rows and rows[0][0] >= 0 else None

    def tables(self, schema: str) -> list[str]:
        """Return the names of all tables of a schema."""
        rows = self.execute(f"select tablename::text from pg_tables where schemaname = {VALUE}", (schema,))
        return sorted(row[0] for row in rows if row[0] != MARKERS)

    def read(self, query: str, values: Sequence[Any]) -> Iterator[tuple[list[tuple[str, Schema]], Sequence[Any]]]:
        """Yield rows from a cursor of the server."""
        text = query.replace("%", "%%").replace(VALUE, "%s") if values else query
        with self.errors("cannot read"), self._connection.transaction(), self._connection.cursor("rows") as cursor:
            cursor.itersize = FETCH_ROWS
            cursor.execute(text.encode(), values or None)
            columns = [(each.name, _schema(each)) for each in cursor.description or ()]
            for row in cursor:
                yield columns, [_value(schema, value) for (_, schema), value in zip(columns, row, strict=True)]


def _schema(column: Any) -> Schema:
    """Return the schema of a column of a result; types without one of their own are texts."""
    from psycopg.postgres import types

    found = types.get(column.type_code)
    if found is None:
        return STRING.as_optional()
    if found.name == "numeric" and column.scale is not None:
        return decimal_schema(column.scale, optional=True)
    schema = _SCHEMAS.get(found.name, STRING).as_optional()
    return array(schema, optional=True) if found.array_oid == column.type_code else schema


def _value(schema: Schema, value: Any) -> Any:
    if isinstance(value, list) and schema.items is not None:
        return [_value(schema.items, each) for each in value]
    if value is not None and schema.type is Type.STRING and not isinstance(value, str):
        return msgspec.json.encode(value).decode() if isinstance(value, dict | list) else str(value)
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return value.replace(tzinfo=dt.UTC)
    return value
