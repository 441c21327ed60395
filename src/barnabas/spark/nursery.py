"""One process that has imported what Spark's processes of Python need, and forks each of them when Spark asks for it.

On one machine Spark starts a dozen: one to look for sources, one to plan, to build a sink, to commit it, each behind a
process that forks it, and the workers. Every one would import the same by itself, which is most of its memory and of
the time until a query's first batch. The driver starts this process and names ``asking.py`` as Spark's Python; that one
sends what it was told, its environment, directory and standard streams, and becomes what Spark believes it is. Who is
forked here runs Spark's own code. Without an answer from here all is as Spark does it by itself.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from barnabas.spark.asking import ADDRESS, GIVEN, HERE
from barnabas.spark.daemon import prepare

# What Spark runs on the driver, beside the workers.
PLANNERS: Final = (
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.python_streaming_sink_runner",
)
DAEMONS: Final = ("pyspark.daemon", "barnabas.spark.daemon")
OTHERS: Final = ("pyspark.sql.streaming.python_streaming_source_runner",)
REQUEST_BYTES_MAX: Final = 4 * 1024 * 1024
REQUEST_SECONDS_MAX: Final = 10.0
READY_SECONDS_MAX: Final = 30.0
SEED: Final = "PYTHONHASHSEED"  # Spark's workers must agree about hashes, which is settled when Python starts
COMMAND_CHARACTERS_MAX: Final = 15  # of a process's short name, by which ps shows it


class Nursery:
    """The driver's side of it."""

    def __init__(self, python: Path) -> None:
        self._python = python
        self._home = Path(tempfile.mkdtemp(prefix="barnabas-nursery-"))
        self._address = str(self._home / "address")
        command = [sys.executable, "-m", __name__, self._address]
        environment = os.environ | {SEED: os.environ.get(SEED, "0"), "PYTHONUNBUFFERED": "YES"}
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
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        shutil.rmtree(self._home, ignore_errors=True)


@cache
def nursery(cache_directory: Path) -> Nursery | None:
    """The one of this process; None where there cannot be one."""
    if sys.platform != "linux":
        return None
    try:
        return Nursery(_asking_python(cache_directory))
    except OSError:
        return None


def _asking_python(cache_directory: Path) -> Path:
    """A program that Spark can take for Python."""
    asking = Path(__file__).with_name("asking.py")
    script = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -IS {shlex.quote(str(asking))} "$@"\n'
    place = cache_directory / f"python-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    if not place.is_file() or place.read_text() != script:
        cache_directory.mkdir(parents=True, exist_ok=True)
        fresh = place.with_name(f"{place.name}.{os.getpid()}")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(place)  # another process may be doing the same
    return place


class Request(NamedTuple):
    module: str
    arguments: list[str]
    environment: Mapping[str, str]
    files: list[int]  # standard input, output and error, and the directory

    @property
    def is_possible(self) -> bool:
        has_same_seed = self.environment.get(SEED, os.environ[SEED]) == os.environ[SEED]
        return has_same_seed and self.module in (*DAEMONS, *OTHERS)


def main() -> None:
    address = sys.argv[1]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to answer, as it is for Spark's Java
    signal.signal(signal.SIGCHLD, _reap)
    prepare(PLANNERS)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(address)
    listening.listen()
    os.write(1, GIVEN)
    while True:
        ready, _, _ = select.select([0, listening.fileno()], [], [])
        if 0 in ready:  # the driver has gone
            break
        line, _ = listening.accept()
        with line:
            _serve(line, listening)
    shutil.rmtree(Path(address).parent, ignore_errors=True)


def _reap(*_: object) -> None:
    """Those who have ended; what they took of the processor then counts as ours, as it would as Java's."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve(line: socket.socket, listening: socket.socket) -> None:
    line.settimeout(REQUEST_SECONDS_MAX)
    try:
        request = receive(line)
    except (OSError, ValueError):
        return  # it has gone, or will go its own way
    try:
        if request.is_possible and os.fork() == 0:
            listening.close()
            line.settimeout(None)
            line.sendall(GIVEN)
            _become(request)
    finally:
        for file in request.files:
            os.close(file)


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


def _become(request: Request) -> NoReturn:
    """The process that Spark asked for, to its end."""
    code = 1
    try:
        for number, file in enumerate(request.files[:HERE]):
            os.dup2(file, number)
        os.fchdir(request.files[HERE])
        for file in request.files:
            os.close(file)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(request.environment)
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
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


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
