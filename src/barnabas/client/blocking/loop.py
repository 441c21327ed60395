"""A loop in a thread of its own, and the one way to have something done there: what the blocking clients stand on.

Ctrl-C ends any wait at once, and the call that it interrupted is given up. Not part of the simulation.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from barnabas.world.real import new_event_loop

T = TypeVar("T")

# A wait without an end could not be interrupted everywhere; one that is looked at twice a second can.
WAIT_SECONDS: Final = 0.5
CANCEL_SECONDS_MAX: Final = 5.0


class LoopThread:
    """A loop that runs until it is stopped, and the one way to have something done there."""

    def __init__(self) -> None:
        self.loop = new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="barnabas-client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._thread.is_alive():
            work.close()
            raise RuntimeError("the client is closed")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            while True:
                try:
                    return future.result(WAIT_SECONDS)
                except concurrent.futures.TimeoutError:
                    if future.done():
                        raise  # it is the call's own
        except KeyboardInterrupt:
            future.cancel()
            raise

    async def _call(self, function: Callable[[], T]) -> T:
        return function()

    def call(self, function: Callable[[], T]) -> T:
        """Run a plain function on the loop's thread: what it touches belongs to that thread."""
        return self.run(self._call(function))

    def new_lock(self) -> threading.Lock:
        return threading.Lock()

    def call_soon(self, function: Callable[[], object]) -> None:
        """The same without waiting for it."""
        self.loop.call_soon_threadsafe(function)

    def stop(self) -> None:
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._end(), self.loop)
            self._thread.join(CANCEL_SECONDS_MAX)
            self.loop.close()

    async def _end(self) -> None:
        """Give up what was interrupted and is under way still, then stop."""
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=CANCEL_SECONDS_MAX / 2)
        self.loop.call_soon(self.loop.stop)
