"""Decoder of pgoutput, protocol version 1: the messages of PostgreSQL's logical replication. Pure.

Values stay as the text that PostgreSQL sends. A message that is cut off or malformed raises ``ProtocolError``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from barnabas.connect.errors import ConnectError

POSTGRES_EPOCH_US: Final = 946_684_800_000_000  # 2000-01-01 in microseconds since 1970
COLUMNS_MAX: Final = 1664  # PostgreSQL's own limit


class ProtocolError(ConnectError):
    """Bytes that are no message of pgoutput."""


class Unchanged:
    """Stands for a stored-aside (TOAST) value that an update did not touch, and that is therefore not sent."""

    _only: Self | None = None

    def __new__(cls) -> Self:
        """Return the only instance, also after unpickling."""
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __reduce__(self) -> Any:
        return Unchanged, ()

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()
Value = bytes | Unchanged | None
Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column as the stream describes it."""

    name: str
    type_oid: int
    type_modifier: int
    is_key: bool  # part of the replica identity


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as the stream describes it; sent before its first change and after each change of its columns."""

    oid: int
    schema: str
    table: str
    identity: str  # replica identity: d (default), n (nothing), f (full), i (index)
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins. ``commit_lsn`` is where its commit record starts."""

    commit_lsn: int
    time_us: int  # time of the commit, microseconds since 1970
    xid: int


@dataclass(frozen=True, slots=True)
class TransactionOrigin:
    """The transaction was replicated from another server, where it has this position."""

    lsn: int
    name: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction ends; replication can go on from ``end_lsn``."""

    commit_lsn: int
    end_lsn: int
    time_us: int


@dataclass(frozen=True, slots=True)
class Change:
    """A row was inserted (c), updated (u) or deleted (d)."""

    op: str
    relation: Relation
    old: Row | None  # key or whole row before the change, depending on the replica identity
    new: Row | None
    is_old_full: bool = False  # ``old`` has all columns, not only those of the key


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables were emptied."""

    relations: tuple[Relation, ...]


@dataclass(frozen=True, slots=True)
class LogicalMessage:
    """A message that an application wrote with ``pg_logical_emit_message``."""

    is_transactional: bool
    lsn: int
    prefix: str
    content: bytes


Message = Begin | Commit | Relation | Change | Truncate | LogicalMessage | TransactionOrigin | None

_U16: Final = struct.Struct(">H").unpack_from
_U32: Final = struct.Struct(">I").unpack_from
_U64: Final = struct.Struct(">Q").unpack_from
_I32: Final = struct.Struct(">i").unpack_from
_BEGIN: Final = struct.Struct(">QqI")
_COMMIT: Final = struct.Struct(">BQQq")
_IGNORED: Final = frozenset(b"Y")  # type: nothing that a change event needs


