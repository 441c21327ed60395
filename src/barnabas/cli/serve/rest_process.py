"""The REST process as a child of ``barnabas up``: started when the broker is ready, restarted with back-off.

Nothing that happens to it affects the broker. It is told to stop by closing its standard input, so it never outlives a
parent that was killed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from barnabas.cli.serve.http_services import BUSY
from barnabas.cli.serve.rest_services import SERVICES, address_of_service

BACKOFF_SECONDS: Final = 1.0
BACKOFF_SECONDS_MAX: Final = 30.0
STEADY_SECONDS: Final = 60.0  # after which the back-off starts anew
STOP_SECONDS_MAX: Final = 15.0


class RestProcess:
    def __init__(self, *, host: str, ports: Mapping[str, int], listener: str) -> None:
        """``ports`` are those of the services to run, by name.

        ``listener`` is the broker's first one; a client without credentials must be able to use it.
        """
        self._is_open = listener.upper().startswith("PLAINTEXT://")
        self._host = host
        self._ports = {name: ports[name] for name in SERVICES if name in ports}
        self._child: Process | None = None
        self._watching: asyncio.Task[None] | None = None

    def lines(self) -> list[str]:
        """What the banner says of each service."""
        found = []
        for name, port in self._ports.items():
            service = SERVICES[name]
            if not self._is_open:
                found.append(
                    f"  {service.title} not started: the broker asks for credentials; see barnabas {name} --help"
                )
            elif service.missing:
                found.append(f"  {service.title} not installed: {service.install}")
            else:
                host = address_of_service(name, self._host)
                found.append(f"  {service.title} http://{f'[{host}]' if ':' in host else host}:{port}")
        return found

    @property
    def _installed(self) -> dict[str, int]:
        return {name: port for name, port in self._ports.items() if not SERVICES[name].missing}

    def start(self, servers: str) -> None:
        if self._is_open and self._installed:
            self._watching = asyncio.get_running_loop().create_task(self._watch(servers), name="rest-process")

    async def stop(self) -> None:
        watching, child = self._watching, self._child
        if watching is not None:
            watching.cancel()
            await asyncio.wait([watching])
        if child is None or child.returncode is not None:
            return
        assert child.stdin is not None
        child.stdin.close()
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
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
                return
            if time.monotonic() - began >= STEADY_SECONDS:
                pause = BACKOFF_SECONDS
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            print(f"barnabas: the REST process {how}; it is restarted in {pause:g} s", file=sys.stderr, flush=True)
            await asyncio.sleep(pause)
            pause = min(pause * 2, BACKOFF_SECONDS_MAX)

    async def _run(self, servers: str) -> int:
        """The exit code of one child."""
        command = [sys.executable, "-m", "barnabas", "rest", "--with-parent", "--bootstrap-server", servers]
        command += ["--host", self._host, "-X", "security.protocol=PLAINTEXT"]
        for name, port in self._installed.items():
            command += [f"--{name}-port", str(port)]
        self._child = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=asyncio.subprocess.DEVNULL, start_new_session=True
        )
        return await self._child.wait()
