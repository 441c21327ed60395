"""A machine whose power may fail between any two changes of its disk; work is done on the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from barnabas.world.entropy import Entropy
from barnabas.world.memory import MemoryDisk

T = TypeVar("T")


class PowerCut(Exception):
    """The machine is off: whatever it was about to do does not happen."""


class CuttableDisk(MemoryDisk):
    """Fails for good after so many changes and syncs."""

    changes_left: int | None = None

    def _count(self) -> None:
        if self.changes_left is not None:
            if self.changes_left == 0:
                raise PowerCut
            self.changes_left -= 1

    def _change(self, change: Any) -> None:
        self._count()
        super()._change(change)

    def check_write(self, path: str, growth_bytes: int) -> None:
        self._count()
        super().check_write(path, growth_bytes)

    def is_sync_failing(self, path: str) -> bool:
        self._count()
        return super().is_sync_failing(path)

    def crash(self, entropy: Entropy) -> None:
        self.changes_left = None
        super().crash(entropy)


class PromptWorkers:
    """Work is done on the loop, but never before others had a turn."""

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        await asyncio.sleep(0)
        return work(*arguments)

    async def close(self) -> None:
        """There is nothing to end."""
