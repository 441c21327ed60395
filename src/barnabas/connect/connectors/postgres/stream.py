"""The stream of a slot, read ahead by a thread: transactions in pieces, and ranges of them by offset.

A position is ``(lsn, row)``: every transaction whose commit record starts before ``lsn`` lies before it, and so do the
first ``row`` changes of the transaction whose commit record starts at ``lsn``. The server sends the same changes in the
same order again after a reconnect, so that a range of positions always has the same changes.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from barnabas.connect.connectors.postgres.envelope import Event, Origin, TransactionMark
from barnabas.connect.connectors.postgres.pgoutput import (
    Begin,
    Change,
    Commit,
    Decoder,
    Relation,
    TransactionOrigin,
    Truncate,
)
from barnabas.connect.connectors.postgres.selection import Selection
from barnabas.connect.connectors.postgres.sessions import ReplicationSession, database_errors
from barnabas.connect.connectors.postgres.tables import Table
from barnabas.connect.errors import RetriableError

QUEUE_BYTES_MAX: Final = 32 * 1024 * 1024
PIECE_BYTES: Final = 256 * 1024
PIECE_ROWS: Final = 5000
IDLE_SECONDS: Final = 0.2
SIGNALS_BYTES_MAX: Final = 64 * 1024


class Position(NamedTuple):
    """A place in the stream."""

    lsn: int
    row: int = 0


@dataclass(frozen=True, slots=True)
class Signal:
    """A row of the signal table."""

    id: str
    type: str
    data: Any


@dataclass(slots=True)
class Piece:
    """Some consecutive changes of a transaction."""

    begin: Begin
    first_row: int
    changes: list[tuple[Table, Event] | TransactionMark | Signal] = field(default_factory=list)
    size: int = 0
    end_lsn: int | None = None  # where the transaction ends, in its last piece

    @property
    def start(self) -> Position:
        """Return the position before the first change."""
        return Position(self.begin.commit_lsn, self.first_row)

    @property
    def end(self) -> Position:
        """Return the position after the last change, within the transaction."""
        return Position(self.begin.commit_lsn, self.first_row + len(self.changes))

    def between(self, since: Position, until: Position) -> list[Any]:
        """Return the changes between two positions."""
        first = since.row - self.first_row if since.lsn == self.begin.commit_lsn else 0
        last = until.row - self.first_row if until.lsn == self.begin.commit_lsn else len(self.changes)
        return self.changes[max(0, first) : max(0, last)]


class ChangeStream:
    """Reads a slot in a thread of its own. All other methods are called by the driver's threads."""

    def __init__(
        self,
        start: int,
        open_session: Callable[[int], ReplicationSession],
        describe: Callable[[Relation], Table],
        selection: Selection,
        *,
        with_transactions: bool = False,
        status_seconds: float = 10.0,
    ) -> None:
        self.start = start
        self._open = open_session
        self._describe = describe
        self._selection = selection
        self._with_transactions = with_transactions
        self._status_seconds = status_seconds
        self._pieces: deque[Piece] = deque()
        self._size = 0
        self._confirmed = start
        self._idle_lsn = start  # up to here the server has nothing for us beyond the pieces
        self._error: BaseException | None = None
        self._is_closed = False
        self._changed = threading.Condition()
        self._tables: dict[int, Table | None] = {}
        self._open_piece: Piece | None = None
        self._counts: Counter[str] = Counter()
        self._total = 0
        self._last_commit = start
        self._thread = threading.Thread(target=self._run, name="postgres-stream", daemon=True)
        self._thread.start()

    # --- ranges ---------------------------------------------------------------------------------------------------

    def latest(self, since: Position, rows_max: int, bytes_max: int) -> tuple[Position, list[Signal]]:
        """Return how far one may read now, and the signals on the way."""
        with self._changed:
            self._raise()
            position, rows, size = since, 0, 0
            signals: list[Signal] = []
            for piece in self._pieces:
                if piece.end <= since:
                    continue
                if rows and (rows + len(piece.changes) > rows_max or size + piece.size > bytes_max):
                    break
                rows, size = rows + len(piece.changes), size + piece.size
                position = piece.end if piece.end_lsn is None else Position(piece.end_lsn)
                signals += [each for each in piece.between(since, position) if isinstance(each, Signal)]
            return position, signals

    def idle_position(self, since: Position) -> Position:
        """Return how far the server's WAL has nothing for us, if nothing is pending; else ``since``."""
        with self._changed:
            self._raise()
            if any(piece.end > since for piece in self._pieces):
                return since
            return max(since, Position(self._idle_lsn))

    def range(self, since: Position, until: Position, wait_seconds: float) -> list[Any]:
        """Return the changes between two positions; waits until the server has sent them."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._error is not None or self._reaches(until), wait_seconds):
                raise RetriableError(f"PostgreSQL: the slot has not sent changes up to {until} in {wait_seconds:.0f} s")
            self._raise()
            pieces = [piece for piece in self._pieces if piece.end > since and piece.start < until]
            return [change for piece in pieces for change in piece.between(since, until)]

    def _reaches(self, until: Position) -> bool:
        if until.row:
            return self._idle_lsn > until.lsn or any(piece.end >= until for piece in self._pieces)
        return self._idle_lsn >= until.lsn

    def confirm(self, until: Position) -> None:
        """Forget everything up to a position; the server may forget it too."""
        with self._changed:
            while self._pieces and self._pieces[0].end <= until:
                self._size -= self._pieces.popleft().size
            self._confirmed = max(self._confirmed, until.lsn)
            self._changed.notify_all()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """End the thread and its session."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join(timeout=10)

    # --- the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with database_errors("the stream broke off"), closing(self._open(self.start)) as session:
                self._read(session)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next call of the connector raises it
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _read(self, session: ReplicationSession) -> None:
        decoder, next_status = Decoder(), 0.0
        while True:
            with self._changed:
                if self._is_closed:
                    session.confirm(self._confirmed)
                    return
                is_full = self._size > QUEUE_BYTES_MAX
                if is_full:
                    self._changed.wait(IDLE_SECONDS)
                confirmed = self._confirmed
            now = time.monotonic()
            if session.is_reply_wanted or now >= next_status or confirmed > self._sent:
                session.confirm(confirmed)
                self._sent, next_status = confirmed, now + self._status_seconds
            if is_full:
                continue
            found = session.receive(IDLE_SECONDS)
            if found is None:
                self._idle(session.server_lsn)
                continue
            message = decoder.decode(found.payload)
            if isinstance(message, Relation):
                self._described(message)
            elif message is not None:
                self._add(message, found.lsn, len(found.payload))

    _sent = 0

    def _idle(self, server_lsn: int) -> None:
        if self._open_piece is None:
            with self._changed:
                self._idle_lsn = max(self._idle_lsn, server_lsn)
                self._changed.notify_all()

    def _described(self, relation: Relation) -> None:
        """A table appears in the stream, or its columns have changed."""
        is_wanted = self._selection.has_table(relation.schema, relation.table) or self._selection.is_signals(
            relation.schema, relation.table
        )
        self._tables[relation.oid] = self._describe(relation) if is_wanted else None

    def _add(self, message: Any, lsn: int, size: int) -> None:
        if isinstance(message, Begin):
            self._open_piece, self._total, self._origin = Piece(message, 0), 0, None
            self._counts.clear()
            return
        piece = self._open_piece
        if piece is None:  # a message outside of transactions
            return
        if isinstance(message, Commit):
            if self._with_transactions and self._total:
                counts = tuple(self._counts.items())
                piece.changes.append(TransactionMark("END", f"{piece.begin.xid}:{lsn}", message.time_us, counts))
            piece.end_lsn = message.end_lsn
            self._last_commit = message.end_lsn
            self._push(piece)
            self._open_piece = None
            return
        if isinstance(message, TransactionOrigin):
            self._origin = message
        elif isinstance(message, Change):
            self._add_change(piece, message.relation, message, lsn)
        elif isinstance(message, Truncate):
            for relation in message.relations:
                self._add_change(piece, relation, Change("t", relation, None, None), lsn)
        piece.size += size
        if piece.size >= PIECE_BYTES or len(piece.changes) >= PIECE_ROWS:
            self._push(piece)
            self._open_piece = Piece(piece.begin, piece.end.row)

    def _add_change(self, piece: Piece, relation: Relation, change: Change, lsn: int) -> None:
        table = self._tables.get(relation.oid)
        if table is None:
            return
        if self._selection.is_signals(table.schema, table.name):
            signal = _signal(table, change) if change.op == "c" else None
            if signal is not None:
                piece.changes.append(signal)
            if not self._selection.has_table(table.schema, table.name):
                return
        transaction = None
        if self._with_transactions:
            transaction_id = f"{piece.begin.xid}:{lsn}"  # as Debezium has it, with the position of the operation
            if not self._total:
                piece.changes.append(TransactionMark("BEGIN", transaction_id, piece.begin.time_us))
            transaction = (transaction_id, self._total + 1, self._counts[table.full_name] + 1)
            old, new = table.key_bytes(change.old), table.key_bytes(change.new)
            events = 2 if old is not None and new is not None and old != new else 1  # a new key: delete and create
            self._total += events
            self._counts[table.full_name] += events
        begin = piece.begin
        origin = Origin(lsn, begin.time_us, begin.xid, self._last_commit, transaction=transaction)
        if self._origin is not None:
            origin = origin._replace(replicated_from=self._origin.name, replicated_lsn=self._origin.lsn)
        piece.changes.append((table, Event(change.op, -1, change.old, change.new, change.is_old_full, origin)))

    _origin: TransactionOrigin | None = None  # of the transaction under way

    def _push(self, piece: Piece) -> None:
        with self._changed:
            if piece.end_lsn is not None:
                self._idle_lsn = max(self._idle_lsn, piece.end_lsn)
            if piece.changes:
                self._pieces.append(piece)
                self._size += piece.size
            self._changed.notify_all()


def _signal(table: Table, change: Change) -> Signal | None:
    assert change.new is not None
    names = [column.name for column in table.columns]
    values = [each if isinstance(each, bytes) else b"" for each in change.new]
    row = dict(zip(names, values, strict=False))
    data = row.get("data", b"") or b"{}"
    if len(data) > SIGNALS_BYTES_MAX:
        return None
    try:
        return Signal(row.get("id", b"").decode(), row.get("type", b"").decode(), msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
