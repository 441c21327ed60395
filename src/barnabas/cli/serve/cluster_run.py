"""``barnabas up --brokers N``: a whole cluster on this machine, a process to each broker, under one Ctrl-C.

The first start writes a ``server.properties`` for each broker below the data directory and later ones use it, so ports
and ids stay. A broker that dies is reported, and started again with ``--restart``. Each child is the same
``barnabas broker start`` that runs one broker of a cluster of several machines.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from barnabas.broker.settings.local_cluster import BROKERS_MAX, CONFIG_FILE, Address, local_cluster, properties_text
from barnabas.broker.settings.profile import FOR_PEOPLE
from barnabas.cli.serve.running import find_running, metrics_lines, supervised
from barnabas.cli.serve.side_process import SideProcess
from barnabas.cli.serve.up import assignments, beside_brokers
from barnabas.cli.terminal.config_file import properties
from barnabas.cli.terminal.profiles import remember
from barnabas.ops.failure import Failure
from barnabas.world.real import free_ports

PORT_DEFAULT: Final = 9092
CONTROLLER_PORTS_ABOVE: Final = 10_000  # a broker's controller listens this far above it
READY_SECONDS_MAX: Final = 60
STOP_SECONDS_MAX: Final = 30
RESTART_PAUSE_SECONDS: Final = 1.0


def up_cluster(
    *,
    brokers: int,
    port: int | None,
    host: str | None,
    data_dir: Path | None,
    ephemeral: bool,
    overrides: Iterable[str],
    restart: bool,
    profile: str | None = None,
    rest_ports: Mapping[str, int] | None = None,
    connect_port: int | None = None,
) -> int:
    if not 1 <= brokers <= BROKERS_MAX:
        raise Failure(f"--brokers takes 1 to {BROKERS_MAX}, not {brokers}")
    temporary = tempfile.mkdtemp(prefix="barnabas-") if ephemeral else None
    try:
        home = Path(temporary or data_dir or "barnabas-data").absolute()
        address = host or "127.0.0.1"
        configs = _configs(home, brokers=brokers, host=address, port=port, overrides=assignments(overrides))
        with supervised(home):
            beside = beside_brokers(
                host=address,
                listener=dict(properties(configs[0].read_text())).get("listeners", ""),
                data_dir=home,
                rest_ports=rest_ports or {},
                connect_port=connect_port,
            )
            cluster = _Cluster(home, configs, restarts=restart, is_ephemeral=ephemeral, profile=profile, beside=beside)
            return asyncio.run(cluster.run())
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)


def _configs(home: Path, *, brokers: int, host: str, port: int | None, overrides: dict[str, str]) -> list[Path]:
    """The file of each broker; those that are there are left as they are, but for what ``--set`` says."""
    paths = [home / f"broker-{number}" / CONFIG_FILE for number in range(1, brokers + 1)]
    known = sorted(home.glob(f"broker-*/{CONFIG_FILE}"))
    if known:
        if len(known) != brokers:
            raise Failure(f"{home} holds a cluster of {len(known)} brokers, not {brokers}: say --brokers {len(known)}")
        if overrides:
            for path in paths:
                path.write_text(properties_text({**dict(properties(path.read_text())), **overrides}))
        return paths
    if any(home.glob("*/meta.properties")) or (home / "meta.properties").exists():
        raise Failure(f"{home} holds a single broker: choose another --data-dir for a cluster")
    cluster = local_cluster(str(home), _addresses(host, port, brokers), overrides={**FOR_PEOPLE, **overrides})
    for path, settings in zip(paths, cluster.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(properties_text(settings))
    return paths


def _addresses(host: str, port: int | None, brokers: int) -> list[Address]:
    if port == 0:
        free = free_ports(host, 2 * brokers)
        return [Address(host, *free[place : place + 2]) for place in range(0, len(free), 2)]
    first = PORT_DEFAULT if port is None else port
    return [Address(host, first + place, first + place + CONTROLLER_PORTS_ABOVE) for place in range(brokers)]


class _Cluster:
    def __init__(
        self,
        home: Path,
        configs: list[Path],
        *,
        restarts: bool,
        is_ephemeral: bool,
        profile: str | None,
        beside: Sequence[SideProcess],
    ) -> None:
        self._beside = beside
        self._home = home
        self._profile = profile
        self._configs = configs
        self._restarts = restarts
        self._is_ephemeral = is_ephemeral
        self._is_new = not any((path.parent / "meta.properties").exists() for path in configs)
        self._children: dict[int, asyncio.subprocess.Process] = {}
        self._addresses: dict[int, str] = {}
        self._watchers: dict[int, asyncio.Task[None]] = {}
        self._stop = asyncio.Event()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal)
        try:
            await self._start_all()
            if not self._stop.is_set():
                self._announce()
                for each in self._beside:
                    each.start(",".join(self._addresses[number] for number in sorted(self._addresses)))
            while not self._stop.is_set() and self._watchers:
                stopping = asyncio.ensure_future(self._stop.wait())
                await asyncio.wait({stopping, *self._watchers.values()}, return_when=asyncio.FIRST_COMPLETED)
                stopping.cancel()
                self._watchers = {number: task for number, task in self._watchers.items() if not task.done()}
            return 0 if self._stop.is_set() else 1
        finally:
            await asyncio.gather(*(each.stop() for each in self._beside))
            await self._stop_all()

    async def _start_all(self) -> None:
        """The first broker founds the cluster; the others find it, all at once."""
        numbers = range(1, len(self._configs) + 1)
        if self._is_new:
            await self._start(1)
            numbers = range(2, len(self._configs) + 1)
        await asyncio.gather(*(self._start(number) for number in numbers))

    async def _start(self, number: int) -> None:
        config = self._configs[number - 1]
        command = [sys.executable, "-m", "barnabas", "broker", "start", "--config", str(config)]
        if self._is_new and number == 1:
            command.append("--new-cluster")
        child = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, start_new_session=True
        )
        self._children[number] = child
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._watchers[number] = asyncio.create_task(self._watch(number, child, ready))
        try:
            self._addresses[number] = await asyncio.wait_for(asyncio.shield(ready), READY_SECONDS_MAX)
        except TimeoutError:
            raise Failure(f"broker {number} was not ready within {READY_SECONDS_MAX} seconds") from None

    async def _watch(self, number: int, child: asyncio.subprocess.Process, ready: asyncio.Future[str]) -> None:
        """Pass on what a broker says, with its number; when it is gone, say so, and start it again if asked to."""
        errors = asyncio.create_task(self._relay(number, child.stderr))
        assert child.stdout is not None
        async for line in child.stdout:
            text = line.decode(errors="replace").rstrip()
            if text.startswith("READY ") and not ready.done():
                ready.set_result(text.split()[1])
        await errors
        code = await child.wait()
        if not ready.done():
            ready.set_exception(Failure(f"broker {number} did not start"))
        if self._stop.is_set():
            return
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        config = self._configs[number - 1]
        advice = "it is started again" if self._restarts else f"start it again: barnabas broker start --config {config}"
        print(f"barnabas: broker {number} {how}; {advice}", file=sys.stderr, flush=True)
        if self._restarts and ready.exception() is None:
            await asyncio.sleep(RESTART_PAUSE_SECONDS)
            if not self._stop.is_set():
                await self._start(number)
                print(f"barnabas: broker {number} is back", file=sys.stderr, flush=True)

    async def _relay(self, number: int, stream: asyncio.StreamReader | None) -> None:
        assert stream is not None
        async for line in stream:
            sys.stderr.write(f"[{number}] {line.decode(errors='replace')}")
            sys.stderr.flush()

    def _on_signal(self) -> None:
        if self._stop.is_set():
            for child in self._children.values():
                if child.returncode is None:
                    child.kill()
        self._stop.set()

    async def _stop_all(self) -> None:
        """All at once: there is nobody left to hand anything over to."""
        self._stop.set()
        running = {number: child for number, child in self._children.items() if child.returncode is None}
        for child in running.values():
            child.send_signal(signal.SIGINT)
        if running:
            await asyncio.wait(
                [asyncio.create_task(child.wait()) for child in running.values()], timeout=STOP_SECONDS_MAX
            )
        for number, child in running.items():
            if child.returncode is None:
                print(f"barnabas: broker {number} does not stop and is killed", file=sys.stderr, flush=True)
                child.kill()
        if self._watchers:
            await asyncio.wait(self._watchers.values())

    def _announce(self) -> None:
        servers = ",".join(self._addresses[number] for number in sorted(self._addresses))
        if self._profile is not None:
            remember(self._profile, servers)
        if not sys.stdout.isatty():
            print(f"READY {servers}", flush=True)
            return
        first = self._addresses[1]
        address = "" if first == f"127.0.0.1:{PORT_DEFAULT}" else f" --bootstrap-server {first}"
        kept = "gone when it stops" if self._is_ephemeral else "durable"
        print(
            f"barnabas is ready: {len(self._addresses)} brokers",
            *(
                f"  KAFKA    {self._addresses[number]} · broker {number} · pid {self._children[number].pid}"
                for number in sorted(self._addresses)
            ),
            *(line for each in self._beside for line in each.lines()),
            *metrics_lines(find_running(self._home)),
            f"  DATA     {os.path.relpath(self._home)} ({kept})",
            f"  try      barnabas topic create hello -p 6{address}",
            f"           barnabas topic describe hello{address}",
            f"           kill -9 {self._children[len(self._addresses)].pid}   and look again",
            "  Ctrl-C stops all of them",
            sep="\n",
            flush=True,
        )
