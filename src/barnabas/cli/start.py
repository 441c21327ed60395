"""``barnabas up``: the options of a broker on the command line; starting it is ``up.py``'s."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path


def configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--port", type=int, metavar="N", help="the port to listen on, 0 for a free one (default 9092)")
    add("--host", metavar="ADDRESS", help="the address to listen on (default 127.0.0.1)")
    add("--data-dir", type=Path, metavar="PATH", help="where the files are kept (default ./barnabas-data)")
    add("--ephemeral", action="store_true", help="leave nothing behind")
    add(
        "--set", action="append", default=[], dest="overrides", metavar="KEY=VALUE", help="a broker setting; repeatable"
    )
    add("--detach", action="store_true", help="in the background: come back when it is ready")
    add("--config", type=Path, metavar="FILE", help="settings from a server.properties or TOML file")


def run(arguments: Namespace) -> int:
    import gc

    from barnabas.cli.up import up

    gc.enable()
    options = vars(arguments)
    if options.pop("detach"):
        from barnabas.cli.detach import detach_up

        return detach_up(arguments)
    return up(**options)