class Decoder:
    """Decodes messages one after the other; it remembers the tables that were described."""

    def __init__(self, relations: Mapping[int, Relation] | None = None) -> None:
        self.relations: dict[int, Relation] = dict(relations or {})

    def decode(self, data: bytes) -> Message:
        """Return the message, or None for one that has no meaning here."""
        try:
            return self._decode(data)
        except (struct.error, IndexError, ValueError) as error:
            kind = chr(data[0]) if data else ""
            raise ProtocolError(f"pgoutput message {kind!r} of {len(data)} bytes is malformed: {error}") from error

    def _decode(self, data: bytes) -> Message:
        match data[0]:
            case 73:  # I
                _expect(data, 5, b"N")
                return Change("c", self._relation(data), None, _whole(data, 6))
            case 85:  # U
                return self._update(data)
            case 68:  # D
                kind = _expect(data, 5, b"KO")
                return Change("d", self._relation(data), _whole(data, 6), None, kind == b"O")
            case 66:  # B
                lsn, time, xid = _BEGIN.unpack_from(data, 1)
                return Begin(lsn, time + POSTGRES_EPOCH_US, xid)
            case 67:  # C
                _, lsn, end, time = _COMMIT.unpack_from(data, 1)
                return Commit(lsn, end, time + POSTGRES_EPOCH_US)
            case 82:  # R
                relation = _relation(data)
                self.relations[relation.oid] = relation
                return relation
            case 84:  # T
                (count,) = _U32(data, 1)
                return Truncate(tuple(self._known(_U32(data, 6 + 4 * each)[0]) for each in range(count)))
            case 79:  # O
                return TransactionOrigin(_U64(data, 1)[0], _text(data, 9)[0])
            case 77:  # M
                return _logical_message(data)
            case kind if kind in _IGNORED:
                return None
        raise ProtocolError(f"unknown pgoutput message {chr(data[0])!r}")

    def _update(self, data: bytes) -> Change:
        relation = self._relation(data)
        kind = _expect(data, 5, b"KON")
        if kind == b"N":
            return Change("u", relation, None, _whole(data, 6))
        old, end = _row(data, 6)
        _expect(data, end, b"N")
        return Change("u", relation, old, _whole(data, end + 1), kind == b"O")

    def _relation(self, data: bytes) -> Relation:
        return self._known(_U32(data, 1)[0])

    def _known(self, oid: int) -> Relation:
        found = self.relations.get(oid)
        if found is None:
            raise ProtocolError(f"a change of the table with oid {oid}, which the stream has not described")
        return found


def _expect(data: bytes, position: int, kinds: bytes) -> bytes:
    found = data[position : position + 1]
    if not found or found not in kinds:
        raise ProtocolError(f"pgoutput message {chr(data[0])!r} has {found!r} where one of {kinds!r} must be")
    return found


def _text(data: bytes, start: int) -> tuple[str, int]:
    end = data.index(b"\0", start)
    return data[start:end].decode(), end + 1


def _relation(data: bytes) -> Relation:
    (oid,) = _U32(data, 1)
    schema, at = _text(data, 5)
    table, at = _text(data, at)
    identity = chr(data[at])
    (count,) = _U16(data, at + 1)
    if count > COLUMNS_MAX:
        raise ProtocolError(f"a table with {count} columns")
    at += 3
    columns = []
    for _ in range(count):
        flags = data[at]
        name, at = _text(data, at + 1)
        columns.append(RelationColumn(name, _U32(data, at)[0], _I32(data, at + 4)[0], bool(flags & 1)))
        at += 8
    return Relation(oid, schema or "pg_catalog", table, identity, tuple(columns))


def _whole(data: bytes, start: int) -> Row:
    row, end = _row(data, start)
    if end != len(data):
        raise ProtocolError(f"{len(data) - end} bytes follow the row of a pgoutput message")
    return row


def _row(data: bytes, start: int) -> tuple[Row, int]:
    (count,) = _U16(data, start)
    at = start + 2
    values: list[Value] = []
    for _ in range(count):
        kind = data[at]
        if kind == 116:  # t: text
            (size,) = _U32(data, at + 1)
            at += 5
            if at + size > len(data):
                raise ProtocolError(f"a value of {size} bytes in a message of {len(data)} bytes")
            values.append(data[at : at + size])
            at += size
            continue
        if kind not in b"nu":
            raise ProtocolError(f"unknown kind of value {chr(kind)!r}")
        values.append(None if kind == 110 else UNCHANGED)
        at += 1
    return tuple(values), at


def _logical_message(data: bytes) -> LogicalMessage:
    flags, lsn = struct.unpack_from(">BQ", data, 1)
    prefix, at = _text(data, 10)
    (size,) = _U32(data, at)
    content = data[at + 4 : at + 4 + size]
    if len(content) != size:
        raise ProtocolError(f"a logical message of {size} bytes is cut off")
    return LogicalMessage(bool(flags & 1), lsn, prefix, content)


def lsn_text(lsn: int) -> str:
    """Return a position as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_of(text: str) -> int:
    """Return the number of a position such as ``16/B374D848``."""
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)
