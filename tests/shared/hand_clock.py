"""A clock that only moves when it is told to."""

from __future__ import annotations

from collections.abc import Callable


class HandClock:
    def __init__(self, start_ms: int = 0) -> None:
        self.start_ms = self.now_ms = start_ms

    def wall_ms(self) -> int:
        return self.now_ms

    def wall_ns(self) -> int:
        return self.now_ms * 1_000_000

    def monotonic_ms(self) -> int:
        return self.now_ms - self.start_ms

    def monotonic_ns(self) -> int:
        return self.monotonic_ms() * 1_000_000

    def thread_ns(self) -> int:
        return 0

    def on_jump(self, callback: Callable[[], None]) -> Callable[[], None]:
        return lambda: None
