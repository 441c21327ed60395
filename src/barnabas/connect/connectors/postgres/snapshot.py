"""Snapshots: tables are read in chunks of the primary key, each in a short transaction of its own.

The slot exists before the first chunk is read. Whatever changes afterwards arrives in the stream after the chunk and
wins, so any chunk may be read again, and no transaction stays open for the length of the snapshot.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.connect.connectors.postgres.envelope import Event, Origin
from barnabas.connect.connectors.postgres.sessions import database_errors
from barnabas.connect.connectors.postgres.tables import Table

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

Bound = list[str] | None  # key of a row as text; None: before the first row, or after the last one
LAST: Final = "last"
LAST_IN_TABLE: Final = "last_in_data_collection"


def bounds(connection: psycopg.Connection[Any], table: Table, after: Bound, rows: int, count: int) -> list[Bound]:
    """Return the upper bounds of at most ``count`` chunks after a key; the last one is None at the table's end."""
    from psycopg import sql

    if not table.primary_key:
        return [None]
    keys = _keys(table)
    numbered = sql.SQL("select {keys}, row_number() over (order by {keys}) as n from {table} where {where}").format(
        keys=keys, table=_name(table), where=_where(table, after, None)
    )
    texts = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(each)) for each in table.primary_key)
    query = sql.SQL("select {texts} from ({numbered} order by {keys} limit {limit}) x where n %% {rows} = 0 order by n")
    made = query.format(
        texts=texts, numbered=numbered, keys=keys, limit=sql.Literal(rows * count), rows=sql.Literal(rows)
    )
    with database_errors(f"cannot find the chunks of {table.full_name}"):
        found: list[Bound] = [list(row) for row in connection.execute(_plain(made.as_string(connection)))]
    return found if len(found) == count else [*found, None]


def _plain(text: str) -> Any:
    return text.replace("%%", "%")


def rows(
    connection: psycopg.Connection[Any], table: Table, after: Bound, until: Bound, limit: int | None = None
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a chunk as bytes in PostgreSQL's text format."""
    from psycopg import sql

    columns = sql.SQL(", ").join(sql.Identifier(column.name) for column in table.columns)
    query = sql.SQL("copy (select {columns} from {table} where {where}{order}{limit}) to stdout").format(
        columns=columns,
        table=_name(table),
        where=_where(table, after, until),
        order=sql.SQL(" order by {}").format(_keys(table)) if table.primary_key else sql.SQL(""),
        limit=sql.SQL("") if limit is None else sql.SQL(" limit {}").format(limit),
    )
    action = f"cannot read {table.full_name}"
    with database_errors(action), connection.cursor() as cursor, cursor.copy(query) as copy:
        for row in copy.rows():
            yield tuple(None if value is None else value.encode() for value in row)


def events(rows_read: Iterator[tuple[Any, ...]], lsn: int, kind: str, *, is_first: bool, final: str) -> Iterator[Event]:
    """Yield the events of a chunk; ``final`` is the mark of its last row, ``kind`` that of the others."""
    previous: tuple[Any, ...] | None = None
    mark = "first" if is_first else kind
    for row in rows_read:
        if previous is not None:
            yield _event(previous, lsn, mark)
            mark = kind
        previous = row
    if previous is not None:
        yield _event(previous, lsn, final or mark)


def _event(row: tuple[Any, ...], lsn: int, mark: str) -> Event:
    return Event("r", 0, None, row, False, Origin(lsn, time.time_ns() // 1000, snapshot=mark))


def _name(table: Table) -> sql.Identifier:
    from psycopg import sql

    return sql.Identifier(table.schema, table.name)


def _keys(table: Table) -> sql.Composed:
    from psycopg import sql

    return sql.SQL(", ").join(sql.Identifier(each) for each in table.primary_key)


def _where(table: Table, after: Bound, until: Bound) -> sql.Composable:
    from psycopg import sql

    parts: list[sql.Composable] = []
    for operator, bound in ((">", after), ("<=", until)):
        if bound is not None:
            parts.append(sql.SQL("({}) {} ({})").format(_keys(table), sql.SQL(operator), _literals(table, bound)))
    return sql.SQL(" and ").join(parts) if parts else sql.SQL("true")


def _literals(table: Table, bound: Sequence[str]) -> sql.Composed:
    """Return the values of a bound; a plain literal takes the type of the column that it is compared with."""
    from psycopg import sql

    if len(bound) != len(table.primary_key):
        raise ValueError(f"{table.full_name}: the primary key has changed in the middle of a snapshot")
    return sql.SQL(", ").join(sql.Literal(value) for value in bound)
