"""Kill the driver, a worker, an executor, a broker, or the sink's transactions: each record comes out once.

A run adds records, lets one thing go wrong while they are being copied, and compares all of the output with all of the
input through another client. ``BARNABAS_SPARK_RUNS`` says how many runs; each is a few seconds, those that kill the
driver as long as a Spark takes to start. ``BARNABAS_SPARK_CLUSTER_RUNS`` is the same on a standalone cluster.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest
import stateful_everything
from killing import MORE_TOPICS, PARTITIONS, RECORDS, Stage
from spark_cluster import SparkCluster

from barnabas import Settings, blocking
from barnabas.model.errors import ApiError
from barnabas.streams import drive

pytestmark = pytest.mark.slow

RUNS = int(os.environ.get("BARNABAS_SPARK_RUNS", "4"))
CLUSTER_RUNS = int(os.environ.get("BARNABAS_SPARK_CLUSTER_RUNS", "3"))
SEED = int(os.environ.get("BARNABAS_SPARK_SEED", "1"))
WORKER_SECONDS_MAX = 120.0
COMMIT_SECONDS_MAX = 180.0
COMMIT_FAILED = "was ended before all tasks were through"


class ClusterStage(Stage):
    def __init__(self, directory: Path, cluster: SparkCluster, program: str) -> None:
        super().__init__(directory, cluster.address, program)
        self.cluster = cluster


S = TypeVar("S", bound=Stage)
Fault = Callable[[S, random.Random], None]


@pytest.fixture
def stage(tmp_path: Path, program: str) -> Iterator[Stage]:
    made = Stage(tmp_path, program=program)
    yield made
    made.close()


@pytest.fixture
def cluster_stage(tmp_path: Path, program: str) -> Iterator[ClusterStage]:
    with SparkCluster(tmp_path) as cluster:
        made = ClusterStage(tmp_path, cluster, program)
        yield made
        made.close()


def kill_driver(stage: Stage, chance: random.Random) -> None:
    stage.copier.kill()
    stage.copier.start()


def kill_python_worker(stage: Stage, chance: random.Random) -> None:
    deadline = time.monotonic() + WORKER_SECONDS_MAX
    while not (workers := stage.copier.processes("pyspark.worker")) and time.monotonic() < deadline:
        time.sleep(0.1)  # the query has only just started
    with suppress(ProcessLookupError):  # it has ended by itself since
        os.kill(chance.choice(workers), signal.SIGKILL)


def kill_broker(stage: Stage, chance: random.Random) -> None:
    stage.broker.kill()
    time.sleep(chance.uniform(0, 2))
    stage.broker.start()


def fail_commit(stage: Stage, chance: random.Random) -> None:
    """Hold the process that commits, take the transactions of the tasks away, and let it go: its commit must fail."""
    deadline = time.monotonic() + COMMIT_SECONDS_MAX
    begun = len(stage.copier.lines)
    while not any(COMMIT_FAILED in line for line in stage.copier.lines[begun:]):
        assert time.monotonic() < deadline, f"no commit failed: {stage.copier.lines[-5:]}"
        held = stage.copier.processes("pyspark.sql.worker.python_streaming_sink_runner")
        _signal(held, signal.SIGSTOP)
        try:
            stage.send()  # or there might be no batch
            time.sleep(chance.uniform(3, 5))  # until tasks are through, and the driver waits for the commit
            _fence(stage)
        finally:
            _signal(held, signal.SIGCONT)
        time.sleep(2)


def _signal(processes: list[int], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def _fence(stage: Stage) -> None:
    with blocking.Admin(Settings.of({"bootstrap.servers": stage.servers})) as admin:
        for task in range(PARTITIONS):
            with suppress(ApiError):  # an end is under way
                admin.fence_producer(stage.transactional_id(task))


def lose_checkpoint(stage: Stage, chance: random.Random) -> None:
    """The driver is killed and its checkpoint is deleted: an application continues from the cluster."""
    stage.copier.kill()
    shutil.rmtree(stage.checkpoint)
    stage.copier.start()


def kill_executor(stage: ClusterStage, chance: random.Random) -> None:
    deadline = time.monotonic() + WORKER_SECONDS_MAX
    while not (executors := stage.cluster.executors()) and time.monotonic() < deadline:
        time.sleep(0.2)
    os.kill(chance.choice(executors), signal.SIGKILL)


def kill_spark_worker(stage: ClusterStage, chance: random.Random) -> None:
    """A machine of the cluster goes away, with its executor, and another one comes."""
    stage.cluster.kill_worker(chance.randrange(len(stage.cluster.workers)))
    stage.cluster.add_worker()


FAULTS: Sequence[Fault[Stage]] = (kill_python_worker, kill_broker, fail_commit, kill_driver)
STATEFUL_FAULTS: Sequence[Fault[Stage]] = (lose_checkpoint, *FAULTS)
CLUSTER_FAULTS: Sequence[Fault[ClusterStage]] = (kill_executor, kill_spark_worker, kill_driver)
STATEFUL_CLUSTER_FAULTS: Sequence[Fault[ClusterStage]] = (lose_checkpoint, *CLUSTER_FAULTS)


def check(stage: S, faults: Sequence[Fault[S]], runs: int) -> None:
    chance = random.Random(SEED)
    done: Counter[str] = Counter()
    for number in range(runs):
        fault = faults[number % len(faults)]
        sender = threading.Thread(target=stage.send)
        sender.start()
        while not stage.copier.query_id:
            time.sleep(0.1)
        time.sleep(chance.uniform(0.5, 3))
        begun = time.monotonic()
        fault(stage, chance)
        sender.join()
        seen = stage.wait_until_copied()
        doubled = [value for value, count in seen.items() if count > 1]
        name = fault.__name__
        print(f"run {number + 1}: {name}, all {stage.sent} once after {time.monotonic() - begun:.1f} s", flush=True)
        assert not doubled, f"run {number + 1}, {name}, seed {SEED}: {len(doubled)} doubled, {doubled[:5]}"
        assert sorted(seen) == list(range(stage.sent))
        done[name] += 1
    told = ", ".join(f"{count} x {name}" for name, count in sorted(done.items()))
    print(f"{runs} runs, {stage.sent} records, each once: {told}")
    print(f"queries failed and started again: {sum(line.startswith('FAILED') for line in stage.copier.lines)}")
    for line in stage.copier.lines:
        print("  ", line)


EVERYTHING = "stateful_everything.py"
PROGRAMS = pytest.mark.parametrize(
    "program",
    ["copying.py", "stateful_counting.py", EVERYTHING],
    ids=["pipeline", "application", "application-with-everything"],
)


@PROGRAMS
def test_whatever_is_killed_every_record_comes_out_once(stage: Stage, program: str) -> None:
    check(stage, STATEFUL_FAULTS if stage.is_application else FAULTS, RUNS)
    if program == EVERYTHING:
        compare_with_an_undisturbed_run(stage)


@PROGRAMS
def test_whatever_is_killed_on_a_cluster_every_record_comes_out_once(cluster_stage: ClusterStage, program: str) -> None:
    check(cluster_stage, STATEFUL_CLUSTER_FAULTS if cluster_stage.is_application else CLUSTER_FAULTS, CLUSTER_RUNS)
    if program == EVERYTHING:
        compare_with_an_undisturbed_run(cluster_stage)


def compare_with_an_undisturbed_run(stage: Stage) -> None:
    """Give the test driver what is in the input topic: each output topic must have the same records, once."""
    written = {topic: stage.records(topic) for topic in MORE_TOPICS[EVERYTHING]}
    with drive(stateful_everything.app, partitions=PARTITIONS) as driver:
        for partition, key, value, at in stage.records("input"):
            driver.send_bytes("input", key, value, at=at, partition=partition)
        for topic, found in written.items():
            expected = [(row.key, row.value, row.timestamp) for row in driver.read_rows(topic)]
            assert len(expected) > RECORDS / 2, "the comparison is worth something"
            assert Counter(each[1:] for each in found) == Counter(expected), topic
