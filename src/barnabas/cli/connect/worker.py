"""``barnabas connect worker``: run a worker until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.serve.http_services import BUSY, parent_gone
from barnabas.cli.serve.logs import write_logs
from barnabas.cli.terminal.config_file import read_config
from barnabas.cli.terminal.connection import attend, client_settings, pairs
from barnabas.model.errors import BarnabasError
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.connect.worker.worker import Worker

OPTIONS: Final = {
    "host": "host",
    "port": "port",
    "data_dir": "data.dir",
    "plugins": "plugins.directory",
    "master": "spark.master",
}


def run_worker(arguments: Namespace) -> int:
    """Run until stopped; return the exit code."""
    try:
        from barnabas.connect.worker.settings import WorkerSettings
        from barnabas.connect.worker.worker import Worker
    except ImportError as error:
        raise Failure(f"{error.name} is missing: `pip install 'barnabas[connect]'` installs it") from error
    write_logs()
    given = {} if arguments.config is None else dict(read_config(arguments.config))
    given |= pairs(arguments.settings)
    given |= {key: str(value) for name, key in OPTIONS.items() if (value := getattr(arguments, name)) is not None}
    client = client_settings(arguments)
    if arguments.servers is not None:
        given["bootstrap.servers"] = arguments.servers
    client |= {key.removeprefix("client."): value for key, value in given.items() if key.startswith("client.")}
    try:
        settings = WorkerSettings.read(given)
        worker = Worker(settings, client)
    except BarnabasError as error:
        raise Failure(str(error)) from error
    return attend(_run(worker, with_parent=arguments.with_parent), is_long=True)


async def _run(worker: Worker, *, with_parent: bool) -> int:
    """Run until a signal or, if wanted, the end of the parent; return the exit code."""
    from barnabas.rest.server import PortBusy

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop.set)
    stopping: list[asyncio.Future[Any]] = [asyncio.ensure_future(stop.wait())]
    if with_parent:
        stopping.append(asyncio.ensure_future(parent_gone()))
    try:
        await worker.start()
        print(f"Connect's REST API is at {worker.url}; `barnabas connect list` shows connectors", file=sys.stderr)
        await asyncio.wait(stopping, return_when=asyncio.FIRST_COMPLETED)
    except PortBusy as error:
        print(f"barnabas: {error}; --port N takes another", file=sys.stderr)
        return BUSY
    finally:
        for waiting in stopping:
            waiting.cancel()
        await worker.stop()
    return 0
