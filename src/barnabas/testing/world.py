"""A world from one seed: the loop's virtual time as clock, a disk in memory, numbered chance, workers on the loop.

One world per simulated broker; ``simulated_world`` makes it. The loop itself and the network are in ``loop``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final, TypeVar

from barnabas.model.ids import Uuid
from barnabas.testing.loop import SimulatedLoop
from barnabas.world.entropy import random_uuid
from barnabas.world.memory import MemoryDisk
from barnabas.world.world import World

START_OF_TIME_MS: Final = 1_767_225_600_000  # 2026-01-01T00:00:00Z
WORK_NS_MAX: Final = 2_000_000

T = TypeVar("T")


class SimulatedClock:
    """Reads the loop's time. ``wall_skew_ms`` is how wrong this machine's wall clock is, and may change at any time."""

    def __init__(self, loop: SimulatedLoop, *, start_ms: int = START_OF_TIME_MS) -> None:
        self._loop = loop
        self._start_ms = start_ms
        self.wall_skew_ms = 0

    def wall_ms(self) -> int:
        return self._start_ms + self.wall_skew_ms + self._loop.now_ns // 1_000_000

    def wall_ns(self) -> int:
        return self.wall_ms() * 1_000_000

    def monotonic_ms(self) -> int:
        return self._loop.now_ns // 1_000_000

    def monotonic_ns(self) -> int:
        return self._loop.now_ns

    def thread_ns(self) -> int:
        """Work takes no time here."""
        return 0

    def on_jump(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Virtual time passes by itself, timers and all: nobody needs to be told."""
        return _nothing


def _nothing() -> None:
    pass


class SeededEntropy:
    def __init__(self, random: Random) -> None:
        self._random = random

    def token(self, size_bytes: int) -> bytes:
        return self._random.randbytes(size_bytes)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)

    def uuid(self) -> Uuid:
        return random_uuid(self._random.randbytes)


class InlineWorkers:
    """Work is done on the loop, after as much virtual time as a thread might have needed."""

    def __init__(self, random: Random) -> None:
        self._random = random

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        await asyncio.sleep(self._random.randrange(WORK_NS_MAX) / 1e9)
        return work(*arguments)

    async def close(self) -> None:
        """There are no threads to end."""


def simulated_world(loop: SimulatedLoop, seed: int | str) -> World:
    """Worlds of one simulation get seeds of their own, such as the broker's name after the run's seed."""
    clock = SimulatedClock(loop)
    return World(
        clock=clock,
        disk=MemoryDisk(clock),
        entropy=SeededEntropy(Random(f"entropy/{seed}")),  # noqa: S311  # a simulation is to be guessed
        workers=InlineWorkers(Random(f"workers/{seed}")),  # noqa: S311
    )
