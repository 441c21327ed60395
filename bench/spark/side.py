"""One side of the comparison, in a process of its own: every measurement with one connector; results as JSON lines.

Only the name of the format differs between the sides. Run by ``bench/spark/__main__.py``.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZES = {"100 B": 100, "1 KB": 1024}
LATENCY_BATCHES = 30


def tell(name: str, value: float, unit: str) -> None:
    print(json.dumps({"name": name, "value": value, "unit": unit}), flush=True)


def measure(name: str, rows: int, work: Callable[[], None], rounds: int) -> None:
    """The best of some rounds: rows a second, and processor time for a row, which other guests of the machine do not
    change as much."""
    times, spent = [], []
    for _ in range(rounds):
        started, used = time.monotonic(), processor_seconds()
        work()
        times.append(time.monotonic() - started)
        spent.append(processor_seconds() - used)
    tell(name, rows / min(times), "rows/s")
    tell(f"{name}: processor time", min(spent) / rows * 1e6, "us/row")


def processor_seconds() -> float:
    """Of this process, its Java and the workers of Python, those that have ended among them."""
    ticks = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == os.getsid(0):
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mb() -> float:
    """What this process, its Java and the workers of Python hold, pages that they share counted once."""
    total = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            session = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[3])
            if session == os.getsid(0):
                lines = (entry / "smaps_rollup").read_text().splitlines()
                total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        except (OSError, StopIteration, IndexError):
            continue
    return total / 1024


class Side:
    def __init__(self, format_name: str, servers: str, directory: Path, rows: dict[str, int], rounds: int) -> None:
        import barnabas.spark

        jars = os.environ.get("BENCH_SPARK_JARS", "")
        config = {"spark.driver.memory": "1g"} | ({"spark.jars": jars} if jars else {})
        self.spark = barnabas.spark.session("bench", master="local[2]", config=config, fast_start=False)
        self.format = format_name
        self.servers = servers
        self.directory = directory
        self.rows = rows
        self.rounds = rounds

    def read(self, topic: str) -> Any:
        reader = self.spark.read.format(self.format).option("kafka.bootstrap.servers", self.servers)
        return reader.option("subscribe", topic).load()

    def write(self, frame: Any, topic: str, **options: str) -> None:
        writer = frame.write.format(self.format).mode("append").option("kafka.bootstrap.servers", self.servers)
        writer.option("topic", topic).options(**options).save()

    def run(self) -> None:
        self.spark.range(10).write.format("noop").mode("overwrite").save()
        for size, value_bytes in SIZES.items():
            self.throughput(size, value_bytes)
        self.latency()
        tell("memory", memory_mb(), "MB")

    def throughput(self, size: str, value_bytes: int) -> None:
        rows, topic = self.rows[size], f"input-{value_bytes}"
        measure(
            f"read {size}",
            rows,
            lambda: self.read(topic).write.format("noop").mode("overwrite").save(),
            self.rounds,
        )
        value = f"cast(rpad(cast(id as string), {value_bytes}, 'x') as binary) as value"
        made = self.spark.range(0, rows, 1, 2).selectExpr("cast(id % 10000 as string) as key", value)
        measure(f"write {size}", rows, lambda: self.write(made, f"output-{self.format}"), self.rounds)
        if self.format != "kafka":
            told = {"deliveryGuarantee": "at_least_once"}
            name = f"write {size}, at least once"
            measure(name, rows, lambda: self.write(made, f"output-{self.format}", **told), self.rounds)
        sums = self.read(topic).groupBy("key").count().selectExpr("key", "cast(count as string) as value")
        measure(f"read-aggregate-write {size}", rows, lambda: self.write(sums, f"sums-{self.format}"), self.rounds)

    def latency(self) -> None:
        """Batches of 100 rows through a query that copies, and how long each takes."""
        reader = self.spark.readStream.format(self.format).option("kafka.bootstrap.servers", self.servers)
        reader = reader.option("subscribe", "input-100").option("startingOffsets", "earliest")
        frame = reader.option("maxOffsetsPerTrigger", "100").load().select("key", "value")
        writer = frame.writeStream.format(self.format).option("kafka.bootstrap.servers", self.servers)
        writer = writer.option("topic", f"copy-{self.format}").option(
            "checkpointLocation", str(self.directory / "checkpoint")
        )
        query = writer.start()
        spent: dict[int, dict[str, int]] = {}
        deadline = time.monotonic() + 120
        while len(spent) < LATENCY_BATCHES and time.monotonic() < deadline:
            for each in query.recentProgress:
                told = json.loads(each.json)
                if told["numInputRows"]:
                    spent[told["batchId"]] = told["durationMs"]
            time.sleep(0.2)
        query.stop()
        warm = [each for batch, each in sorted(spent.items()) if batch >= 5]
        tell("micro-batch of 100 rows, median", statistics.median(each["triggerExecution"] for each in warm), "ms")
        tell("of which the batch itself", statistics.median(each["addBatch"] for each in warm), "ms")


def main() -> None:
    format_name, servers, directory, rows, rounds = sys.argv[1:6]
    Side(format_name, servers, Path(directory), json.loads(rows), int(rounds)).run()


if __name__ == "__main__":
    main()
