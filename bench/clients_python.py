"""Python's clients side by side: one broker, one run, one topic; what each does in records a second.

``python -m bench clients`` starts Barnabas, lets every client write and read the same 100-byte records, each in a
process of its own, and prints rates, the CPU that the client spent on a record, and ratios of both. What a client does
is in ``clients_python_work.py``; nothing is tuned but what is said there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from barnabas import NewTopic, Settings, blocking
from barnabas.testing import BrokerProcess
from bench.codec import print_codec

PARTITIONS = 4
SECONDS_MAX = 240
ROUNDS = 2

# What is done -> who does it, the yardstick first; how many records each gets.
WRITES = {
    "one by one": ("confluent produce", "ours send_soon", "ours blocking", "aiokafka send", "kafka-python send"),
    "many at a time": ("ours send_many",),
    "columns": ("ours send_arrow",),
}
READS = {
    "one by one": ("confluent poll", "ours async for", "ours blocking for", "aiokafka async for", "kafka-python for"),
    "many at a time": ("confluent consume", "ours poll", "ours blocking poll", "aiokafka getmany", "kafka-python poll"),
    "columns": ("ours poll_arrow",),
}
COUNTS = {"aiokafka": 50_000, "kafka-python": 40_000, "confluent": 400_000, "ours": 400_000}


class Figure(NamedTuple):
    records_per_second: float
    cpu_us_per_record: float


def print_clients() -> None:
    with tempfile.TemporaryDirectory() as directory, BrokerProcess(Path(directory)) as broker:
        servers = broker.bootstrap_servers
        with blocking.Admin(Settings(bootstrap_servers=(servers,))) as admin:
            admin.create_topic(NewTopic("read", partition_count=PARTITIONS))
        _measure("ours send_arrow", servers, "read", 2_000_000)
        best: dict[str, Figure] = {}
        for _ in range(ROUNDS):
            for group in (WRITES, READS):
                for names in group.values():
                    for name in names:
                        count = COUNTS[name.split()[0]] * (3 if "arrow" in name else 1)
                        figure = _measure(name, servers, "read" if group is READS else f"write-{len(best)}", count)
                        if name not in best or figure.records_per_second > best[name].records_per_second:
                            best[name] = figure
    for title, group, yardsticks in (
        ("writing", WRITES, dict.fromkeys(WRITES, "confluent produce")),
        ("reading", READS, {**dict.fromkeys(READS, "confluent consume"), "one by one": "confluent poll"}),
    ):
        print(f"\n{title:28}{'records/s':>14}{'µs of CPU':>12}   beside confluent-kafka: rate, CPU")
        for what, names in group.items():
            yardstick = best[yardsticks[what]]
            for name in names:
                figure = best[name]
                ratio = figure.records_per_second / yardstick.records_per_second
                cheaper = yardstick.cpu_us_per_record / figure.cpu_us_per_record
                numbers = f"{figure.records_per_second:14,.0f}{figure.cpu_us_per_record:12.2f}"
                print(f"{name:28}{numbers}   {ratio:5.2f} × {cheaper:5.2f} ×")
    print()
    print_codec()


def _measure(name: str, servers: str, topic: str, count: int) -> Figure:
    command = [sys.executable, "-m", "bench.clients_python_work", name, servers, topic, str(count)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)
    if ran.returncode:
        raise RuntimeError(f"{name}: {ran.stderr[-2000:]}")
    seconds, cpu, done = json.loads(ran.stdout.splitlines()[-1])
    figure = Figure(done / seconds, 1e6 * cpu / done)
    print(f"  {name:24}{figure.records_per_second:14,.0f}/s{figure.cpu_us_per_record:9.2f} µs of CPU", flush=True)
    return figure
