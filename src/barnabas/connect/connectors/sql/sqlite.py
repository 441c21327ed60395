"""SQLite as a database of the SQL connectors. Rows are written one by one in order, within one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from barnabas.connect.connectors.sql.database import MARKERS, VALUE, Database, quoted, set_clause
from barnabas.connect.connectors.sql.urls import Address
from barnabas.connect.connectors.sql.values import sqlite_type, sqlite_value
from barnabas.connect.errors import DataError, RetriableError
from barnabas.connect.schemas import BYTES, FLOAT64, INT64, STRING, Schema

BUSY_SECONDS: Final = 60.0  # to wait for other writers


class SqliteDatabase(Database):
    """A file of SQLite."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        with self.errors(f"cannot open {address}"):
            self._connection = sqlite3.connect(
                address.parameters["path"], timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )

    @contextmanager
    def errors(self, action: str) -> Iterator[None]:
        """Raise the driver's errors as this package's."""
        try:
            yield
        except sqlite3.OperationalError as error:
            is_passing = any(word in str(error) for word in ("locked", "busy", "unable to open", "disk I/O"))
            raise (RetriableError if is_passing else DataError)(f"SQLite: {action}: {error}") from error
        except (sqlite3.Error, OverflowError) as error:
            raise DataError(f"SQLite: {action}: {error}") from error

    def begin(self) -> None:
        """Begin a transaction that writes: others wait for its end."""
        with self.errors("cannot begin"):
            self._connection.execute("begin immediate")

    def commit(self) -> None:
        """Commit it."""
        with self.errors("cannot commit"):
            self._connection.execute("commit")

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what was done within if it raises."""
        self._connection.execute("savepoint rows")
        try:
            yield
        except BaseException:
            self._connection.execute("rollback to rows")
            raise
        finally:
            self._connection.execute("release rows")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def column_type(self, schema: Schema) -> str:
        """Return the type of a column."""
        return sqlite_type(schema)

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table."""
        return [row[1] for row in self.execute(f"pragma table_info({quoted(table)})")]

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement; return its rows."""
        with self.errors("a statement failed"):
            return self._connection.execute(
                statement.replace(VALUE, "?"), [sqlite_value(value) for value in values]
            ).fetchall()

    def _each(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self.errors("a statement failed"):
            self._connection.executemany(statement, [[sqlite_value(value) for value in row] for row in rows])

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows."""
        self._each(f"insert into {_names(table, columns)} values ({_marks(columns)})", rows)

    def upsert(self, table: str, columns: Sequence[str], key: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows, or update those whose key exists."""
        changes = set_clause(columns, key, "excluded.")
        action = f"do update set {changes}" if changes else "do nothing"
        target = ", ".join(map(quoted, key))
        self._each(
            f"insert into {_names(table, columns)} values ({_marks(columns)}) on conflict ({target}) {action}", rows
        )

    def update(self, table: str, columns: Sequence[str], key: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Update the rows whose key exists."""
        others = [name for name in columns if name not in key]
        changes = ", ".join(f"{quoted(name)} = ?" for name in others)
        where = " and ".join(f"{quoted(name)} = ?" for name in key)
        order = [list(columns).index(name) for name in (*others, *key)]
        self._each(
            f"update {quoted(table)} set {changes} where {where}", [[row[place] for place in order] for row in rows]
        )

    def delete(self, table: str, key: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Delete rows by key."""
        where = " and ".join(f"{quoted(name)} = ?" for name in key)
        self._each(f"delete from {quoted(table)} where {where}", rows)

    def last_batch(self, sink: str, task: int) -> int | None:
        """Return the last batch of a sink's task."""
        rows = self.execute(f"select batch from {MARKERS} where sink = ? and task = ?", (sink, task))
        return rows[0][0] if rows else None

    def tables(self, schema: str) -> list[str]:
        """Return the names of all tables."""
        rows = self.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
        return sorted(row[0] for row in rows if row[0] != MARKERS)

    def read(self, query: str, values: Sequence[Any]) -> Iterator[tuple[list[tuple[str, Schema]], Sequence[Any]]]:
        """Yield rows; a column has the schema of its value, since SQLite has types for values only."""
        with self.errors("cannot read"):
            cursor = self._connection.execute(query.replace(VALUE, "?"), [sqlite_value(value) for value in values])
            names = [each[0] for each in cursor.description]
            for row in cursor:
                yield [(name, _schema(value)) for name, value in zip(names, row, strict=True)], row


def _schema(value: Any) -> Schema:
    kinds = {int: INT64, float: FLOAT64, bytes: BYTES}
    return kinds.get(type(value), STRING).as_optional()


def _names(table: str, columns: Sequence[str]) -> str:
    return f"{quoted(table)} ({', '.join(map(quoted, columns))})"


def _marks(columns: Sequence[str]) -> str:
    return ", ".join("?" for _ in columns)
