"""A process that has imported what Spark's Python processes need, and forks each of them on request.

On one machine Spark starts a dozen Python processes: to look up sources, to plan, to build a sink, to commit it, each
with a daemon in front of it, and the workers. Importing the same modules in each is most of their memory and of the
time until a query's first batch. The driver starts this process and names ``fork_client.py`` as Spark's Python. That
program sends the arguments, environment, directory and standard streams that it was started with; the process forked
here takes them over and runs Spark's own code. Without an answer from here Python starts as Spark started it.

The connection to a client stays open in this process only. When the forked process ends, its exit code is sent over
the connection; when the client ends, as Spark ends a process that it does not need any more, the forked process gets
SIGTERM.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import runpy
import secrets
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from barnabas.spark.processes.daemon import prepare
from barnabas.spark.processes.fork_client import ACCEPTED, ADDRESS, DIRECTORY, is_same_user

# Modules that Spark runs on the driver, beside the workers.
PLANNERS: Final = (
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.python_streaming_sink_runner",
)
DAEMONS: Final = ("pyspark.daemon", "barnabas.spark.processes.daemon")
OTHERS: Final = ("pyspark.sql.streaming.python_streaming_source_runner",)
REQUEST_BYTES_MAX: Final = 4 * 1024 * 1024
REQUEST_SECONDS_MAX: Final = 10.0
READY_SECONDS_MAX: Final = 30.0
# Variables that are read once, when Python or a numerical library starts: the seed of string hashes, which must be
# equal in all of Spark's workers, and the number of computing threads, which Spark sets to the cores of a task.
FIXED_VARIABLES: Final = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
SIGNALLED: Final = 128  # exit code of a killed process minus the signal's number, as shells and Java have it
COMMAND_CHARACTERS_MAX: Final = 15  # Linux's limit for a process's short name


class ForkServer:
    """The driver's handle of the process."""

    def __init__(self, python: Path) -> None:
        self._python = python
        self._owner = os.getpid()
        self._address = f"barnabas-fork-server-{secrets.token_hex(8)}"
        command = [sys.executable, "-m", __name__, self._address]
        environment = FIXED_VARIABLES | os.environ | {"PYTHONUNBUFFERED": "YES"}
        self._process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        atexit.register(self.stop)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that Spark must find in its environment when it starts."""
        python = str(self._python)
        return {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python, ADDRESS: self._address}

    def wait(self) -> None:
        """Wait until the process listens. Spark itself usually takes longer to start."""
        assert self._process.stdout is not None
        select.select([self._process.stdout], [], [], READY_SECONDS_MAX)

    def stop(self) -> None:
        """End the process. Processes that it has forked live as long as Spark needs them."""
        if os.getpid() != self._owner:  # a fork of the driver has ended, not the driver
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@cache
def fork_server(cache_directory: Path) -> ForkServer | None:
    """The fork server of this process, started at the first call; None where the system does not support one."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return None
    try:
        return ForkServer(client_program(cache_directory))
    except OSError:
        return None


def client_program(cache_directory: Path) -> Path:
    """A program that Spark can start in place of Python, written to the cache if it is missing."""
    client = Path(__file__).with_name("fork_client.py")
    script = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -IS {shlex.quote(str(client))} "$@"\n'
    path = cache_directory / f"python-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    if not path.is_file() or path.read_text() != script:
        cache_directory.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(path)  # atomic: another process may write the same program
    if not os.access(path, os.X_OK):
        raise PermissionError(f"{path} cannot be executed; is {cache_directory} mounted with noexec?")
    return path


class Request(NamedTuple):
    module: str
    arguments: list[str]
    environment: Mapping[str, str]
    files: list[int]  # descriptors of standard input, output and error, and of the working directory

    @property
    def is_supported(self) -> bool:
        has_fixed = all(self.environment.get(name, os.environ[name]) == os.environ[name] for name in FIXED_VARIABLES)
        return has_fixed and self.module in (*DAEMONS, *OTHERS)


class Child(NamedTuple):
    process: int
    end: int  # pidfd of the process; readable when the process has ended
    connection: socket.socket  # connection to the client; readable when the client has ended


