"""What is run: one base case, and rows in which one factor differs from it. Data only, in the order of the report.

The base case is 1 KB records, six partitions, acks=all, one replica and no compression. How a row is run is the
business of `bench.clients`; a row names its client and gives it parameters. Rows where the client is the bottleneck
say little by their throughput: they are judged by the CPU that the broker spends and by the latency at a fixed rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Parameter = int | float | str


@dataclass(frozen=True, slots=True)
class Workload:
    """One row. `metric` names the figure of the client's outcome that the row is judged by."""

    name: str
    factor: str
    client: str
    metric: str
    unit: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    partitions: int = 6
    topic_settings: Mapping[str, str] = field(default_factory=dict)
    more_is_better: bool = True
    stores_records: bool = True  # so peers which keep nothing are not asked
    in_quick: bool = False


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a run is. The warm-up is there for compilers that learn, and for caches; it is not measured."""

    name: str
    rounds: int
    seconds: float
    warmup_seconds: float
    first_warmup_seconds: float
    records: int
    # A row ends early when it has written as much: a fast broker must not have to fill more page cache than a slow one.
    bytes_max: int


# A Java broker still gets faster after half a minute of load: the quick pace shows where it is heading, the full one
# gives it the time.
QUICK = Pace("quick", rounds=2, seconds=2, warmup_seconds=1, first_warmup_seconds=8, records=200_000, bytes_max=1 << 30)
FULL = Pace(
    "full", rounds=5, seconds=4, warmup_seconds=3, first_warmup_seconds=30, records=1_000_000, bytes_max=2 << 30
)
PACES = {pace.name: pace for pace in (QUICK, FULL)}

_BASE: Mapping[str, Parameter] = {"connections": 4, "depth": 5, "batch-bytes": 16384, "record-bytes": 1000, "acks": -1}
_SMALL: Mapping[str, Parameter] = {"record-bytes": 100, "batch-bytes": 0, "acks": -1}
_STAMPED: Mapping[str, Parameter] = {"connections": 4, "depth": 64, "record-bytes": 1000, "acks": -1}


def _raw(
    name: str,
    factor: str,
    changed: Mapping[str, Parameter] | None = None,
    *,
    partitions: int = 6,
    topic_settings: Mapping[str, str] | None = None,
    in_quick: bool = False,
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
    )


def _small(name: str, factor: str, connections: int, depth: int, *, in_quick: bool = True) -> Workload:
    parameters = {**_SMALL, "connections": connections, "depth": depth}
    return Workload(name, factor, "raw-produce", "requests_per_second", "req/s", parameters, in_quick=in_quick)


def _end_to_end(records_per_second: int, records_per_batch: int, *, in_quick: bool = False) -> Workload:
    return Workload(
        f"end-to-end {records_per_second // 1000}k/s",
        f"produce to fetch at {records_per_second} records/s, batches of {records_per_batch}",
        "raw-e2e",
        "p99_us",
        "µs p99",
        {
            **_STAMPED,
            "rate": records_per_second / records_per_batch,
            "batch-bytes": 61 + 1013 * records_per_batch if records_per_batch > 1 else 0,
        },
        more_is_better=False,
        in_quick=in_quick,
    )


def _coordinated(name: str, factor: str, client: str, metric: str, unit: str, **parameters: Parameter) -> Workload:
    return Workload(name, factor, client, metric, unit, parameters, more_is_better=False)


WORKLOADS = (
    Workload(
        "start-up",
        "from the command to the first ApiVersions answer",
        "start-up",
        "ready_seconds",
        "s",
        more_is_better=False,
        stores_records=False,
        in_quick=True,
    ),
    Workload(
        "idle memory",
        "anonymous memory, nothing to do",
        "idle",
        "anonymous_megabytes",
        "MB",
        more_is_better=False,
        stores_records=False,
        in_quick=True,
    ),
    Workload(
        "idle CPU",
        "nothing to do",
        "idle",
        "idle_cpu_percent",
        "% of a core",
        more_is_better=False,
        stores_records=False,
        in_quick=True,
    ),
    _raw("batches 16 KB", "base: 1 KB records, 6 partitions, acks=all", in_quick=True),
    _raw("batches 1 MB", "batches of 1 MB", {"connections": 1, "batch-bytes": 1_000_000}, in_quick=True),
    _raw("records 100 B", "records of 100 B", {"record-bytes": 100}),
    _raw("records 10 KB", "records of 10 KB", {"record-bytes": 10_000, "batch-bytes": 0}),
    _raw("1 partition", "one partition", partitions=1),
    _raw("100 partitions", "100 partitions", partitions=100),
    _raw("acks=1", "acks=1", {"acks": 1}),
    _raw("8 producers", "8 connections", {"connections": 8}),
    _raw("flush.messages=1", "every acknowledgement after an fsync", topic_settings={"flush.messages": "1"}),
    _small("small, pipelined", "one 100 B record per request, 8 connections × 64 in flight", 8, 64),
    _small("small, synchronous", "one 100 B record per request, 16 connections × 1 in flight", 16, 1),
    _small("1000 connections", "one 100 B record per request, 1000 connections × 1", 1000, 1, in_quick=False),
    Workload(
        "fetch",
        "from the page cache, 1 MB per partition",
        "raw-fetch",
        "megabytes_per_second",
        "MB/s",
        {"connections": 2, "partition-bytes": 1_048_576},
        in_quick=True,
    ),
    _end_to_end(1_000, 1, in_quick=True),
    _end_to_end(10_000, 10),
    _end_to_end(50_000, 50),
    Workload(
        "ProducerPerformance",
        "Kafka's own producer, 1 KB records, acks=all",
        "java-produce",
        "megabytes_per_second",
        "MB/s",
        {"record-bytes": 1000, "acks": "all"},
        in_quick=True,
    ),
    Workload(
        "ProducerPerformance lz4",
        "Kafka's own producer, 1 KB records, lz4",
        "java-produce",
        "megabytes_per_second",
        "MB/s",
        {"record-bytes": 1000, "acks": "all", "compression": "lz4"},
    ),
    Workload(
        "ConsumerPerformance",
        "Kafka's own consumer, 1 KB records",
        "java-consume",
        "megabytes_per_second",
        "MB/s",
        {"record-bytes": 1000},
        in_quick=True,
    ),
    Workload(
        "librdkafka",
        "confluent-kafka's producer, 1 KB records, acks=all",
        "librdkafka-produce",
        "megabytes_per_second",
        "MB/s",
        {"record-bytes": 1000},
    ),
    _coordinated(
        "first record of a group",
        "librdkafka's consumer in a new group, from its making on",
        "first-record",
        "first_record_ms",
        "ms",
        groups=9,
    ),
    _coordinated("100 members", "a group of 100 joins again and syncs", "rebalance", "rebalance_ms", "ms", members=100),
    _coordinated(
        "100 members, CPU",
        "a group of 100 joins again and syncs",
        "rebalance",
        "cpu_ms_per_rebalance",
        "ms of CPU",
        members=100,
    ),
    _coordinated(
        "1000 groups come",
        "1000 groups of one join, sync and commit",
        "form-groups",
        "formed_seconds",
        "s",
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
    ),
    Workload(
        "transactions, CPU",
        "version 2, one record each, 16 producers",
        "transact",
        "cpu_us_per_transaction",
        "µs of CPU",
        {"producers": 16},
        more_is_better=False,
    ),
)
