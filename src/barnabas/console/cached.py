"""A value that is loaded once for all callers and kept for a few seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Cached(Generic[T]):
    """Callers that come while a value is loaded wait for that load; a load that fails is not kept."""

    def __init__(self, load: Callable[[], Awaitable[T]], *, seconds: float) -> None:
        self._load = load
        self._seconds = seconds
        self._loading: asyncio.Task[T] | None = None
        self._value: T | None = None
        self._fresh_until = 0.0

    async def get(self) -> T:
        if self._value is not None and time.monotonic() < self._fresh_until:
            return self._value
        if self._loading is None or self._loading.done():
            self._loading = asyncio.ensure_future(self._loaded())
            self._loading.add_done_callback(_retrieve)
        return await asyncio.shield(self._loading)

    async def _loaded(self) -> T:
        value = await self._load()
        self._value, self._fresh_until = value, time.monotonic() + self._seconds
        return value

    def forget(self) -> None:
        """The next caller loads again, whatever is under way."""
        self._fresh_until = 0.0
        self._loading = None


def _retrieve(task: asyncio.Task[T]) -> None:
    if not task.cancelled():
        task.exception()
