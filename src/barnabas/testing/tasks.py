"""Futures and tasks whose hash is a running number: sets of them are walked in one order, whatever their addresses.

asyncio keeps tasks in sets (``wait``, ``TaskGroup``); with these the order is the same in every run. The simulated loop
makes them all.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.testing.hosts import host_of

if TYPE_CHECKING:
    from barnabas.testing.loop import SimulatedLoop

T = TypeVar("T")


class SimulatedFuture(asyncio.Future[T]):
    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__(loop=loop)
        self._number = loop.next_number()

    def __hash__(self) -> int:
        return self._number


class SimulatedTask(asyncio.Task[T]):
    def __init__(
        self,
        coroutine: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        loop: SimulatedLoop,
        name: str | None,
        context: contextvars.Context | None,
    ) -> None:
        self._number = loop.next_number()  # first, since the class above puts the task into a set
        self.host = host_of(context or contextvars.copy_context())
        super().__init__(coroutine, loop=loop, name=name or f"task-{self._number}", context=context)

    def __hash__(self) -> int:
        return self._number
