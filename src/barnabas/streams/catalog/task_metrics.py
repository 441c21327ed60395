"""The record of a task in the metrics topic of its application. Pure."""

from __future__ import annotations

import msgspec

__all__ = ["NodeTraffic", "TaskMetrics", "metrics_topic"]


class NodeTraffic(msgspec.Struct, frozen=True):
    """Records and bytes of keys and values that a source or sink has read or written, since the application's start."""

    node: str
    topic: str
    records: int
    bytes: int


class TaskMetrics(msgspec.Struct, frozen=True):
    """Counters of a task as of a batch.

    time_ms: time of the batch. keys: number of keys by store. dropped: late or invalid records by node.
    """

    task: str
    time_ms: int
    stream_time_ms: int
    consumed: list[NodeTraffic]
    produced: list[NodeTraffic]
    dropped: dict[str, int]
    keys: dict[str, int]
    state_bytes: int


def metrics_topic(application_id: str) -> str:
    return f"{application_id}-task-metrics-changelog"
