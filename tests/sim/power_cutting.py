"""A disk that is cut off at the appointed operation, and what the stories of power cuts remember and look at."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

from barnabas.storage.log import PartitionLog
from barnabas.testing.loop import simulate
from barnabas.testing.world import SeededEntropy
from barnabas.wire.batch import crc_matches, iterate
from barnabas.wire.records import Record, decode_batch
from barnabas.world.memory import MemoryDisk

HOST = "machine"
SECONDS_MAX = 3600


class CuttingDisk(MemoryDisk):
    """Counts what changes the disk and, at the appointed number, keeps a copy of how everything was then."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock)
        self.left: int | None = None
        self.cut = asyncio.Event()
        self._frozen: Any = None

    def check_write(self, path: str, growth_bytes: int) -> None:
        self._tick()
        super().check_write(path, growth_bytes)

    def _change(self, change: Any) -> None:
        self._tick()
        super()._change(change)

    def _tick(self) -> None:
        if self.left is not None and not self.cut.is_set():
            self.left -= 1
            if self.left <= 0:
                self._frozen = copy.deepcopy((self._root, self._pending))
                self.cut.set()

    def lose_power(self, entropy: SeededEntropy) -> None:
        self._root, self._pending = self._frozen
        self._frozen, self.left = None, None
        self.crash(entropy)
        self.cut.clear()


@dataclass
class Told:
    """What was written to one log, and how much of it is known to be on the device."""

    records: dict[int, tuple[bytes, bytes | None]] = field(default_factory=dict)
    fates: dict[int, tuple[int, bool]] = field(default_factory=dict)  # producer -> offset of its marker, committed?
    owners: dict[int, int] = field(default_factory=dict)  # offset -> producer of its transaction
    synced_end: int = 0

    def forget_from(self, end: int) -> None:
        self.records = {offset: record for offset, record in self.records.items() if offset < end}
        self.owners = {offset: owner for offset, owner in self.owners.items() if offset < end}
        self.fates = {producer: fate for producer, fate in self.fates.items() if fate[0] < end}


def whole(log: PartitionLog) -> Iterator[Record]:
    """Every record in the files, each batch checked, in order and without overlaps."""
    end = 0
    for segment in log.segments.all():
        assert segment.base_offset >= end
        end = segment.base_offset
        data = segment.read_batch(0, segment.size_bytes)
        size = 0
        for position, header in iterate(data):
            assert crc_matches(data, position, header)
            assert header.base_offset >= end
            end, size = header.next_offset, position + header.size_bytes
            if not header.is_control:
                yield from decode_batch(data, position)
        assert size == len(data), "a segment holds whole batches only"


def tell(seed: int, main: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """A story in virtual time; one that fails says how it is told again."""
    try:
        return simulate(main, seed=seed, time_s_max=SECONDS_MAX)
    except AssertionError as error:
        raise AssertionError(f"BARNABAS_SIM_SEED={seed}: {error}") from error
