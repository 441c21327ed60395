"""``barnabas down``: stop the brokers that run from a data directory, cleanly, and wait until they are gone.

What was written stays; with ``--purge`` it is deleted afterwards.
"""

from __future__ import annotations

import os
import shutil
import signal
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from barnabas.cli.serve.running import (
    CLUSTER_DIRECTORIES,
    DATA_DIRECTORY,
    find_running,
    find_supervisor,
    wait_until_free,
)
from barnabas.ops.failure import Failure

STOP_SECONDS_MAX: Final = 60.0
META_FILE: Final = "meta.properties"


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--data-dir", type=Path, default=Path(DATA_DIRECTORY), metavar="PATH", help="whose brokers")
    parser.add_argument("--purge", action="store_true", help="delete the directory and everything in it afterwards")
    parser.add_argument("-y", "--yes", action="store_true", help="with --purge: do not ask")


def run(arguments: Namespace) -> None:
    from barnabas.cli.terminal.verbs import confirm

    directory: Path = arguments.data_dir
    brokers = find_running(directory)
    if not brokers and not arguments.purge:
        raise Failure(f"no broker runs from {directory}")
    if arguments.purge:
        if not any(
            path.exists() for path in (directory / META_FILE, *directory.glob(f"{CLUSTER_DIRECTORIES}/{META_FILE}"))
        ):
            raise Failure(f"{directory} is no data directory: it has no {META_FILE}, so nothing is deleted")
        confirm(f"Delete {directory} and every record in it?", arguments)
    supervisor = find_supervisor(directory)
    # Whoever looks after several brokers stops them all; told to stop one by one, it might start them again.
    for pid in [broker.pid for broker in brokers] if supervisor is None else [supervisor]:
        os.kill(pid, signal.SIGTERM)
    for broker in brokers:
        if not wait_until_free(Path(broker.directory), seconds_max=STOP_SECONDS_MAX):
            raise Failure(
                f"broker {broker.node_id} (process {broker.pid}) has not stopped within {STOP_SECONDS_MAX:g} s; "
                f"`kill -9 {broker.pid}` ends it, and its next start recovers"
            )
        print(f"broker {broker.node_id}: stopped")
    if arguments.purge:
        shutil.rmtree(directory)
        print(f"{directory}: deleted")
