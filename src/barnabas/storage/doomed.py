"""Files and directories that are deleted after a delay, so that readers can finish.

Each has been renamed already, so that a crash does not bring it back; when the disk is almost full it is removed at
once. Removing a large file takes long, so workers do it, off the event loop. The store has one Doomed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from barnabas.world.disk import Disk, DiskFailure
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timer, Timers
from barnabas.world.world import World

PATHS_PER_BATCH_MAX: Final = 32
DELETE_SUFFIX: Final = "-delete"  # suffix of directories to delete; single files have another
FUTURE_SUFFIX: Final = "-future"  # suffix of directories that hold an unfinished copy of a log
STRAY_SUFFIX: Final = "-stray"  # suffix of directories that are kept although no partition owns them


class Doomed:
    def __init__(self, world: World, timers: Timers, *, on_failure: Callable[[str, DiskFailure], None]) -> None:
        self._world = world
        self._timers = timers
        self._on_failure = on_failure
        self._waiting: dict[str, dict[str, Timer]] = {}  # timers by log directory and path
        self._due: dict[str, str] = {}  # log directory of each path whose delay is over
        self._tasks = Tasks()

    def add(self, home: str, path: str, *, delay_ms: int) -> None:
        """Remove a file or a tree after a delay, which replaces an earlier delay of the same path."""
        waiting = self._waiting.setdefault(home, {})
        if path in waiting:
            waiting[path].cancel()
        waiting[path] = self._timers.after(delay_ms, lambda: self._begin(home, path))

    def hurry(self, home: str) -> None:
        """Start to remove all paths of a log directory now. Open files stay readable."""
        for path in list(self._waiting.get(home, ())):
            self._begin(home, path)

    async def done(self) -> None:
        """Return when all paths whose delay is over are removed."""
        await self._tasks.done()

    def forget(self, home: str) -> None:
        """The disk of a log directory has failed: remove nothing more in it."""
        for timer in self._waiting.pop(home, {}).values():
            timer.cancel()
        self._due = {path: each for path, each in self._due.items() if each != home}

    async def close(self) -> None:
        """Remove nothing more; the next start removes the rest."""
        for home in sorted(self._waiting):
            self.forget(home)
        self._due.clear()
        await self.done()

    def _begin(self, home: str, path: str) -> None:
        timer = self._waiting.get(home, {}).pop(path, None)
        if timer is None:
            return
        timer.cancel()
        self._due[path] = home
        self._tasks.retry("doomed", self._remove_all, self._timers)

    async def _remove_all(self) -> None:
        while self._due:
            batch = dict(islice(self._due.items(), PATHS_PER_BATCH_MAX))
            self._due = {path: home for path, home in self._due.items() if path not in batch}
            try:
                failed = await self._world.workers.run(_remove, self._world.disk, list(batch))
            except BaseException:
                self._due = batch | self._due
                raise
            for path, error in failed:
                self._on_failure(batch[path], error)


def _remove(disk: Disk, paths: Iterable[str]) -> list[tuple[str, DiskFailure]]:
    """Remove the paths; returns those that could not be removed, with the error."""
    failed = []
    for path in paths:
        try:
            if path.endswith(DELETE_SUFFIX):
                disk.remove_tree(path)
            else:
                disk.remove(path)
        except DiskFailure as error:
            failed.append((path, error))
    return failed
