"""A bounded map from the keys of a log's dirty part to the last offset of each: what a round of cleaning knows.

Keys are kept as 128 bits of a hash with a secret seed, in a table of 24 bytes to a key that grows with what is put in;
the loops over records are in :mod:`barnabas.wire.record_filter`. One round of the cleaner fills it, asks it and closes
it, all in workers.
"""

from __future__ import annotations

import mmap
from struct import Struct
from typing import Final

from barnabas.model.ids import NO_OFFSET
from barnabas.wire.record_filter import SLOT_WORDS, mark_kept, move_slots, put_keys
from barnabas.world.disk import Buffer

SEED_BYTES: Final = 16
SLOT_BYTES: Final = 8 * SLOT_WORDS
SLOTS_FIRST: Final = 1024
LOAD_MAX: Final = 0.9  # of a table that may not grow
LOAD_TO_GROW: Final = 0.7

_SEED: Final = Struct("<QQ")


class _Table:
    """Zeroed memory straight from the system: costs nothing before it is touched, and goes back when it is closed."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._memory = mmap.mmap(-1, slots * SLOT_BYTES)
        self.words = memoryview(self._memory).cast("Q")

    def close(self) -> None:
        self.words.release()
        self._memory.close()


class OffsetMap:
    def __init__(self, *, size_bytes_max: int, seed: bytes) -> None:
        self._size_bytes_max = size_bytes_max
        self._seed = _SEED.unpack(seed)
        self.count = 0
        self._use(_Table(max(1, min(SLOTS_FIRST, size_bytes_max // SLOT_BYTES))))
        self.latest_offset = NO_OFFSET  # up to here every key was put in

    @property
    def size_bytes(self) -> int:
        return self._table.slots * SLOT_BYTES

    def _use(self, table: _Table) -> None:
        self._table = table
        # While it moves into a table of twice the size both are there, and the bound holds for both.
        self._can_grow = 3 * self.size_bytes <= self._size_bytes_max
        self._count_max = int(table.slots * (LOAD_TO_GROW if self._can_grow else LOAD_MAX))

    def put(self, payload: Buffer, *, record_count: int, base_offset: int, start_offset: int) -> bool:
        """Note the keys of uncompressed records at or above an offset; False if the map is full before the last."""
        while True:
            room = self._count_max - self.count
            added, is_complete = put_keys(
                payload, record_count, base_offset, start_offset, self._table.words, room, self._seed
            )
            self.count += added
            if is_complete or not self._can_grow:
                return is_complete
            self._grow()

    def _grow(self) -> None:
        larger = _Table(2 * self._table.slots)
        move_slots(self._table.words, larger.words)
        self._table.close()
        self._use(larger)

    def mark(
        self, payload: Buffer, *, base_offset: int, keeps_tombstones: bool, keep: bytearray
    ) -> tuple[int, int, int, int]:
        """Mark in ``keep``, a byte to a record, what stays: how many, how many tombstones, least and largest delta."""
        return mark_kept(
            payload, base_offset, self.latest_offset, keeps_tombstones, self._table.words, self._seed, keep
        )

    def close(self) -> None:
        self._table.close()
