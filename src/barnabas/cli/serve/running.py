"""Which brokers run from a data directory: a note that each leaves there while it runs, and how to tell a stale one.

The lock of the directory is the truth: a note beside a lock that nobody holds was left by a broker that was killed.
``up`` writes the note, ``status`` and ``down`` read it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.ops.failure import Failure

NOTE_FILE: Final = ".barnabas-running.json"
LOCK_FILE: Final = ".lock"
SUPERVISOR_FILE: Final = ".barnabas-supervisor"
DATA_DIRECTORY: Final = "barnabas-data"
CLUSTER_DIRECTORIES: Final = "broker-[0-9]*"


class Running(NamedTuple):
    directory: str
    pid: int
    servers: str
    http: str | None
    cluster_id: str
    node_id: int
    started_ms: int


def metrics_lines(brokers: Sequence[Running]) -> list[str]:
    """The line, if any, that says where the metrics of brokers are."""
    addresses = [broker.http for broker in brokers if broker.http is not None]
    if not addresses:
        return []
    others = "".join(f", :{address.rpartition(':')[2]}" for address in addresses[1:])
    return [f"  METRICS  {addresses[0]}/metrics{others}"]


@contextmanager
def noted(running: Running) -> Iterator[None]:
    """While a broker runs."""
    path = Path(running.directory) / NOTE_FILE
    path.write_text(json.dumps(running._asdict()) + "\n")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def supervised(directory: Path) -> Iterator[None]:
    """While one process looks after the brokers below a directory, and would start them again."""
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory / SUPERVISOR_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    except BlockingIOError:
        raise Failure(f"the brokers of {directory} run already; `barnabas status` shows them") from None
    finally:
        os.close(descriptor)


def find_supervisor(directory: Path) -> int | None:
    """The process that looks after the brokers below a directory, if one does."""
    path = directory / SUPERVISOR_FILE
    if not path.exists() or not _is_locked(path):
        return None
    text = path.read_text()
    return int(text) if text.isdigit() else None


def find_running(directory: Path) -> list[Running]:
    """The brokers that run from this directory or, where it is the home of a cluster, from those that it made.

    Others below it are nobody's business: whoever stops the brokers of a directory means no more than these.
    """
    if not directory.is_dir():
        raise Failure(f"there is no directory {directory}: `barnabas up` makes one, --data-dir names another")
    found = []
    for path in sorted([directory / NOTE_FILE, *directory.glob(f"{CLUSTER_DIRECTORIES}/{NOTE_FILE}")]):
        running = _read(path)
        if running is not None and is_held(path.parent):
            found.append(running)
    return sorted(found, key=lambda each: each.node_id)


def _read(path: Path) -> Running | None:
    try:
        return Running(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None  # gone meanwhile, or cut off by a crash


def is_held(directory: Path) -> bool:
    """Whether a broker has the directory now."""
    return _is_locked(directory / LOCK_FILE)


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def wait_until_free(directory: Path, *, seconds_max: float, pause_seconds: float = 0.02) -> bool:
    """Whether the directory was let go in time."""
    ends = time.monotonic() + seconds_max
    while is_held(directory):
        if time.monotonic() >= ends:
            return False
        time.sleep(pause_seconds)
    return True
