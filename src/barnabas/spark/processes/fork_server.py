"""One process that has imported what Spark's processes of Python need, and forks each of them when Spark asks for it.

On one machine Spark starts a dozen: one to look for sources, one to plan, to build a sink, to commit it, each behind a
process that forks it, and the workers. Every one would import the same by itself, which is most of its memory and of
the time until a query's first batch. The driver starts this process and names ``asking.py`` as Spark's Python; that one
sends what it was told, its environment, directory and standard streams, and becomes what Spark believes it is. Who is
forked here runs Spark's own code. Without an answer from here all is as Spark does it by itself.

The line to who asked stays with this process, and only here. When who was forked ends, its exit code goes over the
line; when who asked is ended, as Spark does with a process that it has no more use for, who was forked is told to end.
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

from barnabas.spark.processes.daemon import PANDAS, prepare
from barnabas.spark.processes.fork_client import ADDRESS, GIVEN, HERE, is_of_this_user

# What Spark runs on the driver, beside the workers.
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
# What is settled when Python, or a library for numbers, starts: how strings are hashed, which Spark's workers must
# agree about, and how many threads compute, of which Spark allows a task as many as it has cores.
SETTLED: Final = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
SIGNALLED: Final = 128  # and the number of the signal: the exit code of who was killed, as shells and Java have it
COMMAND_CHARACTERS_MAX: Final = 15  # of a process's short name, by which ps shows it


class Nursery:
    """The driver's side of it."""

    def __init__(self, python: Path) -> None:
        self._python = python
        self._owner = os.getpid()
        self._address = f"barnabas-nursery-{secrets.token_hex(8)}"
        # Who has functions of pandas for workers has imported it by now, nearly always; else workers do so themselves.
        more = PANDAS if PANDAS[0] in sys.modules else ()
        command = [sys.executable, "-m", __name__, self._address, *more]
        environment = SETTLED | os.environ | {"PYTHONUNBUFFERED": "YES"}
        self._process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        atexit.register(self.stop)

    @property
    def environment(self) -> dict[str, str]:
        """What Spark must find in its environment when it starts."""
        python = str(self._python)
        return {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python, ADDRESS: self._address}

    def wait(self) -> None:
        """Until it can be asked: Spark itself takes longer to start, nearly always."""
        assert self._process.stdout is not None
        select.select([self._process.stdout], [], [], READY_SECONDS_MAX)

    def stop(self) -> None:
        """Those who were forked stay as long as Spark wants them."""
        if os.getpid() != self._owner:  # a fork of the driver, which goes on
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@cache
def nursery(cache_directory: Path) -> Nursery | None:
    """The one of this process; None where there cannot be one."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return None
    try:
        return Nursery(_asking_python(cache_directory))
    except OSError:
        return None


def _asking_python(cache_directory: Path) -> Path:
    """A program that Spark can take for Python."""
    asking = Path(__file__).with_name("fork_client.py")
    script = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -IS {shlex.quote(str(asking))} "$@"\n'
    place = cache_directory / f"python-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    if not place.is_file() or place.read_text() != script:
        cache_directory.mkdir(parents=True, exist_ok=True)
        fresh = place.with_name(f"{place.name}.{os.getpid()}")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(place)  # another process may be doing the same
    if not os.access(place, os.X_OK):
        raise PermissionError(f"{place} is where nothing may be run")
    return place


class Request(NamedTuple):
    module: str
    arguments: list[str]
    environment: Mapping[str, str]
    files: list[int]  # standard input, output and error, and the directory

    @property
    def is_possible(self) -> bool:
        is_settled_so = all(self.environment.get(name, os.environ[name]) == os.environ[name] for name in SETTLED)
        return is_settled_so and self.module in (*DAEMONS, *OTHERS)


class Child(NamedTuple):
    process: int
    end: int  # a descriptor that can be read when the process has ended
    line: socket.socket  # to who asked for it; can be read when that one has gone


class Cradle:
    """Those who were forked here and have not ended, and the loop that waits for whatever comes next."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._children: dict[int, Child] = {}  # by either descriptor that may become readable
        self._poll = select.poll()  # which has no descriptor of its own that a fork would share
        for file in (0, listening.fileno()):
            self._poll.register(file, select.POLLIN)

    def run(self) -> None:
        """Until the driver has gone."""
        while True:
            file, _ = self._poll.poll()[0]  # one at a time: what is told of the next may be of a descriptor used anew
            if file == 0:
                return
            if file == self._listening.fileno():
                self._welcome()
            else:
                self._part(file, self._children[file])

    def _welcome(self) -> None:
        line, _ = self._listening.accept()
        line.settimeout(REQUEST_SECONDS_MAX)
        try:
            if not is_of_this_user(line):
                raise PermissionError("another user")
            request = receive(line)
        except (OSError, ValueError):
            line.close()  # it has gone, or will go its own way
            return
        try:
            if not request.is_possible:
                raise ValueError(f"{request.module} is not for us")
            self._fork(request, line)
        except (OSError, ValueError):
            line.close()
        finally:
            for file in request.files:
                os.close(file)

    def _fork(self, request: Request, line: socket.socket) -> None:
        process = os.fork()
        if process == 0:
            others = [child.line for child in self._children.values()]
            _become(request, [line, self._listening, *others], [child.end for child in set(self._children.values())])
        try:
            end = os.pidfd_open(process)
        except OSError:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            raise
        child = Child(process, end, line)
        for file in (end, line.fileno()):
            self._children[file] = child
            self._poll.register(file, select.POLLIN)
        with suppress(OSError):  # who has gone meanwhile is noticed as ever
            line.sendall(GIVEN)

    def _part(self, file: int, child: Child) -> None:
        self._poll.unregister(file)
        del self._children[file]
        if file != child.end:
            os.kill(child.process, signal.SIGTERM)  # it cannot be another's number: we have not waited for it
            return
        code = os.waitstatus_to_exitcode(os.waitpid(child.process, 0)[1])
        with suppress(OSError):
            child.line.sendall(b"%d\n" % (code if code >= 0 else SIGNALLED - code))
        if self._children.pop(child.line.fileno(), None) is not None:
            self._poll.unregister(child.line.fileno())
        child.line.close()
        os.close(child.end)


