"""The broker settings of the share coordinator and of its topic ``__share_group_state``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.model.declared import Declared, named
from barnabas.model.settings import Kind

_FIVE_MINUTES_MS: Final = 5 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareStateSettings(Declared):
    partition_count: int = named(
        "share.coordinator.state.topic.num.partitions",
        Kind.INT,
        50,
        "Partitions of the topic that keeps the state of share groups.",
        minimum=1,
    )
    replication_factor: int = named(
        "share.coordinator.state.topic.replication.factor",
        Kind.SHORT,
        3,
        "Replicas of the topic that keeps the state of share groups.",
        minimum=1,
    )
    min_insync_replicas: int = named(
        "share.coordinator.state.topic.min.isr",
        Kind.SHORT,
        2,
        "Replicas of that topic that must have a change before it is acknowledged.",
        minimum=1,
    )
    segment_bytes: int = named(
        "share.coordinator.state.topic.segment.bytes",
        Kind.INT,
        100 * 1024 * 1024,
        "Segment size of the topic that keeps the state of share groups.",
        minimum=1,
    )
    updates_per_snapshot: int = named(
        "share.coordinator.snapshot.update.records.per.snapshot",
        Kind.INT,
        500,
        "Number of update records of a share-partition between two snapshot records.",
        minimum=0,
        maximum=500,
    )
    timeout_ms: int = named(
        "share.coordinator.write.timeout.ms",
        Kind.INT,
        5_000,
        "How long a request to the share coordinator may take.",
        minimum=1,
    )
    prune_interval_ms: int = named(
        "share.coordinator.state.topic.prune.interval.ms",
        Kind.INT,
        _FIVE_MINUTES_MS,
        "Interval at which redundant records are deleted from the topic of share group state.",
        minimum=1,
    )
    cold_snapshot_interval_ms: int = named(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        Kind.INT,
        _FIVE_MINUTES_MS,
        "Interval after which a share-partition without changes gets a new snapshot record.",
        minimum=1,
    )

    @property
    def topic_configs(self) -> dict[str, str]:
        """The configuration of the topic. The coordinator deletes what is redundant, so nothing expires by time."""
        return {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "retention.ms": "-1",
            "min.insync.replicas": str(self.min_insync_replicas),
            "segment.bytes": str(self.segment_bytes),
        }
