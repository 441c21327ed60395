"""Child processes of the worker: JSON lines in both directions, requests with a time-out, and events.

The plugin process and the driver run code of plugins; whatever they do, the worker goes on answering.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from barnabas.connect.errors import ConnectError
from barnabas.observe.log import logger

LINE_BYTES_MAX: Final = 64 * 1024 * 1024
LOG_BYTES_MAX: Final = 64 * 1024 * 1024  # a longer log is begun anew when the process starts
REQUEST_SECONDS_MAX: Final = 30.0
STOP_SECONDS_MAX: Final = 30.0

_log: Final = logger("connect")
OnEvent = Callable[[Mapping[str, Any]], None]


class ChildDied(ConnectError):
    """The child process ended before it answered."""


def _is_small(path: Path) -> bool:
    return not path.exists() or path.stat().st_size < LOG_BYTES_MAX


class Child:
    """A Python module run as a child process. It gets its settings as the first line, never as arguments."""

    def __init__(
        self,
        module: str,
        settings: Mapping[str, Any],
        on_event: OnEvent | None = None,
        *,
        log: Path | None = None,
    ) -> None:
        """``log`` is a file for what the process prints; without it that goes where the worker's own lines go."""
        self.module = module
        self._settings = dict(settings)
        self._on_event = on_event
        self._log = log
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._number = 0

    @property
    def is_running(self) -> bool:
        """Return whether the process is there."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        """Return the id of the process."""
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Start the process and tell it its settings."""
        errors = None if self._log is None else self._log.open("ab" if _is_small(self._log) else "wb")
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            self.module,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            limit=LINE_BYTES_MAX,
            start_new_session=True,  # Ctrl-C reaches the worker, which stops its children in order
        )
        if errors is not None:
            errors.close()
        self._reading = asyncio.create_task(self._read(self._process), name=f"connect-{self.module}")
        await self.tell(self._settings)

    async def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message; a child that is gone gets nothing."""
        process = self._process
        if process is None or process.stdin is None or process.returncode is not None:
            return
        with suppress(ConnectionError):
            process.stdin.write(msgspec.json.encode(message) + b"\n")
            await process.stdin.drain()

    async def request(self, message: Mapping[str, Any], seconds: float = REQUEST_SECONDS_MAX) -> Mapping[str, Any]:
        """Send a request and return the answer; raise ``ChildDied``, or ``TimeoutError`` after killing the child."""
        if not self.is_running:
            await self.start()
        self._number += 1
        number = self._number
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            await self.tell({**message, "id": number})
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            await self.kill()
            raise
        finally:
            self._waiting.pop(number, None)

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        try:
            while line := await process.stdout.readline():
                self._take(line)
        except ValueError as error:
            _log.error("child wrote a line that is too long", child=self.module, error=error)
            process.kill()
        await process.wait()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ChildDied(f"{self.module} ended with code {process.returncode}"))
        if self._on_event is not None and process is self._process:
            self._on_event({"event": "exit", "code": process.returncode})

    def _take(self, line: bytes) -> None:
        try:
            message = msgspec.json.decode(line)
        except msgspec.DecodeError:
            return  # something that a plugin has printed
        if not isinstance(message, dict):
            return
        answer = self._waiting.get(message.get("id", -1))
        if answer is not None:
            if not answer.done():
                answer.set_result(message)
        elif self._on_event is not None and "event" in message:
            self._on_event(message)

    async def kill(self) -> None:
        """End the process at once."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def stop(self, seconds: float = STOP_SECONDS_MAX) -> None:
        """Let the process finish what it does: it ends when its input ends."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(seconds):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        if self._reading is not None:
            await self._reading
