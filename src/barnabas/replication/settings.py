"""The broker's settings for replication, each declared once, and their values as one typed object.

The broker puts them into its table and hands the values down; leaders and fetchers ask for them again at every step,
so that those which may change while running do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.model.declared import Declared, named
from barnabas.model.settings import Kind, Update

MIB: Final = 1024 * 1024
FETCHERS_MAX: Final = 64
RACK_AWARE_SELECTORS: Final = (
    "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "org.apache.kafka.common.replica.LeaderSelector",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationSettings(Declared):
    lag_ms_max: int = named(
        "replica.lag.time.max.ms",
        Kind.LONG,
        30_000,
        "How long a follower may be behind its leader before it leaves the ISR.",
        minimum=1,
    )
    partition_bytes_max: int = named(
        "replica.fetch.max.bytes",
        Kind.INT,
        MIB,
        "How much a follower asks for of one partition; a larger batch comes whole all the same.",
        minimum=0,
    )
    wait_ms: int = named(
        "replica.fetch.wait.max.ms",
        Kind.INT,
        500,
        "How long a leader may hold a follower's fetch when there is nothing new.",
        minimum=0,
    )
    size_bytes_min: int = named(
        "replica.fetch.min.bytes", Kind.INT, 1, "How much a leader waits for before it answers.", minimum=0
    )
    response_bytes_max: int = named(
        "replica.fetch.response.max.bytes", Kind.INT, 10 * MIB, "How much a follower asks for in one answer.", minimum=0
    )
    backoff_ms: int = named(
        "replica.fetch.backoff.ms",
        Kind.INT,
        1_000,
        "How long a follower rests after an error before it fetches the partition again.",
        minimum=0,
    )
    timeout_ms: int = named(
        "replica.socket.timeout.ms",
        Kind.INT,
        30_000,
        "After what time a leader that does not answer is taken for gone.",
        minimum=1,
    )
    fetchers: int = named(
        "num.replica.fetchers",
        Kind.INT,
        1,
        "Connections on which a follower fetches from each leader.",
        minimum=1,
        maximum=FETCHERS_MAX,
        update=Update.CLUSTER_WIDE,
    )
    is_rack_aware: bool = named(
        "replica.selector.class",
        Kind.STRING,
        None,
        "Where consumers read: with RackAwareReplicaSelector from a replica in their rack, else from the leader.",
        choices=RACK_AWARE_SELECTORS,
        convert=lambda selector: selector == RACK_AWARE_SELECTORS[0],
    )
    is_rebalanced: bool = named(
        "auto.leader.rebalance.enable",
        Kind.BOOLEAN,
        True,
        "Whether the controller gives partitions back to the first of their replicas once it is in sync again.",
    )
    rebalance_interval_ms: int = named(
        "leader.imbalance.check.interval.seconds",
        Kind.LONG,
        300,
        "How often the controller looks for partitions that another than the first of their replicas leads.",
        minimum=1,
        convert=lambda seconds: seconds * 1000,
    )
    leader_bytes_per_second: int = named(
        "leader.replication.throttled.rate",
        Kind.LONG,
        2**63 - 1,
        "Bytes a second that a leader sends to throttled followers which are not in sync.",
        minimum=0,
        update=Update.PER_BROKER,
    )
    follower_bytes_per_second: int = named(
        "follower.replication.throttled.rate",
        Kind.LONG,
        2**63 - 1,
        "Bytes a second that a throttled follower fetches while it is behind.",
        minimum=0,
        update=Update.PER_BROKER,
    )
    move_bytes_per_second: int = named(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        Kind.LONG,
        2**63 - 1,
        "Bytes a second that are copied to move replicas from one directory of a broker to another.",
        minimum=0,
        update=Update.PER_BROKER,
    )

    def __post_init__(self) -> None:
        # A follower that waits longer than it may lag would leave the ISR for nothing.
        object.__setattr__(self, "wait_ms", min(self.wait_ms, self.lag_ms_max // 2))
