"""Worker processes for jobs on schemas: a few, started when needed, replaced when a job took one with it."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

from barnabas.observe.log import logger
from barnabas.registry.engines import Job
from barnabas.registry.incompatibility import InvalidSchema
from barnabas.registry.worker import HEAD, Result

T = TypeVar("T")

_log: Final = logger("registry")
PROCESSES_MAX: Final = 4
WAITING_MAX: Final = 1000
JOB_SECONDS_MAX: Final = 15.0  # by the clock: a worker may wait for a CPU
TOO_EXPENSIVE: Final = "the schema takes too much time or memory to check"


class Pool:
    def __init__(self, *, processes_max: int = PROCESSES_MAX) -> None:
        self._slots = asyncio.Semaphore(processes_max)
        self._idle: list[Process] = []
        self._all: set[Process] = set()
        self._waiting = 0

    async def close(self) -> None:
        for process in list(self._all):
            await self._end(process)
        self._idle.clear()

    async def run(self, job: Job, kind: type[T]) -> T:
        """The result of a job, of type ``kind``; raises InvalidSchema."""
        if self._waiting >= WAITING_MAX:
            raise InvalidSchema("too many schemas are being checked; try again")
        self._waiting += 1
        try:
            async with self._slots:
                result = await self._run(job)
        finally:
            self._waiting -= 1
        if result.invalid is not None:
            raise InvalidSchema(result.invalid)
        return msgspec.convert(result.value, kind)

    async def _run(self, job: Job) -> Result:
        process = self._idle.pop() if self._idle else await self._spawn()
        try:
            async with asyncio.timeout(JOB_SECONDS_MAX):
                result = await _exchange(process, job)
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            await self._end(process)
            _log.warning(
                "schema_too_expensive", job=type(job).__name__, kind=job.source.kind, size=len(job.source.text)
            )
            return Result(invalid=TOO_EXPENSIVE)
        except BaseException:
            await self._end(process)  # a cancelled job leaves its result behind
            raise
        self._idle.append(process)
        return result

    async def _spawn(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "barnabas.registry.worker", stdin=PIPE, stdout=PIPE
        )
        self._all.add(process)
        return process

    async def _end(self, process: Process) -> None:
        self._all.discard(process)
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        await process.wait()
        transport: Any = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()


async def _exchange(process: Process, job: Job) -> Result:
    assert process.stdin is not None
    assert process.stdout is not None
    content = msgspec.msgpack.encode(job)
    process.stdin.write(HEAD.pack(len(content)) + content)
    await process.stdin.drain()
    (size,) = HEAD.unpack(await process.stdout.readexactly(HEAD.size))
    return msgspec.msgpack.decode(await process.stdout.readexactly(size), type=Result)
