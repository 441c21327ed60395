"""``barnabas up``: the options of a broker on the command line; ``up.py`` starts one, ``cluster_run.py`` several."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from barnabas.cli.terminal.rest_services import SERVICES
from barnabas.ops.failure import Failure

REST_TITLES: Final = {"console": "console", "registry": "schema registry"}


def configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--port", type=int, metavar="N", help="the port to listen on, 0 for a free one (default 9092)")
    add("--any-port", dest="port", action="store_const", const=0, help="a free port; the same as --port 0")
    add("--host", metavar="ADDRESS", help="the address to listen on (default 127.0.0.1)")
    add("--data-dir", type=Path, metavar="PATH", help="where the files are kept (default ./barnabas-data)")
    add("--ephemeral", action="store_true", help="leave nothing behind")
    add(
        "--set", action="append", default=[], dest="overrides", metavar="KEY=VALUE", help="a broker setting; repeatable"
    )
    add("--detach", action="store_true", help="in the background: come back when it is ready")
    add("--config", type=Path, metavar="FILE", help="settings from a server.properties or TOML file")
    add("-n", "--brokers", "--nodes", type=int, metavar="N", help="run a whole cluster here, a process to each broker")
    add("--profile", metavar="NAME", help="let every command find it: write this profile, and use it")
    for name, title in REST_TITLES.items():
        variable = f"BARNABAS_{name.upper()}_PORT"
        add(
            f"--{name}-port",
            type=int,
            metavar="N",
            default=os.environ.get(variable),
            help=f"port of the {title} beside the broker; ${variable}, else {SERVICES[name].port}",
        )
    add(
        "--connect",
        action="store_true",
        help="run a Connect worker beside the broker; its data are in DATA_DIR/connect",
    )
    add("--connect-port", type=int, metavar="N", help="with --connect: port of Connect's REST API (default 8083)")
    add("--no-rest", action="store_true", help="run no HTTP services (console, schema registry) beside the broker")
    add("--restart", action="store_true", help="with --brokers: start a broker that dies again")


def _rest_ports(arguments: Namespace) -> dict[str, int]:
    """The ports of the HTTP services; none if they are not wanted, or not asked for by a broker with a port or
    settings of its own."""
    given = {name: getattr(arguments, f"{name}_port") for name in REST_TITLES}
    if arguments.no_rest:
        return {}
    if arguments.port == 0 or arguments.config is not None:
        return {name: port for name, port in given.items() if port is not None}
    return {name: SERVICES[name].port if port is None else port for name, port in given.items()}


def _connect_port(arguments: Namespace) -> int | None:
    """None without a worker."""
    port: int | None = arguments.connect_port
    if not arguments.connect:
        if port is not None:
            raise Failure("--connect-port goes with --connect")
        return None
    from barnabas.cli.terminal.rest_services import CONNECT

    return CONNECT.port if port is None else port


def run(arguments: Namespace) -> int:
    import gc

    from barnabas.cli.serve.up import up

    gc.freeze()  # what was imported stays: the first look of the collector at it would take as long as a start may
    gc.enable()
    options = vars(arguments)
    if options.pop("detach"):
        from barnabas.cli.serve.detach import detach_up

        return detach_up(arguments, rest_ports=_rest_ports(arguments), connect_port=_connect_port(arguments))
    brokers, restart = options.pop("brokers"), options.pop("restart")
    options["rest_ports"] = _rest_ports(arguments)
    options["connect_port"] = _connect_port(arguments)
    for name in ("no_rest", "connect", *(f"{each}_port" for each in REST_TITLES)):
        del options[name]
    if brokers is None:
        if restart:
            raise Failure("--restart goes with --brokers")
        return up(**options)
    from barnabas.cli.serve.cluster_run import up_cluster

    if options.pop("config") is not None:
        raise Failure("--brokers writes the settings of its brokers itself: say --set instead of --config")
    return up_cluster(brokers=brokers, restart=restart, **options)