class Children:
    """The processes forked here that have not ended, and the loop that waits for requests, ends and the driver."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._children: dict[int, Child] = {}  # by both descriptors of the child
        self._poll = select.poll()  # unlike epoll it has no descriptor that a forked process would share
        for file in (0, listening.fileno()):
            self._poll.register(file, select.POLLIN)

    def run(self) -> None:
        """Serve requests until the driver closes standard input."""
        while True:
            # One event at a time: handling it may close a descriptor, whose number is then reused.
            file, _ = self._poll.poll()[0]
            if file == 0:
                return
            if file == self._listening.fileno():
                self._accept()
            else:
                self._reap(file, self._children[file])

    def _accept(self) -> None:
        connection, _ = self._listening.accept()
        connection.settimeout(REQUEST_SECONDS_MAX)
        try:
            if not is_same_user(connection):
                raise PermissionError("the client runs as another user")
            request = receive(connection)
        except (OSError, ValueError):
            connection.close()  # the client starts plain Python
            return
        try:
            if not request.is_supported:
                raise ValueError(f"{request.module} is not forked here")
            self._fork(request, connection)
        except (OSError, ValueError):
            connection.close()
        finally:
            for file in request.files:
                os.close(file)

    def _fork(self, request: Request, connection: socket.socket) -> None:
        process = os.fork()
        if process == 0:
            others = [child.connection for child in self._children.values()]
            ends = [child.end for child in set(self._children.values())]
            _run_child(request, [connection, self._listening, *others], ends)
        try:
            end = os.pidfd_open(process)
        except OSError:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            raise
        child = Child(process, end, connection)
        for file in (end, connection.fileno()):
            self._children[file] = child
            self._poll.register(file, select.POLLIN)
        with suppress(OSError):  # if the client has ended, its connection becomes readable
            connection.sendall(ACCEPTED)

    def _reap(self, file: int, child: Child) -> None:
        """Handle the end of the child, or of its client."""
        self._poll.unregister(file)
        del self._children[file]
        if file != child.end:
            os.kill(child.process, signal.SIGTERM)  # the number is still the child's: waitpid() was not called yet
            return
        code = os.waitstatus_to_exitcode(os.waitpid(child.process, 0)[1])
        with suppress(OSError):
            child.connection.sendall(b"%d\n" % (code if code >= 0 else SIGNALLED - code))
        if self._children.pop(child.connection.fileno(), None) is not None:
            self._poll.unregister(child.connection.fileno())
        child.connection.close()
        os.close(child.end)


def main() -> None:
    address = sys.argv[1]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the driver, as with Spark's Java process
    os.close(os.pidfd_open(os.getpid()))  # fails at once on a kernel without pidfd
    prepare(PLANNERS)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(f"\0{address}")
    listening.listen()
    with suppress(BrokenPipeError):  # the driver has ended meanwhile
        os.write(1, ACCEPTED)
    Children(listening).run()


def receive(connection: socket.socket) -> Request:
    """Read one request. Raises ValueError, with all received descriptors closed, if it is malformed."""
    head, files, _, _ = socket.recv_fds(connection, 4, DIRECTORY + 1)
    size = int.from_bytes(head, "big")
    try:
        if len(head) != 4 or len(files) != DIRECTORY + 1 or size > REQUEST_BYTES_MAX:
            raise ValueError("not a request")
        body = b""
        while len(body) < size:
            part = connection.recv(size - len(body))
            if not part:
                raise ValueError("the request is cut off")
            body += part
        words = os.fsdecode(body).split("\0")
        end = words.index("")
        arguments, pairs = words[:end], words[end + 1 :]
        environment = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        return Request(arguments[1], arguments[2:], environment, files)
    except (ValueError, IndexError, OSError) as error:
        for file in files:
            os.close(file)
        raise ValueError(str(error)) from error


def _run_child(request: Request, connections: Iterable[socket.socket], ends: Iterable[int]) -> NoReturn:
    """Run the requested module in the forked process until it ends, without the server's descriptors."""
    code = 1
    try:
        for connection in connections:
            connection.close()
        for number, file in enumerate(request.files[:DIRECTORY]):
            os.dup2(file, number)
        os.fchdir(request.files[DIRECTORY])
        for file in (*request.files, *ends):
            os.close(file)
        set_environment(request.environment)
        paths = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path and path not in sys.path]
        sys.path[:0] = [os.getcwd(), *paths]
        sys.argv = [request.module, *request.arguments]
        set_process_name((request.arguments or [request.module])[-1])
        _run_module(request.module)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as Python does with an uncaught exception
        traceback.print_exc()
    finally:
        with suppress(Exception):  # the forked process must never return into the server's loop
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def set_environment(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()


def _run_module(module: str) -> None:
    if module in DAEMONS:
        from pyspark.daemon import manager

        manager()
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def set_process_name(module: str) -> None:
    """Show the distinguishing end of the module's name in ``ps``."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(
            module.rpartition(".")[2].removeprefix("python_streaming_")[:COMMAND_CHARACTERS_MAX]
        )


if __name__ == "__main__":
    main()
