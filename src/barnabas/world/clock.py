"""What a clock is. The wall's time stamps records and files; the monotonic time measures deadlines.

Both may jump together when a test advances them, so deadlines live in :class:`barnabas.world.timers.Timers`, which
listens for jumps, and never in a bare ``loop.call_later``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since 1970, as records and files carry them."""

    def wall_ns(self) -> int:
        """The same in nanoseconds, for whoever asks so often that dividing costs too much."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back, for deadlines."""

    def monotonic_ns(self) -> int:
        """Nanoseconds that never go back, for measuring."""

    def thread_ns(self) -> int:
        """Nanoseconds that this thread has worked and not slept, for saying how busy it is."""

    def on_jump(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back whenever time was moved by hand; the answer takes the callback off again."""
