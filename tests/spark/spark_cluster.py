"""A cluster of Spark in processes, started from the pip install: a master and two workers, and how to kill of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from barnabas.spark.processes.java import find_java

READY_SECONDS_MAX = 240
PACKAGE = "org.apache.spark.deploy"
PORTS = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
EXECUTOR = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"


class SparkProcess:
    """A process of Spark, until its log says that it is there."""

    def __init__(self, *arguments: str, ready: str, program: str = "spark-class") -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "JAVA_HOME": str(find_java().home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "512m",  # a server of Spark Connect needs 450
            "PYSPARK_PYTHON": sys.executable,
        }
        command = [str(home / "bin" / program), *arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        self.lines: list[str] = []
        self.found: re.Match[str] | None = None
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(re.compile(ready),))
        self._reader.start()
        assert self._ready.wait(READY_SECONDS_MAX), f"{arguments[0]} did not come up: {self.lines[-5:]}"
        assert self.found is not None, f"{arguments[0]} ended: {self.lines[-5:]}"

    def _read(self, ready: re.Pattern[str]) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines = [*self.lines[-50:], line]
            self.found = self.found or ready.search(line)
            if self.found:
                self._ready.set()
        self._ready.set()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(60)
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def executors(self) -> list[int]:
        """Executors that this worker has started and that run."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent == self.process.pid and EXECUTOR in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except (OSError, IndexError):
                continue
        return sorted(found)


class SparkCluster:
    """Used as ``with SparkCluster(directory) as cluster``; executors work under ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._master: SparkProcess
        self.workers: list[SparkProcess] = []
        self.address = ""

    def __enter__(self) -> Self:
        self._master = SparkProcess(f"{PACKAGE}.master.Master", *PORTS, ready=r"Starting Spark master at (spark://\S+)")
        assert self._master.found is not None
        self.address = self._master.found[1]
        for _ in range(2):
            self.add_worker()
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            for each in (self._master, *self.workers):
                stack.callback(each.stop)

    def add_worker(self) -> None:
        told = ("--cores", "1", "--memory", "768m", "--work-dir", str(self._directory / f"worker-{len(self.workers)}"))
        ready = "Successfully registered with master"
        self.workers.append(SparkProcess(f"{PACKAGE}.worker.Worker", *PORTS, *told, self.address, ready=ready))

    def executors(self) -> list[int]:
        return [executor for worker in self.workers for executor in worker.executors()]

    def kill_worker(self, index: int) -> None:
        """With its executors, as when a machine goes away."""
        worker = self.workers.pop(index)
        executors = worker.executors()
        worker.stop(signal.SIGKILL)
        for executor in executors:
            os.kill(executor, signal.SIGKILL)
