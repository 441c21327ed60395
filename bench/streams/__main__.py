"""``python -m bench.streams``: six kinds of work on four sides, on one broker; prints a table with ratios.

``--records 20000 --keys 1000`` is a small try; the full run takes hours and needs a quiet machine. Kafka Streams comes
from Maven, Quix Streams and Faust from PyPI.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.testing import BrokerProcess
from bench.machine import describe
from bench.streams.measuring import Figures, SideFailed, measure
from bench.streams.sides import SIDES, Side, supports
from bench.streams.workloads import PARTITIONS, WORKLOADS, Workload, batches

KEYS = (10_000, 1_000_000)


def fill(servers: str, workload: Workload, records: int, keys: int) -> int:
    """Create the topics and produce the input; returns the number of records."""
    with blocking.Admin(Settings.of({"bootstrap.servers": servers})) as admin:
        for name in ("left", "right", *(f"out-{side}" for side in SIDES)):
            admin.create_topic(NewTopic(name, PARTITIONS))
    total = 0
    with blocking.Producer(ProducerSettings.of({"bootstrap.servers": servers})) as producer:
        for topic, table in batches(workload, records, keys):
            producer.send_arrow(table, topic)
            total += table.num_rows
    return total


def run(side: str, workload: Workload, options: argparse.Namespace, keys: int) -> Figures:
    """Measure one side with one workload on a broker of its own."""
    with tempfile.TemporaryDirectory() as directory, BrokerProcess(Path(directory, "broker")) as broker:
        total = fill(broker.bootstrap_servers, workload, options.records, keys)
        running = Side(side, workload.name, broker.bootstrap_servers, Path(directory), options.cores)
        try:
            return measure(running, total=total, keys=keys, probe_seconds=options.probe_seconds)
        finally:
            running.end(hard=True)


def table(rows: list[Figures]) -> str:
    """Return the figures as a Markdown table; a ratio above 1 is for Barnabas."""
    ours = {(each.workload, each.keys): each for each in rows if each.side == "barnabas"}
    heads = ["work", "keys", "side", "records/s", "ratio", "CPU µs/record", "ratio", "p50, p99 ms"]
    heads += ["start s", "restart s", "MB", "idle %"]
    lines = [f"| {' | '.join(heads)} |", "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for each in sorted(
        rows, key=lambda each: (list(WORKLOADS).index(each.workload), each.keys, SIDES.index(each.side))
    ):
        mine = ours.get((each.workload, each.keys), each)
        latency = "" if each.p50_ms is None else f"{each.p50_ms:.0f}, {each.p99_ms:.0f}"
        restart = "" if each.restart_seconds is None else f"{each.restart_seconds:.1f}"
        faster = mine.records_per_second / each.records_per_second if each.records_per_second else 0.0
        cheaper = each.cpu_us_per_record / mine.cpu_us_per_record if mine.cpu_us_per_record else 0.0
        lines.append(
            f"| {each.workload} | {each.keys:,} | {each.side} | {each.records_per_second:,.0f} | {faster:.2f} | "
            f"{each.cpu_us_per_record:.1f} | {cheaper:.2f} | {latency} | {each.start_seconds:.1f} | {restart} | "
            f"{each.memory_mb:.0f} | {each.idle_percent:.1f} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure Streams beside Kafka Streams, Quix Streams and Faust.")
    parser.add_argument("--records", type=int, default=2_000_000, help="records of the first topic")
    parser.add_argument("--keys", type=int, nargs="+", default=list(KEYS), help="numbers of keys")
    parser.add_argument("--workloads", nargs="+", choices=list(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 1), help="cores of each side")
    parser.add_argument("--probe-seconds", type=int, default=30, help="seconds of probes for the latency")
    parser.add_argument("--output", type=Path, help="file for the figures as lines of JSON")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started is ended
    rows: list[Figures] = []
    failures = 0
    for name in options.workloads:
        for keys in options.keys:
            for side in [each for each in options.sides if supports(each, name)]:
                print(f"{name}, {keys:,} keys: {side} ...", file=sys.stderr, flush=True)
                try:
                    rows.append(run(side, WORKLOADS[name], options, keys))
                except SideFailed as error:
                    failures += 1
                    print(error, file=sys.stderr)
                    continue
                if options.output is not None:
                    with options.output.open("a") as file:
                        file.write(json.dumps(rows[-1].as_row()) + "\n")
    print(describe())
    print(table(rows))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
