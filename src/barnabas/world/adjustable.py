"""A clock that a test may move forward while everything else stays real.

The offset is added to the wall's and the monotonic time alike; whoever keeps deadlines listens for the jump. The
pytest fixture wraps the real clock in it.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.world.clock import Clock


class AdjustableClock:
    def __init__(self, base: Clock) -> None:
        self._base = base
        self._ahead_ms = 0
        self._listeners: dict[int, Callable[[], None]] = {}
        self._next_listener = 0

    def wall_ms(self) -> int:
        return self._base.wall_ms() + self._ahead_ms

    def wall_ns(self) -> int:
        return self._base.wall_ns() + self._ahead_ms * 1_000_000

    def monotonic_ms(self) -> int:
        return self._base.monotonic_ms() + self._ahead_ms

    def monotonic_ns(self) -> int:
        return self._base.monotonic_ns() + self._ahead_ms * 1_000_000

    def thread_ns(self) -> int:
        return self._base.thread_ns()

    def on_jump(self, callback: Callable[[], None]) -> Callable[[], None]:
        number = self._next_listener
        self._next_listener += 1
        self._listeners[number] = callback
        forget_base = self._base.on_jump(callback)

        def forget() -> None:
            self._listeners.pop(number, None)
            forget_base()

        return forget

    def advance(self, ms: int) -> None:
        """Let ``ms`` milliseconds pass at once. Called on the loop's thread."""
        if ms < 0:
            raise ValueError(f"time does not go back: {ms} ms")
        self._ahead_ms += ms
        for callback in list(self._listeners.values()):
            callback()
