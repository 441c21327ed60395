"""``barnabas status``: what runs from a data directory, where it is reached, and whether it answers.

The exit code is 0 only if every broker that runs answers. How well the cluster is, is ``barnabas doctor``'s to say.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from barnabas.cli.serve.running import DATA_DIRECTORY, Running, find_running
from barnabas.cli.terminal.output import add_output, is_table, print_table, print_value
from barnabas.ops.failure import Failure
from barnabas.ops.units import duration


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--data-dir", type=Path, default=Path(DATA_DIRECTORY), metavar="PATH", help="whose brokers")
    add_output(parser)


def run(arguments: Namespace) -> None:
    brokers = find_running(arguments.data_dir)
    if not brokers:
        raise Failure(f"no broker runs from {arguments.data_dir}; `barnabas up` starts one")
    rows = [_row(broker) for broker in brokers]
    if is_table(arguments):
        columns = ("BROKER", "STATE", "KAFKA", "HTTP", "PROCESS", "UP", "DATA")
        cells = [
            (*(row[name] for name in ("broker", "state", "kafka", "http", "process", "up", "data")),) for row in rows
        ]
        print_table(columns, cells, right=("BROKER", "PROCESS"), arguments=arguments)
    else:
        print_value(arguments, rows)
    silent = [row["broker"] for row in rows if row["state"] != "answers"]
    if silent:
        raise Failure(f"broker {silent[0]} runs and does not answer; its log says why, and `barnabas doctor` may")


def _row(broker: Running) -> dict[str, Any]:
    return {
        "broker": broker.node_id,
        "state": "answers" if _answers(broker) else "silent",
        "kafka": broker.servers,
        "http": broker.http or "-",
        "process": broker.pid,
        "up": duration(time.time_ns() // 1_000_000 - broker.started_ms),
        "data": broker.directory,
        "cluster": broker.cluster_id,
    }


def _answers(broker: Running) -> bool:
    """A connection is enough: a broker listens last of all."""
    import socket

    host, _, port = broker.servers.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=2.0).close()
    except OSError:
        return False
    return True
