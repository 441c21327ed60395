"""A database with a transaction: what the SQL sink and source need of PostgreSQL and SQLite."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from barnabas.connect.connectors.sql.urls import Address
from barnabas.connect.schemas import Schema

VALUE: Final = "\0"  # stands for a value in statements; no name and no query can have it
MARKERS: Final = "barnabas_connect_sinks"  # table with the last batch of each sink and task


def quoted(name: str) -> str:
    """Return an identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


class Database(ABC):
    """A session. Everything between ``begin`` and ``commit`` is one transaction."""

    def __init__(self, address: Address) -> None:
        self.address = address

    @abstractmethod
    def errors(self, action: str) -> AbstractContextManager[None]:
        """Raise the driver's errors as ``RetriableError``, or as ``DataError`` if a row is at fault."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction."""

    @abstractmethod
    def commit(self) -> None:
        """Commit it."""

    @abstractmethod
    def savepoint(self) -> AbstractContextManager[Any]:
        """Undo what was done within if it raises."""

    @abstractmethod
    def close(self) -> None:
        """Close the session; an open transaction is rolled back."""

    # --- tables ---------------------------------------------------------------------------------------------------

    def name(self, table: str) -> str:
        """Return a table's name in quotes."""
        return quoted(table)

    @abstractmethod
    def column_type(self, schema: Schema) -> str:
        """Return the type of a column."""

    @abstractmethod
    def columns(self, table: str) -> list[str]:
        """Return the columns of a table; none if it does not exist."""

    @abstractmethod
    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement in which ``VALUE`` stands for each value; return its rows."""

    def create(self, table: str, columns: Mapping[str, Schema], key: Sequence[str]) -> None:
        """Create a table."""
        parts = [
            f"{quoted(name)} {self.column_type(schema)}{' not null' if name in key else ''}"
            for name, schema in columns.items()
        ]
        if key:
            parts.append(f"primary key ({', '.join(map(quoted, key))})")
        self.execute(f"create table if not exists {self.name(table)} ({', '.join(parts)})")

    def add_columns(self, table: str, columns: Mapping[str, Schema]) -> None:
        """Add columns to a table."""
        for name, schema in columns.items():
            self.execute(f"alter table {self.name(table)} add column {quoted(name)} {self.column_type(schema)}")

    # --- rows -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows."""

    @abstractmethod
    def upsert(self, table: str, columns: Sequence[str], key: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows, or update those whose key exists; each key occurs once."""

    @abstractmethod
    def update(self, table: str, columns: Sequence[str], key: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Update the rows whose key exists."""

    @abstractmethod
    def delete(self, table: str, key: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Delete rows by key."""

    # --- markers --------------------------------------------------------------------------------------------------

    def ensure_markers(self) -> None:
        """Create the table of markers."""
        self.execute(
            f"create table if not exists {MARKERS}"
            " (sink text not null, task integer not null, batch bigint not null, primary key (sink, task))"
        )

    @abstractmethod
    def last_batch(self, sink: str, task: int) -> int | None:
        """Return the last batch of a sink's task, and lock its marker until the transaction ends."""

    def mark_batch(self, sink: str, task: int, batch: int) -> None:
        """Note a batch; committed together with its rows."""
        self.execute(
            f"insert into {MARKERS} (sink, task, batch) values ({VALUE}, {VALUE}, {VALUE})"
            " on conflict (sink, task) do update set batch = excluded.batch",
            (sink, task, batch),
        )

    # --- reading --------------------------------------------------------------------------------------------------

    @abstractmethod
    def tables(self, schema: str) -> list[str]:
        """Return the names of all tables."""

    @abstractmethod
    def read(self, query: str, values: Sequence[Any]) -> Iterator[tuple[list[tuple[str, Schema]], Sequence[Any]]]:
        """Yield each row of a query with the columns and their schemas."""


def set_clause(columns: Sequence[str], key: Sequence[str], prefix: str) -> str:
    """Return the assignments of an update, of all columns but the key's."""
    return ", ".join(f"{quoted(name)} = {prefix}{quoted(name)}" for name in columns if name not in key)
