"""A broker that the harness can start, watch and stop.

A peer owns one process (with its children), a temporary directory and its ports, and leaves nothing behind. How its
command looks is the business of the modules beside this one; what it costs is read by `bench.measure` through `pids`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

from bench.measure import process_tree
from bench.memory_group import MemoryGroup
from bench.probe import NotAnswering, free_port, wait_until_answering

_ROOT = Path(__file__).parents[2]
READY_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 20.0
_LOG_LINES_SHOWN_MAX = 20


class PeerFailed(Exception):
    """The broker could not be started; the message carries the end of what it printed."""


class Peer(ABC):
    """One broker. `with Peer() as peer:` starts it, waits until it answers, and stops it."""

    name: ClassVar[str]
    # Whether this peer keeps what it is sent: one that does not can only be asked how fast it starts.
    stores_records: ClassVar[bool] = True
    # Whether it gets faster while it runs, as what a compiler watches does: then it is given the time to.
    learns: ClassVar[bool] = False
    brokers: ClassVar[int] = 1

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.settings = dict(settings or {})
        self.host = "127.0.0.1"
        self.port = free_port()
        self.directory = Path(tempfile.mkdtemp(prefix=f"bench-{self.name}-"))
        self.data_dir = self.directory / "data"
        self.ready_seconds = 0.0
        # Set before the start: what a process held before it came into a group is not counted there.
        self.memory_group: MemoryGroup | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pids(self) -> list[int]:
        """The processes of the broker, the one we started first."""
        return process_tree(self._process.pid) if self._process is not None else []

    @abstractmethod
    def command(self) -> list[str]:
        """The command that runs the broker until it is told to stop."""

    def prepare(self) -> None:  # noqa: B027 - most peers have nothing to prepare
        """What has to happen once before the first start; not part of the start-up time."""

    def find_port(self) -> None:  # noqa: B027 - most peers use the port they are given
        """For peers which choose their port themselves: wait for them to say it."""

    def topic_directories(self, topic: str) -> list[Path]:
        """Where the partitions of a topic lie, whichever broker holds them."""
        return sorted(path for path in self.data_dir.glob(f"**/{topic}-*") if path.is_dir())

    def start(self) -> None:
        """Starts the broker and returns when it answers; `ready_seconds` is how long that took from the command on."""
        assert self._process is None, "a peer is started once at a time"
        self.prepare()
        command = self.memory_group.joining(self.command()) if self.memory_group else self.command()
        with self.log_path.open("ab") as log:
            started = time.monotonic()
            try:
                self._process = subprocess.Popen(
                    command,
                    cwd=_ROOT,
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                raise PeerFailed(f"{self.name} could not be started: {error}") from error
        _share_priority(self._process.pid)
        try:
            self.find_port()
            wait_until_answering(self.host, self.port, alive=self.is_alive, timeout_seconds=READY_SECONDS_MAX)
        except NotAnswering as error:
            failure = f"{self.name} did not start: {error}\n{self.log_end()}"
            self.stop()
            raise PeerFailed(failure) from error
        self.ready_seconds = time.monotonic() - started
        for pid in self.pids:
            _share_priority(pid)

    def stop(self) -> None:
        """Asks politely, then insists; only what this peer started is touched."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def remove(self) -> None:
        """Forgets all data. The directory is a temporary one of our own."""
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def log_path(self) -> Path:
        return self.directory / "output.log"

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log_end(self) -> str:
        """The last lines that the broker printed."""
        lines = self.log_path.read_text(errors="replace").splitlines() if self.log_path.exists() else []
        return "\n".join(lines[-_LOG_LINES_SHOWN_MAX:])

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.remove()


def _share_priority(pid: int) -> None:
    """Gives a broker the harness's own weight: Linux weighs whole sessions, and a broker is a session of its own."""
    try:
        nice = Path("/proc/self/autogroup").read_text().split()[-1]
        Path(f"/proc/{pid}/autogroup").write_text(nice)
    except (OSError, IndexError):
        return  # there are kernels that know nothing of it, and processes that are gone already
