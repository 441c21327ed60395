"""A broker for tests: in this process or one of its own, in memory or on disk, on a free port, for any client.

In this process it runs on a loop in a thread, so blocking clients work from the test itself, and its clock can be
moved: sessions, retention and time-outs follow at once. The pytest fixture ``broker`` gives one.
"""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import Coroutine, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from barnabas.broker.node.node import Node
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.profile import DEVELOPMENT
from barnabas.testing.process import STOP_SECONDS_MAX, ServerProcess
from barnabas.world.adjustable import AdjustableClock
from barnabas.world.memory import MemoryDisk
from barnabas.world.real import RealClock, RealDisk, RealEntropy, RealWorkers, new_event_loop
from barnabas.world.world import World

T = TypeVar("T")

START_SECONDS_MAX: Final = 30
UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
TURNS_TO_FIRE: Final = 4  # of the loop: until a timer that fell due has started its work
MEMORY_DIRECTORY: Final = "/barnabas"


class Broker:
    """``with Broker() as broker: ... broker.bootstrap_servers``."""

    def __init__(self, *, data_dir: str | Path | None = None, settings: Mapping[str, str] | None = None) -> None:
        """Without ``data_dir`` everything is in memory and gone at the end."""
        self._data_dir = None if data_dir is None else str(Path(data_dir).absolute())
        self._settings = {
            **DEVELOPMENT,
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": self._data_dir or MEMORY_DIRECTORY,
            **(settings or {}),
        }
        self._adjustable = AdjustableClock(RealClock())
        self._thread: threading.Thread | None = None
        self.clock = BrokerClock(self)
        self.bootstrap_servers = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="barnabas", daemon=True)
        self._thread.start()
        try:
            self.bootstrap_servers = self.run(self._start_node(), seconds=START_SECONDS_MAX)
        except BaseException:
            self._end_loop()
            raise

    def stop(self) -> None:
        """Stop cleanly; everything that was written to a directory can be opened again."""
        if self._thread is not None:
            try:
                self.run(self._stop_node(), seconds=STOP_SECONDS_MAX)
            finally:
                self._end_loop()

    def address_of(self, listener: str) -> str:
        """Where one listener is, by its name, if there are several."""
        found = next(each for each in self.node.listeners if each.name == listener)
        return f"{found.host or '127.0.0.1'}:{found.port}"

    def run(self, work: Coroutine[Any, Any, T], *, seconds: float = START_SECONDS_MAX) -> T:
        """Run a coroutine on the broker's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    async def _start_node(self) -> str:
        disk = RealDisk() if self._data_dir else MemoryDisk(self._adjustable)
        world = World(clock=self._adjustable, disk=disk, entropy=RealEntropy(), workers=RealWorkers())
        self.node = Node(world, BrokerSettings.of(self._settings))
        self._loop.set_exception_handler(self.node.failures.handle)
        await self.node.start()
        return self.node.bootstrap_servers

    async def _stop_node(self) -> None:
        await self.node.stop()
        await self.node.world.workers.close()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not None:
            self._thread.join(STOP_SECONDS_MAX)
            self._thread = None
        self._loop.close()


class BrokerClock:
    """The broker's time, as a test moves it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def advance(self, duration: str | int | timedelta) -> None:
        """Move time forward: ``"7d"``, ``"90s"``, milliseconds or a timedelta.

        When this returns, timers that fell due have fired and the chores among them (retention, flushes) are done.
        """
        milliseconds = duration_ms(duration)

        async def move() -> None:
            self._broker._adjustable.advance(milliseconds)
            for _ in range(TURNS_TO_FIRE):
                await asyncio.sleep(0)
            await self._broker.node.chores.done()

        self._broker.run(move())


def duration_ms(duration: str | int | timedelta) -> int:
    if isinstance(duration, timedelta):
        return round(duration.total_seconds() * 1000)
    if isinstance(duration, int):
        return duration
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)", duration.strip())
    if match is None:
        raise ValueError(f"{duration!r} is no duration: write it like 500ms, 90s, 5m, 2h, 7d")
    return round(float(match[1]) * UNITS_MS[match[2]])


class BrokerProcess(ServerProcess):
    """A broker in a process of its own, on disk: one that a test can kill. Clients connect as to any other."""

    def __init__(self, data_dir: str | Path, *, port: int = 0, settings: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.data_dir = Path(data_dir)
        self._port = port
        self._settings = dict(settings or {})
        self.bootstrap_servers = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it and wait for its READY line. A second start after ``kill`` takes the same port."""
        command = [sys.executable, "-m", "barnabas", "up", "--port", str(self._port), "--data-dir", str(self.data_dir)]
        for name, value in {"barnabas.http.port": "0", **self._settings}.items():
            command += ["--set", f"{name}={value}"]
        self.spawn(command)
        self.bootstrap_servers = self.until_ready()
        self._port = int(self.bootstrap_servers.rpartition(":")[2])
