"""Parts of a batch: changes of the stream cut by key, so that several tasks keep the order of each key. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from barnabas.connect.connectors.postgres.envelope import KEY_ARRIVED, KEY_LEFT, Event, Origin, TransactionMark
from barnabas.connect.connectors.postgres.stream import Signal
from barnabas.connect.connectors.postgres.tables import Table
from barnabas.connect.records import Offset, Part


def cut_by_key(since: Offset, until: Offset, changes: Sequence[Any], tasks: int) -> list[Part]:
    """Return parts that carry their events; all events of a key are in one part, in order."""
    tables: dict[Table, int] = {}
    cut: list[list[Any]] = [[] for _ in range(tasks)]
    is_one = any(not isinstance(each, TransactionMark | Signal) and each[1].op == "t" for each in changes)
    for each in changes:
        if isinstance(each, Signal):
            continue
        if isinstance(each, TransactionMark):
            cut[0].append(each)
            continue
        table, event = each
        number = tables.setdefault(table, len(tables))
        for key, made in _by_key(table, event, number):
            cut[0 if is_one else zlib.crc32(key) % tasks].append(made)
    ordered = list(tables)
    return [Part(since, until, {"tables": ordered, "events": events}) for events in cut if events]


def _by_key(table: Table, event: Event, number: int) -> Iterator[tuple[bytes, Event]]:
    """Yield the event with the bytes of its key; an update that changes the key in two halves."""

    def made(op: str, origin: Origin) -> Event:
        return Event(op, number, event.old, event.new, event.is_old_full, origin)

    old, new = table.key_bytes(event.old), table.key_bytes(event.new)
    if old is not None and new is not None and old != new:
        yield old, made(KEY_LEFT, event.origin)
        yield new, made(KEY_ARRIVED, event.origin.next_in_transaction())
    else:
        yield new or old or table.full_name.encode(), made(event.op, event.origin)
