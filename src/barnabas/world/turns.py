"""Long work on the event loop in short turns: the one mechanism that keeps a request from holding up all others.

Work that may take longer than ``TURN_NS`` runs in a coroutine and calls ``give_way`` between its pieces. When the
turn is used up, ``give_way`` waits until the loop has served everything else that was ready. Only one piece of long
work runs in each iteration of the loop, so many long requests take as long a turn as one of them. Pieces that cannot be
divided belong to ``world.workers``.
"""

from __future__ import annotations

import asyncio
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Final, TypeVar

from barnabas.world.clock import Clock

TURN_NS: Final = 2_000_000  # work that one turn may do before it gives way: a turn ends below 5 ms with its last piece

T = TypeVar("T")


class Turns:
    """The turns of one event loop."""

    __slots__ = ("_is_scheduled", "_now_ns", "_until_ns", "_waiting")

    def __init__(self, clock: Clock) -> None:
        self._now_ns = clock.monotonic_ns
        self._until_ns = 0  # end of the turn that runs now
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False

    def __len__(self) -> int:
        """Number of pieces of work that wait for their next turn."""
        return len(self._waiting)

    async def begin(self) -> None:
        """Wait for a turn: to be called once before long work, then ``give_way`` between its pieces."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._schedule()
        await turn

    async def give_way(self) -> None:
        """Go on at once while the turn lasts, else wait for the next one."""
        if self._now_ns() >= self._until_ns:
            await self.begin()

    async def run(self, steps: Generator[None, None, T]) -> T:
        """What the generator returns; it is resumed in as many turns as it needs."""
        while True:
            try:
                next(steps)
            except StopIteration as end:
                value: T = end.value
                return value
            if self._now_ns() >= self._until_ns:
                await self.begin()

    def attempt(self, steps: Generator[None, None, T]) -> T | Coroutine[Any, Any, T]:
        """What the generator returns, if it needs no more than this turn; else a coroutine for it."""
        until_ns = self._now_ns() + TURN_NS
        try:
            while self._now_ns() < until_ns:
                next(steps)
        except StopIteration as end:
            value: T = end.value
            return value
        return self._go_on(steps)

    async def _go_on(self, steps: Generator[None, None, T]) -> T:
        await self.begin()
        return await self.run(steps)

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        """Wake the work that has waited longest; the callbacks that are ready now run before the next one."""
        self._is_scheduled = False
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                self._until_ns = self._now_ns() + TURN_NS
                turn.set_result(None)
                break
        if self._waiting:
            self._schedule()


@types.coroutine
def until_waiting(work: Coroutine[Any, Any, T], is_waiting: Callable[[], None]) -> Generator[Any, Any, T]:
    """What the coroutine returns; ``is_waiting`` is called when it waits for the first time, or ends without that."""
    resume: Callable[[], Any] = partial(work.send, None)
    is_first = True
    while True:
        try:
            awaited = resume()
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            if is_first:
                is_waiting()
                is_first = False
        try:
            resume = partial(work.send, (yield awaited))
        except BaseException as error:  # noqa: BLE001  # the caller was cancelled: so is the work
            resume = partial(work.throw, error)
