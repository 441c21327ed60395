"""How much somebody may have: a rate over windows of time, and a bucket that fills up again.

Both are Kafka's, to the formula: a rate is what was recorded in the last windows, the one that is being filled among
them, and whoever is above it waits until the average would be right. Time is given by whoever calls.
"""

from __future__ import annotations

from collections import deque

MILLISECONDS = 1000.0


class WindowedRate:
    """So much per second, over ``windows`` windows of ``window_ms``."""

    __slots__ = ("_samples", "_window_ms", "_windows")

    def __init__(self, *, windows: int, window_ms: int) -> None:
        self._windows = windows
        self._window_ms = window_ms
        self._samples: deque[list[float]] = deque()  # when each began, and how much it holds

    def record(self, value: float, *, now_ms: int, limit: float) -> int:
        """Count it, whatever it is; answers for how many milliseconds to wait so that the average is right."""
        samples = self._samples
        if not samples or now_ms - samples[-1][0] >= self._window_ms:
            samples.append([now_ms, 0.0])
            while len(samples) > self._windows:
                samples.popleft()
        samples[-1][1] += value
        return self.throttle_ms(now_ms=now_ms, limit=limit)

    def take_back(self, value: float) -> None:
        """Uncount what was recorded last."""
        if self._samples:
            self._samples[-1][1] -= value

    def throttle_ms(self, *, now_ms: int, limit: float) -> int:
        self._forget(now_ms)
        span_ms = self._span_ms(now_ms)
        rate = sum(sample[1] for sample in self._samples) * MILLISECONDS / span_ms
        return round((rate - limit) / limit * span_ms) if rate > limit else 0

    def is_idle(self, now_ms: int) -> bool:
        return not self._samples or now_ms - self._samples[-1][0] > self._windows * self._window_ms

    def _forget(self, now_ms: int) -> None:
        oldest_ms = now_ms - self._windows * self._window_ms
        while self._samples and self._samples[0][0] <= oldest_ms:
            self._samples.popleft()

    def _span_ms(self, now_ms: int) -> float:
        """The time that the samples stand for: at least all windows but the one that is being filled."""
        passed_ms = now_ms - self._samples[0][0] if self._samples else 0.0
        full = passed_ms // self._window_ms
        missing = self._windows - 1 - full
        if missing > 0:
            passed_ms += missing * self._window_ms
        return max(passed_ms, self._window_ms)


class TokenBucket:
    """Fills by ``limit`` a second up to a burst; it may be overdrawn once, and who finds it so waits."""

    __slots__ = ("_burst_seconds", "_last_ms", "_tokens")

    def __init__(self, *, windows: int, window_ms: int, limit: float, now_ms: int) -> None:
        self._burst_seconds = windows * window_ms / MILLISECONDS
        self._tokens = self._burst_seconds * limit
        self._last_ms = now_ms

    def throttle_ms(self, *, now_ms: int, limit: float) -> int:
        """0 if something may be taken; else for how long there is nothing."""
        self._refill(now_ms, limit)
        return round(-self._tokens / limit * MILLISECONDS) if self._tokens < 0 else 0

    def take(self, count: float, *, now_ms: int, limit: float) -> None:
        self._refill(now_ms, limit)
        self._tokens -= count

    def is_idle(self, now_ms: int) -> bool:
        return now_ms - self._last_ms > self._burst_seconds * MILLISECONDS

    def _refill(self, now_ms: int, limit: float) -> None:
        passed_seconds = max(0, now_ms - self._last_ms) / MILLISECONDS
        self._tokens = min(self._burst_seconds * limit, self._tokens + limit * passed_seconds)
        self._last_ms = now_ms