def main() -> None:
    address, *more = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to answer, as it is for Spark's Java
    os.close(os.pidfd_open(os.getpid()))  # a system that does not know these shall say so now
    prepare((*PLANNERS, *more))
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(f"\0{address}")
    listening.listen()
    with suppress(BrokenPipeError):  # a driver that has gone by now
        os.write(1, GIVEN)
    Cradle(listening).run()


def receive(line: socket.socket) -> Request:
    head, files, _, _ = socket.recv_fds(line, 4, HERE + 1)
    size = int.from_bytes(head, "big")
    try:
        if len(head) != 4 or len(files) != HERE + 1 or size > REQUEST_BYTES_MAX:
            raise ValueError("not a request")
        body = b""
        while len(body) < size:
            part = line.recv(size - len(body))
            if not part:
                raise ValueError("half a request")
            body += part
        told = os.fsdecode(body).split("\0")
        end = told.index("")
        arguments, pairs = told[:end], told[end + 1 :]
        environment = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        return Request(arguments[1], arguments[2:], environment, files)
    except (ValueError, IndexError, OSError) as error:
        for file in files:
            os.close(file)
        raise ValueError(str(error)) from error


def _become(request: Request, lines: Iterable[socket.socket], ends: Iterable[int]) -> NoReturn:
    """The process that Spark asked for, to its end; what else is open here is none of its business."""
    code = 1
    try:
        for line in lines:
            line.close()
        for number, file in enumerate(request.files[:HERE]):
            os.dup2(file, number)
        os.fchdir(request.files[HERE])
        for file in (*request.files, *ends):
            os.close(file)
        live_in(request.environment)
        paths = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path and path not in sys.path]
        sys.path[:0] = [os.getcwd(), *paths]
        sys.argv = [request.module, *request.arguments]
        name_process((request.arguments or [request.module])[-1])
        _run(request.module)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as Python does with what nobody has caught
        traceback.print_exc()
    finally:
        with suppress(Exception):  # whatever happens here, there is no way back into the nursery
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def live_in(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()


def _run(module: str) -> None:
    if module in DAEMONS:
        from pyspark.daemon import manager

        manager()
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def name_process(module: str) -> None:
    """The end of the module's name, without what is the same for all, as far as there is room."""
    with suppress(OSError):  # only ps shows less
        Path("/proc/self/comm").write_text(
            module.rpartition(".")[2].removeprefix("python_streaming_")[:COMMAND_CHARACTERS_MAX]
        )


if __name__ == "__main__":
    main()
