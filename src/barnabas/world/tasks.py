"""Starts, watches and stops asyncio tasks: the only caller of ``create_task`` in the server.

Each component has its own :class:`Tasks`. No exception of a task is lost: it is passed to the event loop's exception
handler, and then to the component's ``on_failure``. A broker process installs ``observe.failures``, which
logs the traceback and counts the failure; the simulated loop of the tests fails the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, TypeAlias, TypeVar

from barnabas.world.timers import Timers

RETRY_MS: Final = 1000  # pause after a failure, before ``retry`` runs its work again

T = TypeVar("T")
Work: TypeAlias = Callable[[], Coroutine[Any, Any, T]]
OnFailure: TypeAlias = Callable[[Exception], None]


def report(name: str, error: Exception) -> None:
    """Tell the event loop's exception handler that the work of this name has failed."""
    context = {"message": f"task {name} failed", "exception": error, "task_name": name}
    asyncio.get_running_loop().call_exception_handler(context)


class Tasks:
    """The running tasks of one component."""

    __slots__ = ("_on_failure", "_running")

    def __init__(self, on_failure: OnFailure | None = None) -> None:
        """``on_failure`` is called with every exception of a task, after it was reported to the event loop."""
        self._on_failure = on_failure
        # Tasks in the order of their start; the key is the name of a task of ``once``, or else the task itself.
        self._running: dict[Hashable, asyncio.Task[Any]] = {}

    def __len__(self) -> int:
        return len(self._running)

    def is_running(self, name: str) -> bool:
        """Whether the task that ``once`` or ``retry`` started under this name has not ended."""
        task = self._running.get(name)
        return task is not None and not task.done()

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Start a task whose result nobody awaits; an exception is reported."""
        task = self.call(work, name)
        task.add_done_callback(self._check)
        return task

    def call(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Start a task whose result the caller awaits: an exception is the caller's.

        If the caller never asks for it, asyncio itself reports the exception to the loop's exception handler.
        """
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running[task] = task
        task.add_done_callback(self._running.pop)
        return task

    def once(self, name: str, work: Work[T]) -> asyncio.Task[T]:
        """Start a task, unless the one of this name still runs; returns the task that runs now."""
        task = self._running.get(name)
        if task is None or task.done():
            task = self._running[name] = asyncio.get_running_loop().create_task(work(), name=name)
            task.add_done_callback(self._forget)
            task.add_done_callback(self._check)
        return task

    def retry(self, name: str, work: Work[T], timers: Timers, *, retry_ms: int = RETRY_MS) -> asyncio.Task[T]:
        """As ``once``; after an exception, which is reported, the work runs again until it returns or is cancelled."""
        return self.once(name, lambda: self.until_done(name, work, timers, retry_ms=retry_ms))

    async def until_done(self, name: str, work: Work[T], timers: Timers, *, retry_ms: int = RETRY_MS) -> T:
        """Run the work until it returns; each exception is reported, and the work runs again after a pause."""
        while True:
            try:
                return await work()
            except Exception as error:  # noqa: BLE001  # reported, and the work is not lost
                self._failed(name, error)
            await timers.sleep(retry_ms)

    async def done(self) -> None:
        """Return when every task that runs now has ended, whatever its outcome."""
        if self._running:
            await asyncio.wait(list(self._running.values()))

    def cancel(self) -> None:
        for task in list(self._running.values()):
            task.cancel()

    async def stop(self) -> None:
        """Cancel every task and return when all have ended."""
        self.cancel()
        await self.done()

    def _check(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):  # asyncio itself raises SystemExit and KeyboardInterrupt out of the loop
            self._failed(task.get_name(), error)

    def _failed(self, name: str, error: Exception) -> None:
        report(name, error)
        if self._on_failure is not None:
            self._on_failure(error)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        if self._running.get(task.get_name()) is task:
            del self._running[task.get_name()]
