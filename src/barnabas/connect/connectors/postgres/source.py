"""The PostgreSQL source: a snapshot in chunks, then the changes of a replication slot, each exactly once.

Its offset is a JSON object::

    {"lsn": 26700128, "row": 0,          # position in the stream, see stream.py
     "snapshot": {"tables": ["public.orders"], "after": ["4711"], "kind": "initial"} or null,
     "did": {},                          # chunks: those that the last batch has read; renewed: the slot is a new one
     "beat": 1767323045678}              # time of the last heartbeat, milliseconds since 1970
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from barnabas.connect.connectors.postgres import snapshot
from barnabas.connect.connectors.postgres.envelope import Envelopes, TransactionMark
from barnabas.connect.connectors.postgres.parts import cut_by_key
from barnabas.connect.connectors.postgres.pgoutput import lsn_text
from barnabas.connect.connectors.postgres.selection import Selection
from barnabas.connect.connectors.postgres.sessions import ReplicationSession, connect, database_errors
from barnabas.connect.connectors.postgres.settings import PostgresConfig
from barnabas.connect.connectors.postgres.slots import SlotAdmin
from barnabas.connect.connectors.postgres.stream import ChangeStream, Position, Signal
from barnabas.connect.connectors.postgres.tables import TableCatalog
from barnabas.connect.errors import ConnectError, OffsetError
from barnabas.connect.plugins import Context, Source, connector
from barnabas.connect.records import Entry, Limit, Offset, Part, Record

if TYPE_CHECKING:
    import psycopg

REPLAY_SECONDS_MAX: Final = 300.0  # for the slot to send the changes of a repeated batch again
IDLE_SECONDS: Final = 10.0  # between two batches that only move the position while no table changes
IDLE_BYTES: Final = 16 * 1024 * 1024  # WAL of others after which the position moves at once
SLOT_CHECK_SECONDS: Final = 10.0
SIGNAL_TABLES_MAX: Final = 1000


@connector("postgres-source", aliases=["io.debezium.connector.postgresql.PostgresConnector"])
class PostgresSource(Source[PostgresConfig]):
    """Captures the changes of a PostgreSQL database."""

    Config = PostgresConfig
    lane: ClassVar[Literal["shared", "own"]] = "own"
    every: ClassVar[str] = "500 ms"
    replay: ClassVar[Literal["stop", "keep"]] = "keep"

    def __init__(self, config: PostgresConfig, context: Context) -> None:
        super().__init__(config, context)
        self._selection = Selection(config)
        self._session: psycopg.Connection[Any] | None = None
        self._stream: ChangeStream | None = None
        self._catalog_session: psycopg.Connection[Any] | None = None
        self._idle_at = 0.0
        self._slot_checked_at = 0.0
        self._is_snapshot_due = False
        self._wal_bytes = 0

    # --- where to begin -------------------------------------------------------------------------------------------

    def start(self) -> Offset:
        """Create publication and slot; return the position of the slot and the tables to read first."""
        admin = self._admin()
        admin.check_server()
        admin.ensure_publication(self._selection)
        found = admin.state()
        if found is None or found.is_lost:
            if found is not None:
                admin.drop()
            found = admin.create()
        with_snapshot = self.config.snapshot_mode not in ("no_data", "never")
        return self._begin(found.confirmed_lsn, with_snapshot=with_snapshot)

    def _begin(self, lsn: int, *, with_snapshot: bool) -> Offset:
        tables = self._snapshot_tables() if with_snapshot else []
        return _offset(Position(lsn), _snapshot_of(tables, "initial", is_first=True), {}, 0)

    def _snapshot_tables(self) -> list[str]:
        found = TableCatalog(self._connected(), self._selection).captured(self.config.publication_name)
        return [name for name in found if self._selection.is_in_snapshot(*name.split(".", 1))]

    # --- how far to read ------------------------------------------------------------------------------------------

    def latest(self, since: Offset, limit: Limit) -> Offset:
        """Return the end of the next batch: chunks of a snapshot and changes of the stream take turns."""
        position = _position(since)
        renewed = self._watch_slot(position)
        if renewed is not None:
            return renewed
        stream = self._streaming(position)
        rows_max = min(self.config.max_batch_size, limit.records)
        until, signals = stream.latest(position, rows_max, limit.size_bytes)
        todo, was_chunk = since["snapshot"], bool(since["did"])
        if todo is not None and (until == position or not was_chunk):
            return self._next_chunks(since, todo)
        is_over = self.config.snapshot_mode == "initial_only" and todo is None
        if until != position and not is_over:
            return _offset(until, self._signalled(todo, signals), {}, self._beat(since))
        return self._idle(since, position, stream)

    def _next_chunks(self, since: Offset, todo: dict[str, Any]) -> Offset:
        """Return the offset after the next chunks of the snapshot's current table."""
        connection = self._connected()
        catalog = TableCatalog(connection, self._selection)
        oid = catalog.captured(self.config.publication_name).get(todo["tables"][0])
        table = None if oid is None else catalog.by_oid(oid)
        size = self.config.snapshot_chunk_rows
        if todo["kind"] == "incremental":
            size = self.config.incremental_snapshot_chunk_size
        ends: list[snapshot.Bound] = [None]
        if table is not None:
            ends = snapshot.bounds(connection, table, todo["after"], size, self.context.tasks_max)
        rest: dict[str, Any] | None = {**todo, "after": ends[-1], "first": False}
        if ends[-1] is None:
            rest = _snapshot_of(todo["tables"][1:], todo["kind"], is_first=False)
        did = {"table": todo["tables"][0], "ends": [todo["after"], *ends], "kind": todo["kind"], "first": todo["first"]}
        return _offset(_position(since), rest, {"chunks": did}, self._beat(since))

    def _signalled(self, todo: dict[str, Any] | None, signals: Sequence[Signal]) -> dict[str, Any] | None:
        """Return what remains of the snapshot after signals that ask for more, or for less."""
        for signal in signals:
            names = signal.data.get("data-collections", []) if isinstance(signal.data, dict) else []
            if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
                self.context.log.warning("signal %s has no list of data-collections", signal.id)
                continue
            if signal.type == "execute-snapshot":
                wanted = Selection(_with_tables(self.config, names))
                tables = [each for each in self._snapshot_tables() if wanted.has_table(*each.split(".", 1))]
                if todo is None:
                    todo = _snapshot_of(tables[:SIGNAL_TABLES_MAX], "incremental", is_first=False)
                else:
                    todo = {**todo, "tables": [*todo["tables"], *tables][:SIGNAL_TABLES_MAX]}
            elif signal.type == "stop-snapshot" and todo is not None:
                rest = [each for each in todo["tables"] if names and each not in names]
                is_current_kept = bool(rest) and rest[0] == todo["tables"][0]
                after = todo["after"] if is_current_kept else None
                todo = {**todo, "tables": rest, "after": after} if rest else None
            else:
                self.context.log.warning("signal %s has the unknown type %s", signal.id, signal.type)
        return todo

    def _idle(self, since: Offset, position: Position, stream: ChangeStream) -> Offset:
        """Return the same offset; or, now and then, one further on in the WAL that has nothing for this connector."""
        reached = stream.idle_position(position)
        now = time.monotonic()
        beat = self._beat(since)
        is_due = now - self._idle_at >= IDLE_SECONDS or reached.lsn - position.lsn >= IDLE_BYTES
        if beat == since["beat"] and not (reached != position and is_due):
            return since
        self._idle_at = now
        return _offset(reached, since["snapshot"], {}, beat)

    def _beat(self, since: Offset) -> int:
        """Return the time of the last heartbeat: now, if one is due."""
        now = time.time_ns() // 1_000_000
        interval = self.config.heartbeat_interval_ms
        if not interval or now - since["beat"] < interval:
            return int(since["beat"])
        if self.config.heartbeat_action_query:
            with database_errors("heartbeat.action.query failed"):
                self._connected().execute(self.config.heartbeat_action_query.encode())
        return now

    def _watch_slot(self, position: Position) -> Offset | None:
        """Check the slot now and then; return a new beginning if it is unusable or holds too much WAL back."""
        now = time.monotonic()
        if self._stream is not None and now - self._slot_checked_at < SLOT_CHECK_SECONDS:
            return None
        is_first = self._stream is None
        self._slot_checked_at = now
        admin, name, limit = self._admin(), self.config.slot_name, self.config.slot_max_wal
        problem = admin.usable(position.lsn) if is_first else ""
        state = admin.state()
        held = 0 if state is None else state.wal_bytes
        self._wal_bytes = held
        if limit and held > limit:
            problem = f"the slot {name} holds {held} bytes of WAL back, more than slot.max.wal={limit}"
        elif self.config.slot_warn_wal and held > self.config.slot_warn_wal:
            self.context.log.warning("slot %s holds %d bytes of WAL back", name, held)
        if not problem:
            return None
        if not limit and self.config.snapshot_mode != "when_needed":
            raise ConnectError(
                f"PostgreSQL: {problem}. Reset the connector's offsets to take a new snapshot, or set"
                " snapshot.mode=when_needed"
            )
        self.context.log.warning("%s; a new slot and a new snapshot follow", problem)
        self._close_stream()
        admin.drop()
        return self._begin(admin.create().confirmed_lsn, with_snapshot=True) | {"did": {"renewed": True}}

    # --- what to read ---------------------------------------------------------------------------------------------

    def split(self, since: Offset, until: Offset, tasks: int) -> Sequence[Part]:
        """Return chunks of a table, or the changes of the stream cut by key."""
        heartbeat = until["beat"] if until["beat"] != since["beat"] else None
        parts: list[Part] = []
        if "chunks" in until["did"]:
            parts = self._chunk_parts(since, until)
        elif "renewed" not in until["did"]:
            parts = self._stream_parts(since, until, tasks)
        if heartbeat is not None:
            parts = parts or [Part(since, until, {})]
            parts[0].data["beat"] = heartbeat
        return parts

    def _chunk_parts(self, since: Offset, until: Offset) -> list[Part]:
        did = until["did"]["chunks"]
        ends, made = did["ends"], []
        for number, (after, end) in enumerate(pairwise(ends)):
            final = "" if end is not None else snapshot.LAST_IN_TABLE if until["snapshot"] else snapshot.LAST
            kind = "incremental" if did["kind"] == "incremental" else "true"
            data = {
                "table": did["table"],
                "after": after,
                "until": end,
                "lsn": until["lsn"],
                "kind": kind,
                "first": did["first"] and number == 0 and kind == "true",
                "final": final if kind == "true" else "",
            }
            made.append(Part(since, until, data))
        return made

    def _stream_parts(self, since: Offset, until: Offset, tasks: int) -> list[Part]:
        first, last = _position(since), _position(until)
        if last <= first:
            return []
        changes = self._streaming(first).range(first, last, REPLAY_SECONDS_MAX)
        return cut_by_key(since, until, changes, tasks)

    def read(self, part: Part) -> Iterator[Record]:
        """Yield the records of a part; runs in executors."""
        data, now_us = part.data, time.time_ns() // 1000
        if "beat" in data:
            yield Envelopes(self.config, []).heartbeat(data["beat"])
        if "table" in data:
            yield from self._chunk(data)
        elif "events" in data:
            envelopes = Envelopes(self.config, data["tables"])
            for each in data["events"]:
                if isinstance(each, TransactionMark):
                    yield envelopes.mark(each)
                else:
                    yield from envelopes.records(each, now_us)

    def _chunk(self, data: dict[str, Any]) -> Iterator[Record]:
        connection = self._connected()
        catalog = TableCatalog(connection, self._selection)
        oid = catalog.captured(self.config.publication_name).get(data["table"])
        table = None if oid is None else catalog.by_oid(oid)
        if table is None:
            self.context.log.warning("table %s is gone: its snapshot is left out", data["table"])
            return
        envelopes = Envelopes(self.config, [table])
        found = snapshot.rows(connection, table, data["after"], data["until"])
        marked = snapshot.events(found, data["lsn"], data["kind"], is_first=data["first"], final=data["final"])
        for event in marked:
            yield from envelopes.records(event, event.origin.time_us)

    def sample(self, count: int) -> Iterator[Record]:
        """Yield rows of the first table that has some, without slot and publication."""
        connection = self._connected()
        catalog = TableCatalog(connection, self._selection)
        for schema, name in SlotAdmin(connection, self.config).tables():
            table = catalog.by_name(schema, name) if self._selection.is_in_snapshot(schema, name) else None
            if table is not None:
                envelopes = Envelopes(self.config, [table])
                found = islice(snapshot.rows(connection, table, None, None, limit=count), count)
                for event in snapshot.events(found, 0, "true", is_first=False, final=""):
                    yield from envelopes.records(event, event.origin.time_us)
                    count -= 1
            if count <= 0:
                return

    # --- what is done ---------------------------------------------------------------------------------------------

    def committed(self, until: Offset) -> None:
        """Let the server forget what is durable."""
        if self._stream is not None:
            self._stream.confirm(_position(until))

    def details(self) -> dict[str, Any]:
        """Return the slot, and how much WAL it held back when it was checked last."""
        return {"slot": self.config.slot_name, "slot_wal_bytes": self._wal_bytes}

    def entries(self, offset: Offset) -> list[Entry]:
        """Return the offset as Debezium's: one partition, named after the topics' prefix."""
        return [Entry({"server": self.config.topic_prefix}, offset)] if offset else []

    def offset(self, entries: Sequence[Entry]) -> Offset:
        """Return the offset of such an entry; one of Debezium's own, with ``lsn`` alone, is taken over as well."""
        if len(entries) != 1 or dict(entries[0].partition) != {"server": self.config.topic_prefix}:
            raise OffsetError(f"there must be one partition: {{'server': {self.config.topic_prefix!r}}}")
        given = dict(entries[0].offset or {})
        lsn, row = given.get("lsn"), given.get("row", 0)
        if isinstance(lsn, bool) or not isinstance(lsn, int) or lsn < 0:
            raise OffsetError("the offset must have the key 'lsn' with a whole number")
        if isinstance(row, bool) or not isinstance(row, int) or row < 0:
            raise OffsetError("'row' must be a whole number")
        return _offset(Position(lsn, row), given.get("snapshot"), {}, int(given.get("beat") or 0))

    def close(self) -> None:
        """End all sessions; drop the slot if the configuration says so."""
        was_streaming = self._stream is not None
        self._close_stream()
        if was_streaming and self.config.slot_drop_on_stop:
            self._admin().drop()
        if self._session is not None:
            self._session.close()
            self._session = None

    # --- sessions -------------------------------------------------------------------------------------------------

    def _connected(self) -> psycopg.Connection[Any]:
        if self._session is not None and (self._session.closed or self._session.broken):
            self._session.close()
            self._session = None
        if self._session is None:
            self._session = connect(self.config)
        return self._session

    def _admin(self) -> SlotAdmin:
        return SlotAdmin(self._connected(), self.config)

    def _streaming(self, position: Position) -> ChangeStream:
        """Return the stream, which is open from the first call on."""
        stream = self._stream
        if stream is not None and position.lsn < stream.start:
            self._close_stream()
            stream = None
        if stream is None:
            problem = self._admin().usable(position.lsn)
            if problem:
                raise ConnectError(f"PostgreSQL: {problem}")
            self._catalog_session = connect(self.config)  # for the stream's thread alone
            catalog = TableCatalog(self._catalog_session, self._selection)
            self.context.log.info("streaming from %s", lsn_text(position.lsn))
            self._stream = stream = ChangeStream(
                position.lsn,
                lambda start: ReplicationSession(self.config, start),
                catalog.of_relation,
                self._selection,
                with_transactions=self.config.provide_transaction_metadata,
                status_seconds=self.config.status_update_interval_ms / 1000,
            )
        return stream

    def _close_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if self._catalog_session is not None:
            self._catalog_session.close()
            self._catalog_session = None


def _offset(position: Position, todo: dict[str, Any] | None, did: dict[str, Any], beat: int) -> Offset:
    return {"lsn": position.lsn, "row": position.row, "snapshot": todo, "did": did, "beat": beat}


def _position(offset: Offset) -> Position:
    return Position(int(offset["lsn"]), int(offset["row"]))


def _snapshot_of(tables: Sequence[str], kind: str, *, is_first: bool) -> dict[str, Any] | None:
    return {"tables": list(tables), "after": None, "kind": kind, "first": is_first} if tables else None


def _with_tables(config: PostgresConfig, names: Sequence[str]) -> PostgresConfig:
    import msgspec

    return msgspec.structs.replace(config, table_include_list=tuple(names), table_exclude_list=())
