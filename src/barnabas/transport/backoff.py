"""How long to wait before trying again: doubling, bounded, with a little chance so that clients do not march in step.

Pure but for the chance that it is given: a function from a limit to a number below it. Connections and retried calls
use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

JITTER_PERCENT: Final = 20
DOUBLINGS_MAX: Final = 30


class Backoff:
    """``next_ms`` grows with every call; ``reset`` after a success."""

    __slots__ = ("_chance", "_initial_ms", "_max_ms", "attempts")

    def __init__(self, initial_ms: int, max_ms: int, chance: Callable[[int], int]) -> None:
        self._initial_ms = initial_ms
        self._max_ms = max(initial_ms, max_ms)
        self._chance = chance
        self.attempts = 0

    def next_ms(self) -> int:
        pause_ms = min(self._max_ms, self._initial_ms << min(self.attempts, DOUBLINGS_MAX))
        self.attempts += 1
        jitter = self._chance(2 * JITTER_PERCENT + 1) - JITTER_PERCENT
        return max(0, pause_ms * (100 + jitter) // 100)

    def reset(self) -> None:
        self.attempts = 0
