"""Tables as the server's catalog describes them: columns with their types, and primary keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.connect.connectors.postgres.column_types import Column, PgType
from barnabas.connect.connectors.postgres.pgoutput import Relation, RelationColumn, Row
from barnabas.connect.connectors.postgres.selection import Selection
from barnabas.connect.connectors.postgres.sessions import database_errors

if TYPE_CHECKING:
    import psycopg

TYPES: Final = """
select t.oid, t.typname, t.typtype, t.typbasetype, t.typtypmod, case when t.typcategory = 'A' then t.typelem else 0 end,
       coalesce((select array_agg(e.enumlabel::text order by e.enumsortorder)
                 from pg_enum e where e.enumtypid = t.oid), '{}')
from pg_type t where t.oid = any(%s)
"""
COLUMNS: Final = """
select a.attname, a.atttypid, a.atttypmod, a.attnotnull, pg_get_expr(d.adbin, d.adrelid)
from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = %s and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
order by a.attnum
"""
PRIMARY_KEY: Final = """
select a.attname
from pg_index i cross join lateral unnest(i.indkey) with ordinality k(attnum, place)
join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
where i.indrelid = %s and i.indisprimary and k.place <= i.indnkeyatts order by k.place
"""
PUBLISHED: Final = """
select p.schemaname, p.tablename, c.oid from pg_publication_tables p
join pg_namespace n on n.nspname = p.schemaname join pg_class c on c.relnamespace = n.oid and c.relname = p.tablename
where p.pubname = %s order by 1, 2
"""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its columns, in the order in which rows have them."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()  # columns of the key of events
    primary_key: tuple[str, ...] = ()

    def key_bytes(self, row: Row | None) -> bytes | None:
        """Return what tells the keys of rows apart; None without a row or a key."""
        if row is None or not self.key:
            return None
        values = (row[place] for place, column in enumerate(self.columns) if column.name in self.key)
        return b"\0".join(value if isinstance(value, bytes) else b"" for value in values)

    @property
    def full_name(self) -> str:
        """Return ``schema.table``."""
        return f"{self.schema}.{self.name}"


class _Details(NamedTuple):
    """What the stream does not send about a column."""

    optional: bool
    default: str | None  # the expression


class TableCatalog:
    """Describes tables; types are read once, tables whenever they are asked for."""

    def __init__(self, connection: psycopg.Connection[Any], selection: Selection) -> None:
        self._connection = connection
        self._selection = selection
        self._types: dict[int, tuple[Any, ...]] = {}

    def captured(self, publication: str) -> dict[str, int]:
        """Return the tables of a publication that are captured, by name, with their oids."""
        with database_errors("cannot list tables"):
            rows = self._connection.execute(PUBLISHED, (publication,)).fetchall()
        return {f"{schema}.{name}": oid for schema, name, oid in rows if self._selection.has_table(schema, name)}

    def by_oid(self, oid: int) -> Table | None:
        """Return the table as it is now; None if it is gone."""
        with database_errors(f"cannot describe the table with oid {oid}"):
            sql = "select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            found = self._connection.execute(sql + " where c.oid = %s", (oid,)).fetchone()
            if found is None:
                return None
            rows = self._connection.execute(COLUMNS, (oid,)).fetchall()
            columns = tuple(RelationColumn(name, kind, modifier, False) for name, kind, modifier, *_ in rows)
            return self._table(Relation(oid, found[0], found[1], "d", columns), _details(rows))

    def by_name(self, schema: str, name: str) -> Table | None:
        """Return the table of this name as it is now; None if there is none."""
        sql = "select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        with database_errors(f"cannot describe {schema}.{name}"):
            found = self._connection.execute(
                sql + " where n.nspname = %s and c.relname = %s", (schema, name)
            ).fetchone()
        return None if found is None else self.by_oid(found[0])

    def of_relation(self, relation: Relation) -> Table:
        """Return the table of the stream's description; what that lacks is read from the catalog."""
        with database_errors(f"cannot describe {relation.schema}.{relation.table}"):
            rows = self._connection.execute(COLUMNS, (relation.oid,)).fetchall()
            return self._table(relation, _details(rows))

    def _table(self, relation: Relation, details: Mapping[str, _Details]) -> Table:
        self._load_types({column.type_oid for column in relation.columns})
        columns = tuple(
            self._column(column, details.get(column.name, _Details(True, None))) for column in relation.columns
        )
        names = {column.name for column in columns}
        primary = tuple(row[0] for row in self._connection.execute(PRIMARY_KEY, (relation.oid,)))
        primary = primary if names.issuperset(primary) else ()
        key = self._selection.key_columns(relation.schema, relation.table) or primary
        if not key and relation.identity == "i":
            key = tuple(column.name for column in relation.columns if column.is_key)
        return Table(relation.schema, relation.table, columns, key, primary)

    def _load_types(self, oids: set[int]) -> None:
        self._types = {oid: row for oid, row in self._types.items() if row[2] != "e"}  # enums may get new values
        missing = oids - self._types.keys() - {0}
        while missing:
            rows = self._connection.execute(TYPES, (list(missing),)).fetchall()
            self._types.update({row[0]: row for row in rows})
            missing = {oid for row in rows for oid in (row[3], row[5])} - self._types.keys() - {0}

    def _column(self, column: RelationColumn, details: _Details) -> Column:
        oid, modifier, is_domain = column.type_oid, column.type_modifier, False
        row = self._types.get(oid)
        while row is not None and row[2] == "d":  # a domain: its base type decides
            modifier = row[4] if modifier < 0 else modifier
            row, is_domain = self._types.get(row[3]), True
        kind = PgType(oid, "unknown") if row is None else self._type(row)
        default = None if is_domain else details.default  # Debezium knows no defaults of domains
        return Column(column.name, kind, modifier, details.optional, default)

    def _type(self, row: tuple[Any, ...]) -> PgType:
        oid, name, kind, _, _, element, labels = row
        inner = self._types.get(element) if element else None
        return PgType(oid, name, kind, None if inner is None else self._type(inner), tuple(labels))


def _details(rows: list[tuple[Any, ...]]) -> dict[str, _Details]:
    return {row[0]: _Details(not row[3], row[4]) for row in rows}
