"""How much of a directory's disk may still be written, and the reserve that only the broker's own records may use.

Clients are refused while the last part of the disk is not yet used, so that metadata, offsets, the ends of transactions
and checkpoints still find room, and the broker lives until somebody frees some. How much is free is looked up now and
then, not for every batch. A directory has one room; its logs and the cleaner ask it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.model.ids import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from barnabas.observe.log import logger
from barnabas.world.disk import Disk, DiskFull

log = logger("room")

BROKERS_OWN_TOPICS: Final = frozenset((OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC))  # may use the reserve
RESERVE_SHARE: Final = 32  # one part in so many of the whole disk
RESERVE_BYTES_MAX: Final = 256 * 1024 * 1024
MARGIN_SHARE: Final = 8  # of the reserve
# Between two looks at the disk not more may be written than this part of what is free: others write there, too.
BUDGET_SHARE: Final = 8
BUDGET_BYTES_MAX: Final = 16 * 1024 * 1024


class Room:
    __slots__ = ("_budget_bytes", "_disk", "_refused_bytes", "is_tight", "on_short", "path")

    def __init__(self, disk: Disk, path: str, *, on_short: Callable[[], None] = lambda: None) -> None:
        self._disk = disk
        self.path = path
        self._budget_bytes = 0
        self._refused_bytes = 0  # the last that was
        self.is_tight = False
        self.on_short = on_short

    @property
    def reserve_bytes(self) -> int:
        return min(self._disk.total_bytes(self.path) // RESERVE_SHARE, RESERVE_BYTES_MAX)

    def take(self, size_bytes: int) -> None:
        """Ask for room before something is written; DiskFull if only the reserve is left."""
        self._budget_bytes -= size_bytes
        if self._budget_bytes < 0:
            self._look(size_bytes)

    def look(self) -> bool:
        """Whether the disk has room now, for what was refused last, too."""
        try:
            self._look(self._refused_bytes)
        except DiskFull:
            return False
        return True

    def _look(self, size_bytes: int) -> None:
        free_bytes, reserve_bytes = self._disk.free_bytes(self.path), self.reserve_bytes
        spare_bytes = free_bytes - reserve_bytes - size_bytes
        # Once it is tight a little more must be free, or every other batch would find it tight again.
        if spare_bytes < (reserve_bytes // MARGIN_SHARE if self.is_tight else 0):
            self._budget_bytes = 0
            self._refused_bytes = size_bytes
            if not self.is_tight:
                self.is_tight = True
                log.error("disk is full, writes are refused", directory=self.path, free_bytes=free_bytes)
                self.on_short()
            raise DiskFull(
                self.path,
                f"no space left: {free_bytes} bytes are free, "
                f"and {reserve_bytes} are kept for the broker's own records",
            )
        self._budget_bytes = min(spare_bytes // BUDGET_SHARE, BUDGET_BYTES_MAX)
        if spare_bytes < reserve_bytes:
            self.on_short()  # soon it will be tight: what retention allows to go should go now
        if self.is_tight:
            self.is_tight = False
            self._refused_bytes = 0
            log.info("disk has room again", directory=self.path, free_bytes=free_bytes)

    def full(self, error: DiskFull) -> None:
        """A write failed although there should have been room: the next one looks again."""
        self._budget_bytes = 0
        if not self.is_tight:
            self.is_tight = True
            log.error("disk is full, writes are refused", directory=self.path, reason=error)
            self.on_short()
