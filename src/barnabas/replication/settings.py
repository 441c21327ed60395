"""The broker's settings for replication, each declared once, and their values as one typed object.

The broker puts them into its table and hands the values down; leaders and fetchers ask for them again at every step,
so that those which may change while running do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from barnabas.model.settings import Kind, SettingTable, Update, setting

MIB: Final = 1024 * 1024
FETCHERS_MAX: Final = 64
RACK_AWARE_SELECTORS: Final = (
    "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "org.apache.kafka.common.replica.LeaderSelector",
)


REPLICATION_SETTINGS: Final = SettingTable(
    (
        setting(
            "replica.lag.time.max.ms",
            Kind.LONG,
            30_000,
            "How long a follower may be behind its leader before it leaves the ISR.",
            minimum=1,
        ),
        setting(
            "replica.fetch.max.bytes",
            Kind.INT,
            MIB,
            "How much a follower asks for of one partition; a larger batch comes whole all the same.",
            minimum=0,
        ),
        setting(
            "replica.fetch.wait.max.ms",
            Kind.INT,
            500,
            "How long a leader may hold a follower's fetch when there is nothing new.",
            minimum=0,
        ),
        setting("replica.fetch.min.bytes", Kind.INT, 1, "How much a leader waits for before it answers.", minimum=0),
        setting(
            "replica.fetch.response.max.bytes",
            Kind.INT,
            10 * MIB,
            "How much a follower asks for in one answer.",
            minimum=0,
        ),
        setting(
            "replica.fetch.backoff.ms",
            Kind.INT,
            1_000,
            "How long a follower rests after an error before it fetches the partition again.",
            minimum=0,
        ),
        setting(
            "replica.socket.timeout.ms",
            Kind.INT,
            30_000,
            "After what time a leader that does not answer is taken for gone.",
            minimum=1,
        ),
        setting(
            "num.replica.fetchers",
            Kind.INT,
            1,
            "Connections on which a follower fetches from each leader.",
            minimum=1,
            maximum=FETCHERS_MAX,
            update=Update.CLUSTER_WIDE,
        ),
        setting(
            "replica.selector.class",
            Kind.STRING,
            None,
            "Where consumers read: with RackAwareReplicaSelector from a replica in their rack, else from the leader.",
            choices=RACK_AWARE_SELECTORS,
        ),
        setting(
            "auto.leader.rebalance.enable",
            Kind.BOOLEAN,
            True,
            "Whether the controller gives partitions back to the first of their replicas once it is in sync again.",
        ),
        setting(
            "leader.imbalance.check.interval.seconds",
            Kind.LONG,
            300,
            "How often the controller looks for partitions that another than the first of their replicas leads.",
            minimum=1,
        ),
        setting(
            "leader.replication.throttled.rate",
            Kind.LONG,
            2**63 - 1,
            "Bytes a second that a leader sends to throttled followers which are not in sync.",
            minimum=0,
            update=Update.PER_BROKER,
        ),
        setting(
            "follower.replication.throttled.rate",
            Kind.LONG,
            2**63 - 1,
            "Bytes a second that a throttled follower fetches while it is behind.",
            minimum=0,
            update=Update.PER_BROKER,
        ),
        setting(
            "replica.alter.log.dirs.io.max.bytes.per.second",
            Kind.LONG,
            2**63 - 1,
            "Bytes a second that are copied to move replicas from one directory of a broker to another.",
            minimum=0,
            update=Update.PER_BROKER,
        ),
    )
)


class ReplicationSettings(NamedTuple):
    lag_ms_max: int = 30_000
    partition_bytes_max: int = MIB
    wait_ms: int = 500
    size_bytes_min: int = 1
    response_bytes_max: int = 10 * MIB
    backoff_ms: int = 1_000
    timeout_ms: int = 30_000
    fetchers: int = 1
    is_rack_aware: bool = False
    is_rebalanced: bool = True  # these two are for the controller
    rebalance_interval_ms: int = 300_000
    leader_bytes_per_second: int = 2**63 - 1
    follower_bytes_per_second: int = 2**63 - 1
    move_bytes_per_second: int = 2**63 - 1

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ReplicationSettings:
        """The settings with these values, by name, and the defaults for the rest."""

        def value(name: str) -> Any:
            return values.get(name, REPLICATION_SETTINGS[name].default)

        wait_ms: int = value("replica.fetch.wait.max.ms")
        return cls(
            lag_ms_max=value("replica.lag.time.max.ms"),
            partition_bytes_max=value("replica.fetch.max.bytes"),
            # A follower that waits longer than it may lag would leave the ISR for nothing.
            wait_ms=min(wait_ms, value("replica.lag.time.max.ms") // 2),
            size_bytes_min=value("replica.fetch.min.bytes"),
            response_bytes_max=value("replica.fetch.response.max.bytes"),
            backoff_ms=value("replica.fetch.backoff.ms"),
            timeout_ms=value("replica.socket.timeout.ms"),
            fetchers=value("num.replica.fetchers"),
            is_rack_aware=value("replica.selector.class") == RACK_AWARE_SELECTORS[0],
            is_rebalanced=value("auto.leader.rebalance.enable"),
            rebalance_interval_ms=value("leader.imbalance.check.interval.seconds") * 1000,
            leader_bytes_per_second=value("leader.replication.throttled.rate"),
            follower_bytes_per_second=value("follower.replication.throttled.rate"),
            move_bytes_per_second=value("replica.alter.log.dirs.io.max.bytes.per.second"),
        )
