"""How a test waits for something that happens elsewhere: it looks often, and not for ever.

``until`` is for threads, ``until_async`` for coroutines, in real time or virtual; both answer how long it took.
``until_async`` may be asked with a coroutine function too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from inspect import isawaitable

SECONDS_MAX = 120.0
NEVER = "it never came to that"


def until(is_so: Callable[[], object], what: str = NEVER, *, seconds_max: float = SECONDS_MAX) -> float:
    start = time.monotonic()
    while not is_so():
        assert time.monotonic() - start < seconds_max, f"waited in vain: {what}"
        time.sleep(0.02)
    return time.monotonic() - start


async def _answer(said: object) -> object:
    return await said if isawaitable(said) else said


async def until_async(is_so: Callable[[], object], what: str = NEVER, *, seconds_max: float = SECONDS_MAX) -> float:
    loop = asyncio.get_running_loop()
    start = loop.time()
    while not await _answer(is_so()):
        assert loop.time() - start < seconds_max, f"waited in vain: {what}"
        await asyncio.sleep(0.01)
    return loop.time() - start
