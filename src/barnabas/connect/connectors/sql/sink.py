"""The SQL sink: rows and the number of their batch are committed in one transaction, so each batch is written once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.connect.connectors.sql.database import Database
from barnabas.connect.connectors.sql.mapping import SqlRow, row_of
from barnabas.connect.connectors.sql.opening import open_database
from barnabas.connect.connectors.sql.settings import SqlSinkConfig
from barnabas.connect.connectors.sql.urls import address_of
from barnabas.connect.errors import ConnectError, DataError
from barnabas.connect.plugins import Context, Sink, connector
from barnabas.connect.records import Batch, Record


@connector(
    "sql-sink",
    aliases=["io.confluent.connect.jdbc.JdbcSinkConnector", "io.aiven.connect.jdbc.JdbcSinkConnector"],
)
class SqlSink(Sink[SqlSinkConfig]):
    """Writes records as rows of tables."""

    Config = SqlSinkConfig

    def __init__(self, config: SqlSinkConfig, context: Context) -> None:
        super().__init__(config, context)
        self._database: Database | None = None
        self._columns: dict[str, list[str]] = {}

    @property
    def database(self) -> Database:
        """Return the session of the batch."""
        assert self._database is not None, "open comes first"
        return self._database

    def open(self, batch: Batch) -> None:
        """Begin the transaction of the batch."""
        config = self.config
        address = address_of(config.connection_url, config.connection_user, config.connection_password.reveal())
        self._database = open_database(address)
        self._database.begin()
        self._database.ensure_markers()

    def last(self, batch: Batch) -> int | None:
        """Return the last batch of this task."""
        return self.database.last_batch(batch.sink, batch.task)

    def put(self, records: Sequence[Record]) -> None:
        """Write rows, all of them or none."""
        rows = [row_of(record, self.config) for record in records]
        columns = dict(self._columns)
        try:
            with self.database.savepoint():
                for group in _groups(rows):
                    for start in range(0, len(group), self.config.batch_size):
                        self._write(group[start : start + self.config.batch_size])
        except BaseException:
            self._columns = columns  # tables that were created are gone again
            raise

    def _write(self, rows: Sequence[SqlRow]) -> None:
        first = rows[0]
        if first.is_delete:
            if self._known(first):
                self.database.delete(first.table, first.key, [row.key_values for row in rows])
            return
        self._prepare(first)
        names = list(first.values)
        values = [list(row.values.values()) for row in rows]
        match self.config.insert_mode:
            case "insert":
                self.database.insert(first.table, names, values)
            case "upsert":
                self.database.upsert(first.table, names, first.key, values)
            case "update":
                self.database.update(first.table, names, first.key, values)

    def _known(self, row: SqlRow) -> list[str]:
        """Return the columns of a table; none if it does not exist."""
        if row.table not in self._columns:
            found = self.database.columns(row.table)
            if not found:
                return []
            self._columns[row.table] = found
        return self._columns[row.table]

    def _prepare(self, row: SqlRow) -> None:
        """Create the table, or add columns, if the configuration admits that."""
        if not row.values:
            raise DataError("the record has no fields to write")
        known = self._known(row)
        if not known:
            if not self.config.auto_create:
                raise ConnectError(f"there is no table {row.table}, and auto.create is false")
            self.database.create(row.table, {name: row.schemas[name] for name in row.values}, row.key)
            known = self._known(row)
        missing = {name: row.schemas[name] for name in row.values if name not in known}
        if missing:
            if not self.config.auto_evolve:
                raise DataError(f"table {row.table} has no column {', '.join(missing)}, and auto.evolve is false")
            self.database.add_columns(row.table, missing)
            del self._columns[row.table]

    def flush(self, batch: Batch) -> None:
        """Commit the rows together with the number of the batch."""
        self.database.mark_batch(batch.sink, batch.task, batch.id)
        self.database.commit()

    def close(self) -> None:
        """Close the session; what was not committed is rolled back."""
        if self._database is not None:
            self._database.close()
            self._database = None


def _groups(rows: Sequence[SqlRow]) -> list[list[SqlRow]]:
    """Return rows that one statement can write: of one table with the same columns. The last row of a key wins."""
    latest: dict[Any, SqlRow] = {}
    for number, row in enumerate(rows):
        place = (row.table, row.key_values) if row.key else number
        latest.pop(place, None)
        latest[place] = row
    groups: dict[Any, list[SqlRow]] = {}
    for row in latest.values():
        groups.setdefault((row.table, row.is_delete, tuple(row.values)), []).append(row)
    return list(groups.values())
