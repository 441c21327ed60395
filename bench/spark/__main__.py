"""``python -m bench.spark``: both connectors in turn, on one broker with the same records; prints a table.

``--scale 0.1`` takes a tenth of the records. ``--sides kafka,barnabas,nothing`` adds a Python source and sink that do
nothing, which is as far down as one can get with Python; ``kafka-small`` is Spark's connector with the options of Java
that our session sets. Fetches Spark's own connector from Maven.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.testing import BrokerProcess
from bench.machine import describe
from bench.spark.jars import connector_jars, versions

ROWS = {"100 B": 2_000_000, "1 KB": 400_000}
SIZES = {"100 B": 100, "1 KB": 1024}
CHUNK_ROWS = 50_000
PARTITIONS = 2
QUIET = {"barnabas.log.level": "ERROR"}


def fill(servers: str, rows: dict[str, int]) -> None:
    import pyarrow as pa

    with blocking.Admin(Settings.of({"bootstrap.servers": servers})) as admin:
        names = [f"input-{size}" for size in SIZES.values()]
        names += [f"{word}-{side}" for word in ("output", "sums", "copy") for side in ("kafka", "barnabas")]
        for name in names:
            admin.create_topic(NewTopic(name, PARTITIONS))
    with blocking.Producer(ProducerSettings.of({"bootstrap.servers": servers})) as producer:
        for size, value_bytes in SIZES.items():
            keys = pa.array([str(number % 10_000).encode() for number in range(CHUNK_ROWS)])
            values = pa.array([bytes([65 + number % 26]) * value_bytes for number in range(CHUNK_ROWS)])
            for start in range(0, rows[size], CHUNK_ROWS):
                count = min(CHUNK_ROWS, rows[size] - start)
                producer.send_arrow(pa.table({"key": keys[:count], "value": values[:count]}), f"input-{value_bytes}")


def measure(side: str, servers: str, rows: dict[str, int], rounds: int, parts: str) -> Iterator[dict[str, object]]:
    """What a side tells, as it comes; the side has a session of its own, so that all of it can be found and ended."""
    jars = ",".join(map(str, connector_jars())) if side.startswith("kafka") else ""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "bench.spark.side", side, servers, directory, json.dumps(rows)]
        command += [str(rounds), parts]
        environment = os.environ | {"BENCH_SPARK_JARS": jars}
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
        assert running.stdout is not None
        try:
            yield from (json.loads(line) for line in running.stdout if line.startswith("{"))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGTERM)
            running.wait()
            running.stdout.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3, help="of each measurement; the best counts")
    parser.add_argument("--turns", type=int, default=1, help="how often each side has its turn; the best counts")
    parser.add_argument("--sides", default="kafka,barnabas")
    parser.add_argument("--parts", default="latency,throughput")
    options = parser.parse_args()
    rows = {size: int(count * options.scale) for size, count in ROWS.items()}
    import pyspark

    print(f"{describe()}; PySpark {pyspark.__version__}, its Kafka connector {versions()}", flush=True)
    found: dict[str, dict[str, float]] = defaultdict(dict)
    units: dict[str, str] = {}
    with (
        tempfile.TemporaryDirectory() as directory,
        BrokerProcess(Path(directory) / "broker", settings=QUIET) as broker,
    ):
        fill(broker.bootstrap_servers, rows)
        for _ in range(options.turns):
            for side in options.sides.split(","):
                for each in measure(side, broker.bootstrap_servers, rows, options.rounds, options.parts):
                    name, value, unit = str(each["name"]), float(str(each["value"])), str(each["unit"])
                    units[name] = unit
                    better = max if unit == "rows/s" else min
                    found[name][side] = better(value, found[name].get(side, value))
                    print(f"  {side:9} {name:52} {_number(value):>12} {unit}", flush=True)
    show(found, units)
    return 0


def show(found: dict[str, dict[str, float]], units: dict[str, str]) -> None:
    print(f"\n{'':70}{'kafka':>10}{'-small':>10}{'barnabas':>10}{'nothing':>10}  {'':8}factor")
    for name, sides in found.items():
        kafka, ours = sides.get("kafka"), sides.get("barnabas")
        if kafka is None:
            kafka = found.get(name.replace(", at least once", ""), {}).get("kafka")
        factor = "" if not kafka or not ours else f"{ours / kafka if units[name] == 'rows/s' else kafka / ours:.2f}"
        values = (kafka, sides.get("kafka-small"), ours, sides.get("nothing"))
        cells = "".join(f"{'-' if value is None else _number(value):>10}" for value in values)
        print(f"{name:70}{cells}  {units[name]:8}{factor}")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
