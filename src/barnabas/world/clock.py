"""The interface of a clock. Wall time stamps records and files; monotonic time measures deadlines.

Both jump together when a test advances them, so deadlines use :class:`barnabas.world.timers.Timers`, which is notified
of jumps, and never ``loop.call_later``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since 1970, as records and files carry them."""

    def wall_ns(self) -> int:
        """Nanoseconds since 1970, for callers on the hot path that avoid a division."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back, for deadlines."""

    def monotonic_ns(self) -> int:
        """Nanoseconds that never go back, for measuring."""

    def thread_ns(self) -> int:
        """CPU time of this thread in nanoseconds."""

    def on_jump(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back whenever a test moves the time; the returned function removes the callback."""
