"""Files that are no part of any log any more and vanish after a while, so that readers can finish.

What is doomed has got another name already, so that a crash does not bring it back; when room is short it goes at
once. The store has one of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.world.disk import Disk, DiskFailure
from barnabas.world.timers import Timer, Timers

DELETE_SUFFIX: Final = "-delete"  # of directories; single files have another
STRAY_SUFFIX: Final = "-stray"  # of directories that are kept, for whoever knows what they were


class Doomed:
    def __init__(self, disk: Disk, timers: Timers, *, on_failure: Callable[[str, DiskFailure], None]) -> None:
        self._disk = disk
        self._timers = timers
        self._on_failure = on_failure
        self._waiting: dict[str, dict[str, Timer]] = {}  # by directory of logs

    def add(self, home: str, path: str, *, delay_ms: int) -> None:
        """Remove a file or a tree after a delay."""
        timer = self._timers.after(delay_ms, lambda: self._remove(home, path))
        self._waiting.setdefault(home, {})[path] = timer

    def hurry(self, home: str) -> int:
        """Remove what waits in a directory now; how many files or trees that were. Open files stay readable."""
        paths = list(self._waiting.get(home, ()))
        for path in paths:
            self._remove(home, path)
        return len(paths)

    def forget(self, home: str) -> None:
        """The directory's disk has failed: nothing in it is touched any more."""
        for timer in self._waiting.pop(home, {}).values():
            timer.cancel()

    def _remove(self, home: str, path: str) -> None:
        timer = self._waiting.get(home, {}).pop(path, None)
        if timer is None:
            return
        timer.cancel()
        try:
            if path.endswith(DELETE_SUFFIX):
                self._disk.remove_tree(path)
            else:
                self._disk.remove(path)
        except DiskFailure as error:
            self._on_failure(home, error)
