"""The recovery of logs after a crash, shown to who waits: a bar on a terminal, a line now and then elsewhere.

What is shown is counted by the store; a recovery that takes no time is not mentioned at all. Used by ``up``.
"""

from __future__ import annotations

from typing import Final, TextIO

from barnabas.storage.progress import RecoveryProgress
from barnabas.world.clock import Clock

SILENT_MS: Final = 500  # what takes no longer is not worth a word
BAR_MS: Final = 100
LINE_MS: Final = 5000
BAR_WIDTH: Final = 30
MIB: Final = 1024 * 1024


class RecoveryBar:
    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._is_terminal = stream.isatty()
        self._started_ms = clock.monotonic_ms()
        self._shown_ms = self._started_ms + SILENT_MS - (BAR_MS if self._is_terminal else LINE_MS)
        self._has_shown = False

    def show(self, progress: RecoveryProgress) -> None:
        now_ms = self._clock.monotonic_ms()
        is_end = progress.is_done and self._has_shown
        if not is_end and now_ms - self._shown_ms < (BAR_MS if self._is_terminal else LINE_MS):
            return
        self._shown_ms, self._has_shown = now_ms, not progress.is_done
        text = (
            f"{progress.logs_done} of {progress.logs_total} logs, "
            f"{progress.bytes_done / MIB:.0f} of {progress.bytes_total / MIB:.0f} MiB"
        )
        if not self._is_terminal:
            seconds = (now_ms - self._started_ms) / 1000
            self._stream.write(f"barnabas: recovering {progress.directory}: {text} after {seconds:.0f} s\n")
        else:
            filled = round(BAR_WIDTH * progress.share)
            bar = "█" * filled + "░" * (BAR_WIDTH - filled)
            self._stream.write(f"\r\x1b[Krecovering {bar} {progress.share:4.0%}  {text}")
            if progress.is_done:
                self._stream.write("\n")
        self._stream.flush()
