"""A process beside the broker of ``barnabas up``: started when the broker is ready, restarted with back-off.

Nothing that happens to it affects the broker. It is stopped by closing its standard input, so it never outlives a
parent that was killed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from typing import Final

from barnabas.cli.serve.http_services import BUSY

BACKOFF_SECONDS: Final = 1.0
BACKOFF_SECONDS_MAX: Final = 30.0
STEADY_SECONDS: Final = 60.0  # after which the back-off starts anew
STOP_SECONDS_MAX: Final = 15.0


class SideProcess:
    """Subclasses give ``name``, ``advice``, ``lines``, ``is_wanted`` and ``command``."""

    name = ""  # in messages
    advice = ""  # printed when the port is taken
    stop_seconds_max = STOP_SECONDS_MAX

    def __init__(self) -> None:
        self._child: Process | None = None
        self._watching: asyncio.Task[None] | None = None

    @property
    def is_wanted(self) -> bool:
        """Return whether the process can run at all."""
        raise NotImplementedError

    def lines(self) -> list[str]:
        """Return the lines of the banner."""
        raise NotImplementedError

    def command(self, servers: str) -> list[str]:
        """Return the words after ``barnabas``."""
        raise NotImplementedError

    def start(self, servers: str) -> None:
        """Start the process, and restart it when it ends."""
        if self.is_wanted:
            self._watching = asyncio.get_running_loop().create_task(self._watch(servers), name=self.name)

    async def stop(self) -> None:
        """Stop the process; kill it if it does not end in time."""
        watching, child = self._watching, self._child
        if watching is not None:
            watching.cancel()
            await asyncio.wait([watching])
        if child is None or child.returncode is not None:
            return
        assert child.stdin is not None
        child.stdin.close()
        try:
            async with asyncio.timeout(self.stop_seconds_max):
                await child.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()

    async def _watch(self, servers: str) -> None:
        pause = BACKOFF_SECONDS
        while True:
            began = time.monotonic()
            code = await self._run(servers)
            if code == BUSY:
                print(f"barnabas: {self.advice}", file=sys.stderr, flush=True)
                return
            if time.monotonic() - began >= STEADY_SECONDS:
                pause = BACKOFF_SECONDS
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            print(f"barnabas: {self.name} {how}; it is restarted in {pause:g} s", file=sys.stderr, flush=True)
            await asyncio.sleep(pause)
            pause = min(pause * 2, BACKOFF_SECONDS_MAX)

    async def _run(self, servers: str) -> int:
        """Run the process once; return its exit code."""
        self._child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "barnabas",
            *self.command(servers),
            stdin=PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        return await self._child.wait()
