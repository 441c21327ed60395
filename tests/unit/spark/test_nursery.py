"""A process that is asked for is forked, with what it was told; who asks in vain starts Python as ever."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from barnabas.spark import nursery as tested
from barnabas.spark.asking import ADDRESS
from barnabas.spark.nursery import Nursery

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a nursery is Linux's")
WAIT_SECONDS_MAX = 120
SOURCE = "pyspark.sql.streaming.python_streaming_source_runner"


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


def test_what_spark_asks_for_is_forked_and_anything_else_is_python(home: Nursery, tmp_path: Path) -> None:
    asked = ask(home, "-m", SOURCE, here=tmp_path, PYTHON_WORKER_FACTORY_PORT="1", PYTHON_WORKER_FACTORY_SECRET="x")
    assert asked.returncode != 0
    assert "nursery.py" in asked.stderr, "Spark's own code ran there, and found nobody at that port"
    other = ask(home, "-c", "import sys; print(sys.argv, 'pyspark' in sys.modules)", "word", here=tmp_path)
    assert other.stdout.strip() == "['-c', 'word'] False"
    seeded = ask(home, "-m", SOURCE, here=tmp_path, PYTHONHASHSEED="5", PYTHON_WORKER_FACTORY_PORT="1")
    assert "nursery.py" not in seeded.stderr, "hashes that differ are Python's to make"


def test_without_a_nursery_it_is_python(home: Nursery, tmp_path: Path) -> None:
    gone = ask(home, "-m", "this", here=tmp_path, **{ADDRESS: str(tmp_path / "nobody")})
    assert gone.returncode == 0
    assert "Zen" in gone.stdout


def test_it_ends_with_the_driver_and_leaves_nothing(tmp_path: Path) -> None:
    made = Nursery(tested._asking_python(tmp_path / "cache"))
    place = Path(made.environment[ADDRESS]).parent
    made.wait()
    assert made._process.stdin is not None
    made._process.stdin.close()  # as when the driver is killed
    made._process.wait(WAIT_SECONDS_MAX)
    assert not place.exists()
    made.stop()
