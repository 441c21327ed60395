"""Whose turn it is to read: a few fetches of consumers in each turn of the loop, everyone else in between.

One batch may wake hundreds of consumers. To serve them all at once would make the next producer wait for all of them,
while each of them loses little by waiting for a producer. So what exceeds its turn queues here, in order of arrival,
and the loop looks for other requests before it goes on. Followers do not queue: producers wait for them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

FETCHES_PER_TURN_MAX: Final = 4  # each takes about a tenth of a millisecond


class FetchTurns:
    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._room = FETCHES_PER_TURN_MAX
        self._is_scheduled = False

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self) -> bool:
        """Whether a fetch that has just come may be looked at now. If not, it is to be added."""
        if self._waiting or not self._room:
            return False
        self._room -= 1
        self._schedule()
        return True

    def add(self, look: Callable[[], None]) -> None:
        """Call it when its turn has come; by then its client may have gone."""
        self._waiting.append(look)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        self._is_scheduled = False
        self._room = FETCHES_PER_TURN_MAX
        while self._waiting and self._room:
            self._room -= 1
            self._schedule()
            self._waiting.popleft()()
