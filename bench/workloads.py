"""What is run: one base case, and rows in which one factor differs from it. Data only, in the order of the report.

The base case is 1 KB records, six partitions, acks=all, one replica and no compression. How a row is run is the
business of `bench.clients`; a row names its client and gives it parameters. Rows where the client is the bottleneck
say little by their throughput: they are judged by the CPU that the broker spends and by the latency at a fixed rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bench.workload import FULL, PACES, QUICK, Figure, Pace, Parameter, Workload

__all__ = ["FULL", "PACES", "QUICK", "SECTIONS", "WORKLOADS", "Pace", "Parameter", "Workload"]

SECTIONS = {
    "rest": "Start-up and rest",
    "throughput": "Throughput",
    "requests": "Small requests",
    "latency": "From producer to consumer at a fixed rate",
    "neighbours": "How others hurt: a produce at a fixed rate beside them",
    "clients": "Other people's clients",
    "coordination": "Groups and transactions",
}

_BASE: Mapping[str, Parameter] = {"connections": 4, "depth": 5, "batch-bytes": 16384, "record-bytes": 1000, "acks": -1}
_SMALL: Mapping[str, Parameter] = {"record-bytes": 100, "batch-bytes": 0, "acks": -1}
_STAMPED: Mapping[str, Parameter] = {"connections": 4, "depth": 64, "record-bytes": 1000, "acks": -1}
_CPU_PER_GIGABYTE = Figure("CPU", "cpu_seconds_per_gigabyte", "CPU s/GB")
_CPU_PER_REQUEST = Figure("CPU", "cpu_us_per_request", "µs of CPU")
# What a broker may hold, heap and page cache together, when it is asked for what lies on the disk.
_MEMORY_BYTES = 2 << 30
# At 1,000 requests a second p99.9 rests on five of them in every run. What sends fewer has no such figure.
_LATENCY_SECONDS = 5.0
_TAIL_REQUESTS_MIN = 5000
_BESIDE_SECONDS = 4.0
# A steady producer: 100 batches of ten records a second. Its waiting is what neighbours are judged by.
_STEADY_RATE = 100
_STEADY: Mapping[str, Parameter] = {**_STAMPED, "rate": _STEADY_RATE, "batch-bytes": 61 + 1013 * 10}


def _raw(
    name: str,
    factor: str,
    changed: Mapping[str, Parameter] | None = None,
    *,
    partitions: int = 6,
    topic_settings: Mapping[str, str] | None = None,
    in_quick: bool = False,
    is_for_two: bool = True,
) -> Workload:
    return Workload(
        name,
        factor,
        "raw-produce",
        "megabytes_per_second",
        "MB/s",
        {**_BASE, **(changed or {})},
        partitions=partitions,
        topic_settings=topic_settings or {},
        in_quick=in_quick,
        also=(_CPU_PER_GIGABYTE,),
        is_for_two=is_for_two,
    )


def _small(name: str, factor: str, connections: int, depth: int, *, in_quick: bool = True) -> Workload:
    parameters = {**_SMALL, "connections": connections, "depth": depth}
    return Workload(
        name,
        factor,
        "raw-produce",
        "requests_per_second",
        "req/s",
        parameters,
        in_quick=in_quick,
        section="requests",
        also=(_CPU_PER_REQUEST,),
    )


def _end_to_end(
    records_per_second: int, records_per_batch: int, *, in_quick: bool = False, seconds: float = _LATENCY_SECONDS
) -> Workload:
    rate = records_per_second / records_per_batch
    tail = (Figure("p99.9", "p999_us", "µs p99.9"),) if rate * seconds >= _TAIL_REQUESTS_MIN else ()
    return Workload(
        f"end-to-end {records_per_second // 1000}k/s",
        f"{records_per_second:,} records/s in batches of {records_per_batch}",
        "raw-e2e",
        "p99_us",
        "µs p99",
        {
            **_STAMPED,
            "rate": rate,
            "batch-bytes": 61 + 1013 * records_per_batch if records_per_batch > 1 else 0,
        },
        more_is_better=False,
        in_quick=in_quick,
        section="latency",
        also=(Figure("p50", "p50_us", "µs p50"), *tail, Figure("CPU", "broker_cores", "cores")),
        seconds_min=seconds,
    )


def _beside(name: str, factor: str, *, memory_bytes: int = 0, **neighbour: Parameter) -> Workload:
    return Workload(
        name,
        factor,
        "raw-beside",
        "p99_us",
        "µs p99",
        {**_STEADY, **neighbour},
        more_is_better=False,
        section="neighbours",
        is_for_two=False,
        memory_bytes=memory_bytes,
        seconds_min=_BESIDE_SECONDS,
    )


def _client(name: str, factor: str, client: str, *, in_quick: bool = False, **parameters: Parameter) -> Workload:
    return Workload(
        name,
        factor,
        client,
        "megabytes_per_second",
        "MB/s",
        {"record-bytes": 1000, **parameters},
        in_quick=in_quick,
        section="clients",
        also=(_CPU_PER_GIGABYTE,),
        is_client_bound=True,
    )


def _coordinated(
    name: str, factor: str, client: str, metric: str, unit: str, *also: Figure, **parameters: Parameter
) -> Workload:
    return Workload(
        name,
        factor,
        client,
        metric,
        unit,
        parameters,
        more_is_better=False,
        section="coordination",
        also=also,
        is_for_two=False,
    )


def _at_rest(name: str, factor: str, client: str, metric: str, unit: str, *also: Figure) -> Workload:
    return Workload(
        name,
        factor,
        client,
        metric,
        unit,
        more_is_better=False,
        stores_records=False,
        in_quick=True,
        section="rest",
        also=also,
    )


def _replicated(workload: Workload, name: str, factor: str) -> Workload:
    return replace(
        workload, name=name, factor=factor, brokers=3, replication_factor=3, is_for_two=False, in_quick=False
    )


_BASE_ROW = _raw("batches 16 KB", "base: 1 KB records, 6 partitions, acks=all", in_quick=True)
_SLOW_ROW = _end_to_end(1_000, 1, in_quick=True)

WORKLOADS = (
    _at_rest("start-up", "from the command to the first answer", "start-up", "ready_seconds", "s"),
    _at_rest(
        "idle memory",
        "anonymous memory, nothing to do",
        "idle",
        "anonymous_megabytes",
        "MB",
        Figure("CPU", "idle_cpu_percent", "% of a core"),
    ),
    _BASE_ROW,
    _raw(
        "batches 1 MB",
        "batches of 1 MB, 2 connections",
        {"connections": 2, "batch-bytes": 1_000_000},
        in_quick=True,
    ),
    _raw("records 100 B", "records of 100 B", {"record-bytes": 100}),
    _raw("records 10 KB", "records of 10 KB", {"record-bytes": 10_000, "batch-bytes": 0}),
    _raw("1 partition", "one partition", partitions=1, is_for_two=False),
    _raw("100 partitions", "100 partitions", partitions=100),
    _raw("lz4", "batches of lz4, MB as stored", {"compression": "lz4"}),
    _raw("acks=1", "acks=1", {"acks": 1}),
    _raw("8 producers", "8 connections", {"connections": 8}),
    _raw("flush.messages=1", "every acknowledgement after an fsync", topic_settings={"flush.messages": "1"}),
    _replicated(_BASE_ROW, "RF 3", "three replicas on three brokers"),
    Workload(
        "fetch",
        "from the page cache, 1 MB per partition",
        "raw-fetch",
        "megabytes_per_second",
        "MB/s",
        {"connections": 2, "partition-bytes": 1_048_576},
        in_quick=True,
        also=(_CPU_PER_GIGABYTE,),
    ),
    Workload(
        "catch-up",
        "a log of more than 2 GiB, read by a broker in a memory group of 2 GiB",
        "raw-catch-up",
        "megabytes_per_second",
        "MB/s",
        {"connections": 2, "partition-bytes": 1_048_576},
        is_for_two=False,
        memory_bytes=_MEMORY_BYTES,
        also=(_CPU_PER_GIGABYTE,),
    ),
    _small("small, pipelined", "one 100 B record per request, 8 connections × 64 in flight", 8, 64),
    _small("small, synchronous", "one 100 B record per request, 16 connections × 1 in flight", 16, 1),
    _small("1000 connections", "one 100 B record per request, 1000 connections × 1", 1000, 1, in_quick=False),
    _SLOW_ROW,
    _end_to_end(10_000, 10),
    _end_to_end(50_000, 50),
    _replicated(_SLOW_ROW, "RF 3 end-to-end 1k/s", "1,000 records/s in batches of 1, three replicas on three brokers"),
    _replicated(
        _end_to_end(1_000, 10, seconds=8.0),
        "RF 3 end-to-end in tens",
        "1,000 records/s in batches of 10, three replicas on three brokers",
    ),
    _beside("p99 alone", "nobody else"),
    _beside("p99 beside 8 consumers", "8 consumers at its end", tails=8),
    _beside("p99 beside 100 consumers", "100 consumers at its end", tails=100),
    _beside("p99 beside a stalled reader", "a reader that asks and reads nothing", stalled=1),
    _beside(
        "p99 beside a cold reader",
        "a reader of what is only on the disk, in a memory group of 2 GiB",
        memory_bytes=_MEMORY_BYTES,
        cold=1,
    ),
    _beside("p99 beside a bulk producer", "a producer of 200 MB/s in batches of 1 MB", bulk=200),
    _client("ProducerPerformance", "Kafka's own producer, 1 KB, acks=all", "java-produce", in_quick=True),
    _client("ProducerPerformance lz4", "Kafka's own producer, 1 KB, lz4", "java-produce", compression="lz4"),
    _client("ConsumerPerformance", "Kafka's own consumer, 1 KB", "java-consume", in_quick=True),
    _client("librdkafka", "confluent-kafka's producer, 1 KB, acks=all", "librdkafka-produce"),
    _coordinated(
        "first record of a group",
        "librdkafka's consumer in a new group, from its making on",
        "first-record",
        "first_record_ms",
        "ms",
        groups=9,
    ),
    _coordinated(
        "100 members",
        "a group of 100 joins again and syncs",
        "rebalance",
        "rebalance_ms",
        "ms",
        Figure("CPU", "cpu_ms_per_rebalance", "ms of CPU"),
        members=100,
    ),
    _coordinated(
        "1000 groups come",
        "1000 groups of one join, sync and commit",
        "form-groups",
        "formed_seconds",
        "s",
        Figure("CPU", "cpu_seconds", "s of CPU"),
        groups=1000,
    ),
    _coordinated(
        "1000 groups, CPU",
        "1000 groups of one: a heartbeat every 3 s, a commit every 5 s",
        "keep-groups",
        "cpu_percent",
        "% of a core",
        groups=1000,
    ),
    Workload(
        "transactions",
        "version 2, one record each, 16 producers",
        "transact",
        "transactions_per_second",
        "txn/s",
        {"producers": 16},
        section="coordination",
        also=(Figure("CPU", "cpu_us_per_transaction", "µs of CPU"),),
        is_for_two=False,
    ),
)
