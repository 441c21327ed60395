"""One side of the comparison, in a process of its own: every measurement with one connector; results as JSON lines.

Only the name of the format differs between the sides, and who makes the session: each has what its page says. Run by
``bench/spark/__main__.py``.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.spark.processes import memory, processor_seconds

MASTER = "local[2]"
SMALL = "-small"  # a side of this name tells Java what our session tells it
SIZES = {"100 B": 100, "1 KB": 1024}
LATENCY_BATCHES = 60
WARM_BATCHES = 20  # that come before those that count: Java compiles what runs often
PHASES = {"latestOffset": "where it ends", "queryPlanning": "plan", "walCommit": "note of the offsets"}
PHASES |= {"addBatch": "the batch itself", "commitOffsets": "note that it is done"}


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


def our_session() -> Any:
    """As our page says."""
    import barnabas.spark

    return barnabas.spark.session("bench", master=MASTER)


def plain_session(java_options: Sequence[str] = ()) -> Any:
    """As the page of Spark's connector says, with the settings of Spark that our session has; none of our processes."""
    from pyspark.sql import SparkSession

    from barnabas.spark.sessions import RUNTIME, STATIC

    builder: Any = SparkSession.builder.appName("bench").master(MASTER)
    settings = RUNTIME | STATIC | {"spark.sql.shuffle.partitions": "2", "spark.driver.host": "127.0.0.1"}
    settings["spark.driver.extraJavaOptions"] = " ".join(java_options)
    for name, value in (settings | {"spark.jars": os.environ["BENCH_SPARK_JARS"]}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def session_of(side: str) -> Any:
    from barnabas.spark.sessions import SMALL_JAVA

    if not side.startswith("kafka"):
        return our_session()
    return plain_session(SMALL_JAVA if side.endswith(SMALL) else ())


class Side:
    def __init__(self, format_name: str, servers: str, directory: Path, rows: dict[str, int], rounds: int) -> None:
        self.spark = session_of(format_name)
        format_name = format_name.removesuffix(SMALL)
        if format_name == "nothing":
            from bench.spark.nothing import Nothing

            self.spark.dataSource.register(Nothing)
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

    def run(self, parts: list[str]) -> None:
        self.spark.range(10).write.format("noop").mode("overwrite").save()
        if "latency" in parts:
            self.latency("micro-batch of 100 rows")
            if self.format == "barnabas":
                self.latency("micro-batch of 100 rows, at least once", deliveryGuarantee="at_least_once")
        if "throughput" in parts and self.format != "nothing":
            for size, value_bytes in SIZES.items():
                self.throughput(size, value_bytes)

    def tell_memory(self, when: str) -> None:
        held = memory()
        tell(f"memory, {when}", held.java_mb + held.python_mb, "MB")
        tell(f"  of which Java, {when}", held.java_mb, "MB")
        tell(f"  of which Python, {when}", held.python_mb, "MB")
        tell(f"  processes of Python, {when}", held.python_count, "")

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

    def latency(self, name: str, **options: str) -> None:
        """Batches of 100 rows through a query that copies, and how long each takes."""
        reader = self.spark.readStream.format(self.format).option("kafka.bootstrap.servers", self.servers)
        reader = reader.option("subscribe", "input-100").option("startingOffsets", "earliest")
        frame = reader.option("maxOffsetsPerTrigger", "100").load().select("key", "value")
        writer = frame.writeStream.format(self.format).option("kafka.bootstrap.servers", self.servers)
        writer = writer.option("topic", f"copy-{self.format}").options(**options)
        query = writer.option("checkpointLocation", str(self.directory / name)).start()
        spent: dict[int, dict[str, int]] = {}
        deadline = time.monotonic() + 120
        while len(spent) < WARM_BATCHES + LATENCY_BATCHES and time.monotonic() < deadline:
            for each in query.recentProgress:
                told = json.loads(each.json)
                if told["numInputRows"]:
                    spent[told["batchId"]] = told["durationMs"]
            time.sleep(0.2)
        self.tell_memory(f"during {name}")
        query.stop()
        warm = [each for batch, each in sorted(spent.items()) if batch >= WARM_BATCHES]
        tell(f"{name}, median", statistics.median(each["triggerExecution"] for each in warm), "ms")
        for phase, words in PHASES.items():
            tell(f"  of which {words}, {name}", statistics.median(each.get(phase, 0) for each in warm), "ms")


def main() -> None:
    format_name, servers, directory, rows, rounds, parts = sys.argv[1:7]
    side = Side(format_name, servers, Path(directory), json.loads(rows), int(rounds))
    side.run(parts.split(","))
    side.tell_memory("at the end")


if __name__ == "__main__":
    main()
