"""Which batches of a fetched chunk a reader may see: never markers, and in read_committed nothing that was aborted.

Pure. The broker tells with each chunk which transactions in it were aborted; the markers in the chunk say where each
of them ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

from barnabas.wire.batch import BatchHeader
from barnabas.wire.records import Record

ABORT_MARKER: Final = 0
_unpack_marker: Final = Struct(">hh").unpack_from


class Visibility:
    """For one chunk, from its first batch to its last. ``aborted`` holds (first offset, producer id)."""

    __slots__ = ("_aborted", "_aborting", "_told")

    def __init__(self, aborted: Iterable[tuple[int, int]] = ()) -> None:
        self._told = tuple(aborted)
        self._aborted = sorted(self._told, reverse=True)  # the next to begin is the last
        self._aborting: set[int] = set()

    def afresh(self) -> Visibility | None:
        """The same for the chunk from its beginning again; None if it hides nothing but markers."""
        return Visibility(self._told) if self._told else None

    def shows(self, header: BatchHeader) -> bool:
        while self._aborted and self._aborted[-1][0] <= header.last_offset:
            self._aborting.add(self._aborted.pop()[1])
        if header.is_control:
            return False
        return not (header.is_transactional and header.producer_id in self._aborting)

    def marker(self, header: BatchHeader, record: Record) -> None:
        """A control batch: if it ends an aborted transaction, the producer's next records count again."""
        if record.key is not None and len(record.key) >= _MARKER_KEY_BYTES:
            _, kind = _unpack_marker(record.key)
            if kind == ABORT_MARKER:
                self._aborting.discard(header.producer_id)


_MARKER_KEY_BYTES: Final = 4
