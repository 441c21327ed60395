"""How long to wait before trying again: doubling, bounded, with a little chance so that clients do not march in step.

Pure but for the entropy that it is given. Connections and retried calls use it.
"""

from __future__ import annotations

from typing import Final

from barnabas.world.entropy import Entropy

JITTER_PERCENT: Final = 20
DOUBLINGS_MAX: Final = 30


class Backoff:
    """``next_ms`` grows with every call; ``reset`` after a success."""

    __slots__ = ("_entropy", "_initial_ms", "_max_ms", "attempts")

    def __init__(self, initial_ms: int, max_ms: int, entropy: Entropy) -> None:
        self._initial_ms = initial_ms
        self._max_ms = max(initial_ms, max_ms)
        self._entropy = entropy
        self.attempts = 0

    def next_ms(self) -> int:
        pause_ms = min(self._max_ms, self._initial_ms << min(self.attempts, DOUBLINGS_MAX))
        self.attempts += 1
        chance = self._entropy.below(2 * JITTER_PERCENT + 1) - JITTER_PERCENT
        return max(0, pause_ms * (100 + chance) // 100)

    def reset(self) -> None:
        self.attempts = 0
