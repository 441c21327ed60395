"""Kafka's own measuring tools as clients: ProducerPerformance and ConsumerPerformance, with the heap of Kafka's
scripts.

What they print is read by the names it carries, and not by position where there is a choice. Their throughput is
often their own limit; the broker's CPU per GB is then the figure that counts.
"""

from __future__ import annotations

import re

from tools.kafka_jars import java_command

from bench.clients.outcome import ClientFailed, Outcome, run_program
from bench.clients.raw import fill
from bench.clients.topics import topic_of
from bench.measure import Cost
from bench.peers import Peer
from bench.workload import Pace, Workload

_HEAP = ("-Xmx512M",)
_PRODUCED = re.compile(
    r"(?P<records>\d+) records sent, (?P<records_per_second>[\d.]+) records/sec \((?P<mebibytes>[\d.]+) MB/sec\), "
    r"(?P<mean>[\d.]+) ms avg latency, (?P<max>[\d.]+) ms max latency, (?P<p50>\d+) ms 50th, (?P<p95>\d+) ms 95th, "
    r"(?P<p99>\d+) ms 99th, (?P<p999>\d+) ms 99.9th"
)
# The tools say MB and mean 2^20 bytes.
_MEBIBYTE = 1 << 20
_CONSUME_TIMEOUT_MS = 30_000


def produce(peer: Peer, workload: Workload, pace: Pace) -> Outcome:
    with topic_of(peer, workload) as topic:
        return _produce(peer, topic, workload, pace)


def _produce(peer: Peer, topic: str, workload: Workload, pace: Pace) -> Outcome:
    parameters = workload.parameters
    settings = [f"acks={parameters.get('acks', 'all')}", f"compression.type={parameters.get('compression', 'none')}"]
    words = ["--bootstrap-server", peer.bootstrap, "--topic", topic, "--num-records", str(pace.records)]
    words += ["--throughput", "-1", "--record-size", str(parameters["record-bytes"]), "--command-property", *settings]
    printed, cost, client_seconds = run_program(
        peer, java_command("org.apache.kafka.tools.ProducerPerformance", *words, options=_HEAP)
    )
    found = None
    for line in printed.splitlines():
        found = _PRODUCED.match(line) or found
    if found is None:
        raise ClientFailed(f"ProducerPerformance printed no result: {printed[-300:]!r}")
    total_bytes = pace.records * int(parameters["record-bytes"])
    figures = {
        "records_per_second": float(found["records_per_second"]),
        "megabytes_per_second": float(found["mebibytes"]) * _MEBIBYTE / 1e6,
        **{f"{name}_us": float(found[name]) * 1000 for name in ("mean", "p50", "p99", "p999", "max")},
        **_cpu(cost, total_bytes),
    }
    return Outcome(figures, cost, client_seconds)


def consume(peer: Peer, workload: Workload, pace: Pace) -> Outcome:
    with topic_of(peer, workload) as topic:
        # A little more than is read: the generator's records are of the wanted size, and its batches are full.
        fill(peer, topic, pace.records * int(workload.parameters["record-bytes"]) * 21 // 20)
        return _consume(peer, topic, workload, pace)


def _consume(peer: Peer, topic: str, workload: Workload, pace: Pace) -> Outcome:
    words = ["--bootstrap-server", peer.bootstrap, "--topic", topic, "--num-records", str(pace.records)]
    words += ["--timeout", str(_CONSUME_TIMEOUT_MS)]
    printed, cost, client_seconds = run_program(
        peer, java_command("org.apache.kafka.tools.ConsumerPerformance", *words, options=_HEAP)
    )
    lines = [[cell.strip() for cell in line.split(",")] for line in printed.splitlines() if line.count(",") > 5]
    if len(lines) != 2 or len(lines[0]) != len(lines[1]):
        raise ClientFailed(f"ConsumerPerformance printed no result: {printed[-300:]!r}")
    row = dict(zip(*lines, strict=True))
    if int(row["data.consumed.in.nMsg"]) < pace.records:
        raise ClientFailed(f"ConsumerPerformance read {row['data.consumed.in.nMsg']} of {pace.records} records")
    figures = {
        "records_per_second": float(row["fetch.nMsg.sec"]),
        # Joining the group is not fetching: the fetch time leaves it out.
        "megabytes_per_second": float(row["fetch.MB.sec"]) * _MEBIBYTE / 1e6,
        "rebalance_ms": float(row["rebalance.time.ms"]),
        **_cpu(cost, pace.records * int(workload.parameters["record-bytes"])),
    }
    return Outcome(figures, cost, client_seconds)


def _cpu(cost: Cost, size_bytes: int) -> dict[str, float]:
    return {"bytes": float(size_bytes), "cpu_seconds_per_gigabyte": cost.cpu_seconds / (size_bytes / 1e9)}
