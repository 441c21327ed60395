"""A process that is asked for is forked, with what it was told; who asks in vain starts Python as ever."""

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
from barnabas.spark.processes.fork_server import Nursery

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a nursery is Linux's")
WAIT_SECONDS_MAX = 120
SOURCE = "pyspark.sql.streaming.python_streaming_source_runner"
DRIVER = """
import sys, time
from pathlib import Path
from barnabas.spark.processes.fork_server import nursery
nursery(Path(sys.argv[1])).wait()
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Nursery]:
    made = Nursery(tested._asking_python(tmp_path / "cache"))
    made.wait()
    yield made
    made.stop()


def ask(home: Nursery, *arguments: str, here: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | home.environment | more
    command = [environment["PYSPARK_PYTHON"], *arguments]
    return subprocess.run(
        command, cwd=here, env=environment, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX, input=""
    )


@contextmanager
def daemon(home: Nursery, here: Path) -> Iterator[tuple[subprocess.Popen[bytes], int, int]]:
    """Spark's process that forks workers, as Spark starts it: who asked for it, its number, and its port."""
    environment = os.environ | home.environment | {"PYTHON_WORKER_FACTORY_SECRET": "secret"}
    command = [environment["PYSPARK_PYTHON"], "-m", "pyspark.daemon", "pyspark.worker"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=here, env=environment, stdin=pipe, stdout=pipe) as asking:
        assert asking.stdout is not None
        port = int.from_bytes(asking.stdout.read(4), "big")
        (process,) = children(home._process.pid)
        try:
            yield asking, process, port
        finally:
            asking.kill()
            until(lambda: not children(home._process.pid))


def children(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_who_asked_ends_with_the_exit_code_of_who_was_forked(home: Nursery, tmp_path: Path) -> None:
    with daemon(home, tmp_path) as (asking, process, _):
        os.kill(process, signal.SIGKILL)
        assert asking.wait(WAIT_SECONDS_MAX) == 128 + signal.SIGKILL


def test_a_killed_daemon_is_noticed_while_its_worker_lives(home: Nursery, tmp_path: Path) -> None:
    with daemon(home, tmp_path) as (asking, process, port), socket.create_connection(("127.0.0.1", port)) as line:
        worker = int.from_bytes(line.recv(4), "big")
        os.kill(process, signal.SIGKILL)
        asking.wait(WAIT_SECONDS_MAX)
        os.kill(worker, signal.SIGKILL)


def test_what_spark_has_no_more_use_for_ends(home: Nursery, tmp_path: Path) -> None:
    """Spark ends who asked; that standard input is closed as well must not be what matters."""
    with daemon(home, tmp_path) as (asking, process, _):
        asking.terminate()
        until(lambda: not Path(f"/proc/{process}").exists())


def test_who_is_forked_has_nothing_open_of_the_others(home: Nursery, tmp_path: Path) -> None:
    def count() -> int:
        return len(list(Path(f"/proc/{home._process.pid}/fd").iterdir()))

    before = count()
    with daemon(home, tmp_path):
        assert count() == before + 2
    assert count() == before


def test_a_fork_of_the_driver_that_ends_leaves_the_nursery_alone(home: Nursery, tmp_path: Path) -> None:
    forked = os.fork()
    if forked == 0:
        home.stop()
        os._exit(0)
    os.waitpid(forked, 0)
    assert home._process.poll() is None


def test_it_computes_with_as_many_threads_as_spark_allows_a_task(home: Nursery, tmp_path: Path) -> None:
    threads = [(each / "comm").read_text().strip() for each in Path(f"/proc/{home._process.pid}/task").iterdir()]
    others = [name for name in threads if name != "jemalloc_bg_thd"]  # of an allocator, which knows of forks
    assert len(others) == 1, "a fork would leave them behind"
    more = ask(home, "-m", SOURCE, here=tmp_path, OMP_NUM_THREADS="7", PYTHON_WORKER_FACTORY_PORT="1")
    assert "fork_server.py" not in more.stderr, "that is settled when libraries are loaded"


def test_a_time_zone_of_the_environment_counts() -> None:
    before = dict(os.environ)
    try:
        tested.live_in(before | {"TZ": "Asia/Kathmandu"})
        assert time.localtime(0).tm_gmtoff == 5.5 * 3600
    finally:
        tested.live_in(before)


def test_what_spark_asks_for_is_forked_and_anything_else_is_python(home: Nursery, tmp_path: Path) -> None:
    asked = ask(home, "-m", SOURCE, here=tmp_path, PYTHON_WORKER_FACTORY_PORT="1", PYTHON_WORKER_FACTORY_SECRET="x")
    assert asked.returncode != 0
    assert "fork_server.py" in asked.stderr, "Spark's own code ran there, and found nobody at that port"
    other = ask(home, "-c", "import sys; print(sys.argv, 'pyspark' in sys.modules)", "word", here=tmp_path)
    assert other.stdout.strip() == "['-c', 'word'] False"
    seeded = ask(home, "-m", SOURCE, here=tmp_path, PYTHONHASHSEED="5", PYTHON_WORKER_FACTORY_PORT="1")
    assert "fork_server.py" not in seeded.stderr, "hashes that differ are Python's to make"


def test_without_a_nursery_it_is_python(home: Nursery, tmp_path: Path) -> None:
    gone = ask(home, "-m", "this", here=tmp_path, **{ADDRESS: "nobody"})
    assert gone.returncode == 0
    assert "Zen" in gone.stdout


@pytest.mark.parametrize("is_ready", [True, False])
def test_it_ends_with_the_driver(tmp_path: Path, is_ready: bool) -> None:
    made = Nursery(tested._asking_python(tmp_path / "cache"))
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


def test_a_listener_of_another_user_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"barnabas-test-{tmp_path.name}-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(f"\0{name}")
        listening.listen()
        monkeypatch.setattr(os, "geteuid", lambda: 123_456)
        assert fork_client.ask(name, ["-m", SOURCE]) is None
        with listening.accept()[0] as line:
            assert line.recv(1) == b"", "it was told nothing"


def test_another_user_who_asks_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert fork_client.is_of_this_user(ours)
        monkeypatch.setattr(os, "geteuid", lambda: 123_456)
        assert not fork_client.is_of_this_user(ours)
