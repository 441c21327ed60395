"""Files that are no part of any log any more and vanish after a while, so that readers can finish.

What is doomed has got another name already, so that a crash does not bring it back; when room is short it goes at
once. A large file takes long to remove, so it is done off the loop, one after the other. The store has one of these.
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
DELETE_SUFFIX: Final = "-delete"  # of directories; single files have another
FUTURE_SUFFIX: Final = "-future"  # of directories whose log is a copy that is still being made
STRAY_SUFFIX: Final = "-stray"  # of directories that are kept, for whoever knows what they were


class Doomed:
    def __init__(self, world: World, timers: Timers, *, on_failure: Callable[[str, DiskFailure], None]) -> None:
        self._world = world
        self._timers = timers
        self._on_failure = on_failure
        self._waiting: dict[str, dict[str, Timer]] = {}  # by directory of logs
        self._due: dict[str, str] = {}  # the paths whose time has come, and the directory of each
        self._tasks = Tasks()

    def add(self, home: str, path: str, *, delay_ms: int) -> None:
        """Remove a file or a tree after a delay; what was said of it before does not count any more."""
        waiting = self._waiting.setdefault(home, {})
        if path in waiting:
            waiting[path].cancel()
        waiting[path] = self._timers.after(delay_ms, lambda: self._begin(home, path))

    def hurry(self, home: str) -> None:
        """Begin to remove what waits in a directory now. Open files stay readable."""
        for path in list(self._waiting.get(home, ())):
            self._begin(home, path)

    async def done(self) -> None:
        """Return when all that was begun is gone."""
        await self._tasks.done()

    def forget(self, home: str) -> None:
        """The directory's disk has failed: nothing in it is touched any more."""
        for timer in self._waiting.pop(home, {}).values():
            timer.cancel()
        self._due = {path: each for path, each in self._due.items() if each != home}

    async def close(self) -> None:
        """Remove nothing more; what is left goes at the next start."""
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
    """Those that could not be removed, and why."""
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
