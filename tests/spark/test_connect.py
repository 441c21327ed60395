"""A Spark Connect server from the pip install: the same pipelines through ``session(master="sc://…")``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from spark_cluster import SparkProcess

from barnabas import blocking

pytest.importorskip("grpc")
pytestmark = pytest.mark.slow

CLIENT_SECONDS_MAX = 600


@pytest.fixture
def server() -> Iterator[str]:
    arguments = ["--master", "local[2]", "--driver-memory", "512m"]
    for told in ("spark.connect.grpc.binding.port=0", "spark.ui.enabled=false", "spark.driver.host=127.0.0.1"):
        arguments += ["--conf", told]
    arguments += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    ready = r"Spark Connect server started at: \S*?:(\d+)"
    process = SparkProcess(*arguments, ready=ready, program="spark-submit")
    assert process.found is not None
    yield f"sc://127.0.0.1:{process.found[1]}"
    process.stop()


def test_batches_and_streams_run_on_a_connect_server(server: str, stage: Any) -> None:
    source, target, counts = (stage.topic(name, 2) for name in ("source", "target", "counts"))
    stage.send(source, range(100), keys=range(100))
    program = [sys.executable, str(Path(__file__).with_name("connecting.py"))]
    # In a process of its own: one that has a Spark of its own cannot have one elsewhere as well.
    done = subprocess.run(
        [*program, server, stage.servers, source, target, counts, str(stage.directory / "checkpoints")],
        timeout=CLIENT_SECONDS_MAX,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["100", "100", "100"], "rows of a batch, and of two runs of the stream"
    assert stage.values(target) == sorted(str(number) for number in range(200))
    table = blocking.read(counts, bootstrap_servers=stage.servers, isolation_level="read_committed")
    assert sum(int(value) for value in table.column("value").to_pylist()) == 200
