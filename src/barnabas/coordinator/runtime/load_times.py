"""How long the shards of a coordinator took to load, of late.

Only loads that came to their end count, as in Kafka; the runtime has one of these, and the broker's metrics show it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

WINDOW_NS: Final = 30 * 1_000_000_000  # as Kafka: `partition-load-time-max` is of the last 30 seconds
LOADS_MAX: Final = 10_000


class LoadTimes:
    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._seen: deque[tuple[int, int]] = deque(maxlen=LOADS_MAX)  # when it ended, how long it took

    def start(self) -> Callable[[], None]:
        """What is to be called when the load is done; one that fails or is given up never is."""
        started_ns = self._now_ns()

        def done() -> None:
            now_ns = self._now_ns()
            self._seen.append((now_ns, now_ns - started_ns))

        return done

    def recent_ms(self) -> list[float]:
        """The loads of the last 30 seconds."""
        since_ns = self._now_ns() - WINDOW_NS
        while self._seen and self._seen[0][0] < since_ns:
            self._seen.popleft()
        return [duration_ns / 1e6 for _, duration_ns in self._seen]
