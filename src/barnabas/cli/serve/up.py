"""``barnabas up``: run a broker here until it is told to stop.

Settings come from the development profile or a file, then from ``--set`` and the other options. SIGTERM and Ctrl-C
stop cleanly; a second one stops at once.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from barnabas.broker.node.node import Node
from barnabas.broker.settings.broker import BROKER_SETTINGS, BrokerSettings
from barnabas.broker.settings.endpoints import CannotListen, reachable
from barnabas.broker.settings.profile import DEVELOPMENT, FOR_PEOPLE
from barnabas.cli.serve.connect_process import ConnectProcess
from barnabas.cli.serve.environment import settings_of_environment
from barnabas.cli.serve.logs import write_logs
from barnabas.cli.serve.recovery_bar import RecoveryBar
from barnabas.cli.serve.rest_process import RestProcess
from barnabas.cli.serve.running import Running, metrics_lines, noted
from barnabas.cli.serve.service_manager import notify
from barnabas.cli.serve.side_process import SideProcess
from barnabas.cli.terminal.config_file import read_config
from barnabas.cli.terminal.profiles import remember
from barnabas.model.errors import BarnabasError
from barnabas.model.settings import InvalidSetting
from barnabas.world.disk import AlreadyLocked, DiskFailure
from barnabas.world.real import new_event_loop, real_world

INTERRUPTED = 130
LOOPBACK = "127.0.0.1"


def up(
    *,
    port: int | None,
    host: str | None,
    data_dir: Path | None,
    ephemeral: bool,
    config: Path | None,
    overrides: Iterable[str],
    profile: str | None = None,
    rest_ports: Mapping[str, int] | None = None,
    connect_port: int | None = None,
) -> int:
    """Run until stopped; answers the exit code."""
    if not __debug__:
        print("barnabas: the broker's own checks are part of it: start it without python -O", file=sys.stderr)
        return 2
    write_logs()
    temporary = _temporary() if ephemeral else None
    try:
        given = given_settings(port=port, host=host, data_dir=temporary or data_dir, config=config, overrides=overrides)
        settings = BrokerSettings.of(given)
        write_logs(settings.observe)
        _warn_of_unused(settings)
        beside = beside_brokers(
            host=host or LOOPBACK,
            listener=settings.listeners[0],
            data_dir=Path(settings.log_dirs[0]),
            rest_ports=rest_ports or {},
            connect_port=connect_port,
        )
        return _run(settings, is_ephemeral=ephemeral, profile=profile, beside=beside)
    except CannotListen as error:
        is_choosable = error.is_listener_taken and config is None
        advice = "; --port N takes another port, --port 0 any that is free" if is_choosable else ""
        print(f"barnabas: {error}{advice}", file=sys.stderr)
        return 1
    except AlreadyLocked as error:
        where = os.path.dirname(error.path)
        print(f"barnabas: {where} is in use: `barnabas status --data-dir {where}` shows by whom", file=sys.stderr)
        return 1
    except (InvalidSetting, DiskFailure, OSError, BarnabasError) as error:
        is_about_file = isinstance(error, OSError) and error.filename is not None
        said = f"{error.filename}: {error.strerror}" if is_about_file else str(error)  # type: ignore[union-attr]
        print(f"barnabas: {said}", file=sys.stderr)
        return 1
    finally:
        if temporary:
            import shutil

            shutil.rmtree(temporary, ignore_errors=True)


def beside_brokers(
    *, host: str, listener: str, data_dir: Path, rest_ports: Mapping[str, int], connect_port: int | None
) -> list[SideProcess]:
    """Return the processes that run beside the brokers; no port means no such process."""
    found: list[SideProcess] = []
    if rest_ports:
        found.append(RestProcess(host=host, ports=rest_ports, listener=listener, connect_port=connect_port))
    if connect_port is not None:
        found.append(ConnectProcess(port=connect_port, data_dir=data_dir, listener=listener))
    return found


def _temporary() -> str:
    import tempfile  # with its chance and its archives: for those who want it

    return tempfile.mkdtemp(prefix="barnabas-")


def given_settings(
    *, port: int | None, host: str | None, data_dir: str | Path | None, config: Path | None, overrides: Iterable[str]
) -> dict[str, str]:
    """The settings by name, each source over the ones before it: profile or file, environment, options, --set."""
    given = {**DEVELOPMENT, **FOR_PEOPLE} if config is None else read_config(config)
    of_environment = settings_of_environment(os.environ)
    if (config is None and "listeners" not in of_environment) or port is not None or host is not None:
        given["listeners"] = f"PLAINTEXT://{host or '127.0.0.1'}:{9092 if port is None else port}"
        of_environment.pop("listeners", None)
    if data_dir is not None:
        given["log.dirs"] = str(data_dir)
        for name in ("log.dirs", "log.dir"):
            of_environment.pop(name, None)
    elif config is None:
        given["log.dirs"] = "barnabas-data"
    given |= of_environment
    return {**given, **assignments(overrides)}


def assignments(overrides: Iterable[str]) -> dict[str, str]:
    """What ``--set name=value`` says."""
    given = {}
    for override in overrides:
        name, equals, value = override.partition("=")
        if not equals:
            raise InvalidSetting(f"--set {override!r} must be name=value")
        given[name.strip()] = value
    return given


def _warn_of_unused(settings: BrokerSettings) -> None:
    for name in sorted(settings.given):
        if name in BROKER_SETTINGS and BROKER_SETTINGS[name].unused:
            print(f"barnabas: {name} is set. {BROKER_SETTINGS[name].doc}", file=sys.stderr)


def _run(settings: BrokerSettings, *, is_ephemeral: bool, profile: str | None, beside: Sequence[SideProcess]) -> int:
    loop = new_event_loop()
    try:
        return loop.run_until_complete(_serve(settings, is_ephemeral=is_ephemeral, profile=profile, beside=beside))
    finally:
        loop.close()


async def _serve(
    settings: BrokerSettings, *, is_ephemeral: bool, profile: str | None, beside: Sequence[SideProcess]
) -> int:
    loop = asyncio.get_running_loop()
    world = real_world()
    node = Node(world, settings)
    loop.set_exception_handler(node.failures.handle)
    node.on_recovery = RecoveryBar(sys.stderr, world.clock).show
    stop = asyncio.Event()
    interrupted = asyncio.Event()

    def on_signal(number: signal.Signals) -> None:
        if stop.is_set():
            _die()
        if number is signal.SIGINT:
            interrupted.set()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
    stopping = asyncio.ensure_future(stop.wait())
    starting = asyncio.ensure_future(node.start())  # which may wait for a cluster to join
    await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
    if starting.done():
        if starting.exception() is not None:
            stopping.cancel()
            await world.workers.close()
        starting.result()
        gc.freeze()  # so does what was built by now; every full collection would stop all clients for 20 ms to see that
        with noted(_note(node)):
            if profile is not None:
                remember(profile, node.bootstrap_servers)
            _announce(node, is_ephemeral=is_ephemeral, beside=beside)
            for each in beside:
                each.start(node.bootstrap_servers)
            notify("READY=1", f"STATUS=serving at {node.bootstrap_servers}")
            failing = asyncio.ensure_future(node.failed.wait())
            await asyncio.wait([stopping, failing], return_when=asyncio.FIRST_COMPLETED)
            failing.cancel()
            await asyncio.gather(*(each.stop() for each in beside))
    else:
        starting.cancel()
        await asyncio.wait([starting])
    stopping.cancel()
    notify("STOPPING=1")
    # Ctrl-C ends all brokers of a local cluster at once; SIGTERM is for one broker, which hands its leaderships over.
    await node.stop(hands_over=not interrupted.is_set())
    await world.workers.close()
    return 1 if node.failed.is_set() else 0


def _note(node: Node) -> Running:
    settings = node.settings
    http = None if node.http is None else f"http://{reachable(node.http.host)}:{node.http.port}"
    return Running(
        directory=os.path.abspath(settings.log_dirs[0]),
        pid=os.getpid(),
        servers=node.bootstrap_servers,
        http=http,
        cluster_id=node.cluster_id,
        node_id=settings.node_id,
        started_ms=node.world.clock.wall_ms(),
    )


def _die() -> NoReturn:
    raise SystemExit(INTERRUPTED)


def _announce(node: Node, *, is_ephemeral: bool, beside: Sequence[SideProcess]) -> None:
    """Every endpoint, where the data is, and what to try; for scripts one line that starts with READY."""
    if not sys.stdout.isatty():
        print(f"READY {node.bootstrap_servers}", flush=True)
        return
    address = "" if node.bootstrap_servers == "127.0.0.1:9092" else f" --bootstrap-server {node.bootstrap_servers}"
    kept = "gone when it stops" if is_ephemeral else "durable"
    directories = ", ".join(node.settings.log_dirs)
    names = {where: "" if len(node.listeners) == 1 else f" ({name})" for name, where in _served(node)}
    print(
        "barnabas is ready",
        *(f"  KAFKA    {where}{name}" for where, name in names.items()),
        *(line for each in beside for line in each.lines()),
        *metrics_lines([_note(node)]),
        f"  DATA     {directories} ({kept}) · cluster {node.cluster_id} · node {node.settings.node_id}",
        f"  try      barnabas topic create hello -p 3{address}",
        f"           echo hi | barnabas produce hello{address}",
        f"           barnabas consume hello -o start --exit{address}",
        "  Ctrl-C stops",
        sep="\n",
        flush=True,
    )


def _served(node: Node) -> Iterator[tuple[str, str]]:
    """Each listener by its name, and where it is."""
    for listener in node.listeners:
        yield listener.name, f"{reachable(listener.host)}:{listener.port}"
