"""The fork server forks the process that a client requests; a client without an answer starts plain Python."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from barnabas.spark.processes import fork_client
from barnabas.spark.processes import fork_server as tested
from barnabas.spark.processes.fork_client import ADDRESS
from barnabas.spark.processes.fork_server import ForkServer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the fork server needs Linux")
WAIT_SECONDS_MAX = 120
SOURCE = "pyspark.sql.streaming.python_streaming_source_runner"
DRIVER = """
import sys, time
from pathlib import Path
from barnabas.spark.processes.fork_server import fork_server
fork_server(Path(sys.argv[1])).wait()
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ForkServer]:
    made = ForkServer(tested.client_program(tmp_path / "cache"))
    made.wait()
    yield made
    made.stop()


def ask(server: ForkServer, *arguments: str, here: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | server.environment | more
    command = [environment["PYSPARK_PYTHON"], *arguments]
    return subprocess.run(
        command, cwd=here, env=environment, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX, input=""
    )


@contextmanager
def daemon(server: ForkServer, here: Path) -> Iterator[tuple[subprocess.Popen[bytes], int, int]]:
    """Spark's daemon, as Spark starts it: the client, the number of the forked process, and its port."""
    environment = os.environ | server.environment | {"PYTHON_WORKER_FACTORY_SECRET": "secret"}
    command = [environment["PYSPARK_PYTHON"], "-m", "pyspark.daemon", "pyspark.worker"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=here, env=environment, stdin=pipe, stdout=pipe) as asking:
        assert asking.stdout is not None
        port = int.from_bytes(asking.stdout.read(4), "big")
        (process,) = children(server._process.pid)
        try:
            yield asking, process, port
        finally:
            asking.kill()
            until(lambda: not children(server._process.pid))


def children(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_client_ends_with_the_exit_code_of_its_process(server: ForkServer, tmp_path: Path) -> None:
    with daemon(server, tmp_path) as (asking, process, _):
        os.kill(process, signal.SIGKILL)
        assert asking.wait(WAIT_SECONDS_MAX) == 128 + signal.SIGKILL


def test_a_killed_daemon_is_noticed_while_its_worker_lives(server: ForkServer, tmp_path: Path) -> None:
    with daemon(server, tmp_path) as (asking, process, port), socket.create_connection(("127.0.0.1", port)) as line:
        worker = int.from_bytes(line.recv(4), "big")
        os.kill(process, signal.SIGKILL)
        asking.wait(WAIT_SECONDS_MAX)
        os.kill(worker, signal.SIGKILL)


def test_a_forked_process_ends_when_spark_ends_its_client(server: ForkServer, tmp_path: Path) -> None:
    """Spark ends the client. Its closed standard input must not be what ends the process."""
    with daemon(server, tmp_path) as (asking, process, _):
        asking.terminate()
        until(lambda: not Path(f"/proc/{process}").exists())


def test_the_server_keeps_no_descriptor_of_a_process_that_ended(server: ForkServer, tmp_path: Path) -> None:
    def count() -> int:
        return len(list(Path(f"/proc/{server._process.pid}/fd").iterdir()))

    before = count()
    with daemon(server, tmp_path):
        assert count() == before + 2
    assert count() == before


def test_a_fork_of_the_driver_that_ends_does_not_stop_the_server(server: ForkServer, tmp_path: Path) -> None:
    forked = os.fork()
    if forked == 0:
        server.stop()
        os._exit(0)
    os.waitpid(forked, 0)
    assert server._process.poll() is None


def test_it_computes_with_as_many_threads_as_spark_allows_a_task(server: ForkServer, tmp_path: Path) -> None:
    threads = [(each / "comm").read_text().strip() for each in Path(f"/proc/{server._process.pid}/task").iterdir()]
    others = [name for name in threads if name != "jemalloc_bg_thd"]  # of an allocator, which knows of forks
    assert len(others) == 1, "a fork would leave them behind"
    more = ask(server, "-m", SOURCE, here=tmp_path, OMP_NUM_THREADS="7", PYTHON_WORKER_FACTORY_PORT="1")
    assert "fork_server.py" not in more.stderr, "that is settled when libraries are loaded"


def test_a_time_zone_of_the_environment_counts() -> None:
    before = dict(os.environ)
    try:
        tested.set_environment(before | {"TZ": "Asia/Kathmandu"})
        assert time.localtime(0).tm_gmtoff == 5.5 * 3600
    finally:
        tested.set_environment(before)


def test_sparks_modules_are_forked_and_anything_else_is_plain_python(server: ForkServer, tmp_path: Path) -> None:
    asked = ask(server, "-m", SOURCE, here=tmp_path, PYTHON_WORKER_FACTORY_PORT="1", PYTHON_WORKER_FACTORY_SECRET="x")
    assert asked.returncode != 0
    assert "fork_server.py" in asked.stderr, "Spark's own code ran there, and found nobody at that port"
    other = ask(server, "-c", "import sys; print(sys.argv, 'pyspark' in sys.modules)", "word", here=tmp_path)
    assert other.stdout.strip() == "['-c', 'word'] False"
    seeded = ask(server, "-m", SOURCE, here=tmp_path, PYTHONHASHSEED="5", PYTHON_WORKER_FACTORY_PORT="1")
    assert "fork_server.py" not in seeded.stderr, "hashes that differ are Python's to make"


def test_without_a_server_it_is_plain_python(server: ForkServer, tmp_path: Path) -> None:
    gone = ask(server, "-m", "this", here=tmp_path, **{ADDRESS: "nobody"})
    assert gone.returncode == 0
    assert "Zen" in gone.stdout


@pytest.mark.parametrize("is_ready", [True, False])
def test_the_server_ends_with_the_driver(tmp_path: Path, is_ready: bool) -> None:
    made = ForkServer(tested.client_program(tmp_path / "cache"))
    if is_ready:
        made.wait()
    assert made._process.stdin is not None
    assert made._process.stdout is not None
    made._process.stdin.close()  # as when the driver is killed
    made._process.stdout.close()
    assert made._process.wait(WAIT_SECONDS_MAX) == 0


def test_a_driver_that_is_killed_with_all_that_it_started_leaves_nothing_behind(tmp_path: Path) -> None:
    files = tmp_path / "temporary"
    files.mkdir()
    environment = os.environ | {"TMPDIR": str(files)}
    command = [sys.executable, "-c", DRIVER, str(tmp_path / "cache")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, start_new_session=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"ready\n"
        os.killpg(driver.pid, signal.SIGKILL)
    assert not list(files.iterdir())


def test_a_server_of_another_user_gets_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"barnabas-test-{tmp_path.name}-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(f"\0{name}")
        listening.listen()
        monkeypatch.setattr(os, "geteuid", lambda: 123_456)
        assert fork_client.request(name, ["-m", SOURCE]) is None
        with listening.accept()[0] as line:
            assert line.recv(1) == b"", "it was told nothing"


def test_a_client_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert fork_client.is_same_user(ours)
        monkeypatch.setattr(os, "geteuid", lambda: 123_456)
        assert not fork_client.is_same_user(ours)
