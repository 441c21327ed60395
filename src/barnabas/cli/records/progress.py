"""How far long work is, on standard error: one line that is written over, and only where a person looks.

``produce``, ``consume`` and others call :meth:`Progress.at` as often as they like; what is shown is bounded by time.
"""

from __future__ import annotations

import sys
import time
from typing import Final

INTERVAL_SECONDS: Final = 0.25
PATIENCE_SECONDS: Final = 1.0  # work that is over sooner shows nothing


class Progress:
    def __init__(self, what: str, *, is_wanted: bool = True) -> None:
        self._what = what
        self._is_shown = is_wanted and sys.stderr.isatty()
        self._started = time.monotonic()
        self._next = self._started + PATIENCE_SECONDS
        self._width = 0

    def clear(self) -> None:
        """Make room for what is printed, and leave nothing behind in the end."""
        if self._width:
            self._write("")

    def at(self, count: int, *, found: int | None = None) -> None:
        """So many are done; of those, if it matters, so many were looked for."""
        if not self._is_shown or (now := time.monotonic()) < self._next:
            return
        self._next = now + INTERVAL_SECONDS
        rate = count / (now - self._started)
        hits = "" if found is None else f", {found:,} found"
        self._write(f"{count:,} {self._what}{hits}, {rate:,.0f}/s")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r{text:<{self._width}}" if text else f"\r{' ' * self._width}\r")
        sys.stderr.flush()
        self._width = len(text)
