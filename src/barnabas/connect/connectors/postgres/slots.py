"""The replication slot and the publication: created if missing, checked, measured and dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from barnabas.connect.connectors.postgres.pgoutput import lsn_text
from barnabas.connect.connectors.postgres.selection import Selection
from barnabas.connect.connectors.postgres.sessions import database_errors
from barnabas.connect.connectors.postgres.settings import PostgresConfig
from barnabas.connect.errors import ConnectError

if TYPE_CHECKING:
    import psycopg

VERSION_MIN: Final = 120_000
SLOT: Final = """
select plugin, database, confirmed_flush_lsn - '0/0'::pg_lsn, wal_status, active,
       pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)
from pg_replication_slots where slot_name = %s
"""
TABLES: Final = """
select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and c.relpersistence = 'p' and not c.relispartition order by 1, 2
"""


@dataclass(frozen=True, slots=True)
class SlotState:
    """A slot as the server shows it."""

    confirmed_lsn: int
    is_lost: bool  # the server has removed WAL that the slot needs
    is_active: bool
    wal_bytes: int  # WAL that the slot holds back


class SlotAdmin:
    """Creates and watches a connector's slot and publication."""

    def __init__(self, connection: psycopg.Connection[Any], config: PostgresConfig) -> None:
        self._connection = connection
        self._config = config

    def check_server(self) -> None:
        """Raise an error if the server cannot replicate logically."""
        version = self._connection.info.server_version
        if version < VERSION_MIN:
            raise ConnectError(f"PostgreSQL {version // 10000} is too old: version 12 or later is needed")
        with database_errors("cannot read wal_level"):
            level = self._connection.execute("show wal_level").fetchone()
        if level is None or level[0] != "logical":
            raise ConnectError(
                f"wal_level of the server is {level and level[0]}: set wal_level=logical and restart the server"
            )

    def tables(self) -> list[tuple[str, str]]:
        """Return schemas and names of all tables that can be published."""
        with database_errors("cannot list tables"):
            return [(schema, table) for schema, table in self._connection.execute(TABLES).fetchall()]

    def state(self) -> SlotState | None:
        """Return the slot; None if there is none of this name."""
        with database_errors(f"cannot read slot {self._config.slot_name}"):
            row = self._connection.execute(SLOT, (self._config.slot_name,)).fetchone()
        if row is None:
            return None
        plugin, database, confirmed, status, active, held = row
        if plugin != "pgoutput" or database != self._config.database_dbname:
            raise ConnectError(
                f"slot {self._config.slot_name} is of plugin {plugin} and database {database}; choose another slot.name"
            )
        return SlotState(int(confirmed or 0), status == "lost", bool(active), int(held or 0))

    def create(self) -> SlotState:
        """Create the slot; return it as it is then."""
        name = self._config.slot_name
        with database_errors(f"cannot create slot {name}"):
            self._connection.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", (name,))
        made = self.state()
        assert made is not None, "the slot was created a moment ago"
        return made

    def drop(self) -> None:
        """Drop the slot, also if a session of another process still reads it."""
        name = self._config.slot_name
        with database_errors(f"cannot drop slot {name}"):
            self._connection.execute(
                "select pg_terminate_backend(active_pid, 5000) from pg_replication_slots"
                " where slot_name = %s and active_pid is not null",
                (name,),
            )
            self._connection.execute(
                "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s", (name,)
            )

    def usable(self, lsn: int) -> str:
        """Return why the stream cannot go on from a position; empty if it can."""
        found = self.state()
        name = self._config.slot_name
        if found is None:
            return f"the slot {name} is gone: changes since {lsn_text(lsn)} are lost"
        if found.is_lost:
            return f"the server has removed WAL that the slot {name} needs (wal_status is lost)"
        if found.confirmed_lsn > lsn:
            return (
                f"the slot {name} was moved to {lsn_text(found.confirmed_lsn)} by another reader: changes since"
                f" {lsn_text(lsn)} are lost"
            )
        return ""

    def ensure_publication(self, selection: Selection) -> None:
        """Create the publication if it is missing and the configuration admits that."""
        from psycopg import sql

        config = self._config
        name = sql.Identifier(config.publication_name)
        with database_errors(f"cannot create publication {config.publication_name}"):
            found = self._connection.execute(
                "select 1 from pg_publication where pubname = %s", (config.publication_name,)
            ).fetchone()
            mode = config.publication_autocreate_mode
            if found is not None and mode != "filtered":
                return
            if mode == "disabled":
                raise ConnectError(
                    f"there is no publication {config.publication_name}, and publication.autocreate.mode is disabled"
                )
            tables = sql.SQL(", ").join(
                sql.Identifier(schema, table)
                for schema, table in self.tables()
                if selection.has_table(schema, table) or selection.is_signals(schema, table)
            )
            options = sql.SQL(" with (publish_via_partition_root = {})").format(config.publish_via_partition_root)
            if found is not None:
                self._connection.execute(sql.SQL("alter publication {} set table {}").format(name, tables))
            elif mode == "all_tables":
                self._connection.execute(sql.SQL("create publication {} for all tables").format(name) + options)
            elif mode == "no_tables":
                self._connection.execute(sql.SQL("create publication {}").format(name) + options)
            else:
                self._connection.execute(sql.SQL("create publication {} for table {}").format(name, tables) + options)
