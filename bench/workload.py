"""What a row of the report is: a load, the figures that it is judged by, and how long it runs. Types only.

`bench.workloads` holds the rows, `bench.clients` runs them, and `bench.report` and `bench.page` print what came out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Parameter = int | float | str


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report. `metric` names a figure of the client's outcome; `name` is empty for a row's first."""

    name: str
    metric: str
    unit: str
    more_is_better: bool = False
    # Where the client is the bottleneck its throughput is shown, and the broker is judged by what it spends.
    is_judged: bool = True


@dataclass(frozen=True, slots=True)
class Workload:
    """One load. `metric` names the figure of the client's outcome that the row is judged by, `also` the others."""

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
    section: str = "throughput"
    also: tuple[Figure, ...] = ()
    is_client_bound: bool = False
    brokers: int = 1
    replication_factor: int = 1
    # Whether two brokers that share the partitions are a comparison at all.
    is_for_two: bool = True
    # The broker is started for this row in a memory group of so many bytes; 0 is none.
    memory_bytes: int = 0
    # A tail at a fixed rate needs requests to rest on, and so may need longer than a pace gives.
    seconds_min: float = 0.0

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The lines that this row makes in the report."""
        first = Figure("", self.metric, self.unit, self.more_is_better, is_judged=not self.is_client_bound)
        return (first, *self.also)


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
    # What is read from the disk must be more than the memory group of the row could keep.
    cold_bytes: int
    # The columns of the report, in the order in which they take turns.
    peers: tuple[str, ...]


# A Java broker still gets faster after half a minute of load: the quick pace shows where it is heading, the full one
# gives it the time.
QUICK = Pace(
    "quick",
    rounds=2,
    seconds=2,
    warmup_seconds=1,
    first_warmup_seconds=8,
    records=200_000,
    bytes_max=1 << 30,
    cold_bytes=9 << 28,
    peers=("kafka", "barnabas", "mock"),
)
FULL = Pace(
    "full",
    rounds=5,
    seconds=2,
    warmup_seconds=1,
    first_warmup_seconds=30,
    records=300_000,
    bytes_max=1 << 30,
    cold_bytes=9 << 28,
    peers=("kafka", "barnabas", "barnabas-2", "mock"),
)
PACES = {pace.name: pace for pace in (QUICK, FULL)}
