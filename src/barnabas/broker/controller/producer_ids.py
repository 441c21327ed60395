"""Producer ids for idempotent producers, handed out of blocks that the controller allocates.

Ids are never given twice, not even by another broker or after a restart: what is left of a block is thrown away. One
request for a block serves everyone who waits meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

Block: TypeAlias = tuple[int, int]  # first id, number of ids


class ProducerIds:
    def __init__(self, allocate: Callable[[], Awaitable[Block]]) -> None:
        self._allocate = allocate
        self._next = 0
        self._end = 0
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        async with self._lock:
            if self._next >= self._end:
                first, count = await self._allocate()
                self._next, self._end = first, first + count
            producer_id = self._next
            self._next += 1
            return producer_id
