"""Counters of a task: records and bytes of its sources and sinks, and dropped records, by node.

They are cells of the task's state, so they survive restarts and count a repeated batch once. Each batch writes them to
the compacted topic ``<application>-task-metrics-changelog``; ``queries/metrics.py`` shows them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from barnabas.streams.catalog.task_metrics import NodeTraffic, TaskMetrics
from barnabas.streams.runtime.task import Row, Task
from barnabas.streams.topology.operators import Sink, Source

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Counters", "Intake"]

CONSUMED: Final = "consumed:"  # prefixes of the names of cells: records and bytes by topic, drops by node
PRODUCED: Final = "produced:"
DROPPED: Final = "dropped:"


@dataclass
class Intake:
    """What a batch of a task reads: offsets after its records, and records and bytes by topic."""

    position: dict[str, dict[int, int]] = field(default_factory=dict)
    traffic: dict[str, list[int]] = field(default_factory=dict)

    def count(self, topic: str, table: pyarrow.Table) -> None:
        import pyarrow.compute as pc

        entry = self.traffic.setdefault(topic, [0, 0])
        entry[0] += table.num_rows
        entry[1] += sum(pc.sum(pc.binary_length(table.column(name))).as_py() or 0 for name in ("key", "value"))


class Counters:
    """The counters of a task, in its cells."""

    def __init__(self, task: Task) -> None:
        self._task = task
        operators = [(node.name, node.operator) for node in task.sub_topology.nodes]
        self._sources = [(name, each) for name, each in operators if isinstance(each, Source)]
        self._sinks = [(name, each) for name, each in operators if isinstance(each, Sink)]

    def add(self, intake: Intake, rows: Iterable[Row]) -> None:
        """Count what a batch read, wrote and dropped."""
        cell = self._task.cell
        for topic, (records, size) in intake.traffic.items():
            if not any(_uses(each, topic) for _, each in self._sources):
                continue  # a global table, of which every task has a copy
            counts = cell(CONSUMED + topic, 0, 0)
            counts[0] += records
            counts[1] += size
        written: dict[str, list[int]] = {}
        for row in rows:
            counts = written.get(row.topic) or cell(PRODUCED + row.topic, 0, 0)
            written[row.topic] = counts
            counts[0] += 1
            counts[1] += len(row.key or b"") + len(row.value or b"")
        for node, count in self._task.dropped.items():
            cell(DROPPED + node, 0)[0] += count
        self._task.dropped.clear()

    def snapshot(self, state_bytes: int) -> bytes:
        """All counters, and the size of the state, as JSON."""
        cells = self._task.cells
        metrics = TaskMetrics(
            task=self._task.name,
            time_ms=self._task.time_ms,
            stream_time_ms=self._task.stream_time,
            consumed=[self._traffic(name, CONSUMED, self._sources) for name in cells if name.startswith(CONSUMED)],
            produced=[self._traffic(name, PRODUCED, self._sinks) for name in cells if name.startswith(PRODUCED)],
            dropped={name.removeprefix(DROPPED): cells[name][0] for name in cells if name.startswith(DROPPED)},
            keys={name: len(store.data) for name, store in self._task.stores.items() if hasattr(store, "data")},
            state_bytes=state_bytes,
        )
        return msgspec.json.encode(metrics)

    def _traffic(self, cell: str, prefix: str, nodes: list[tuple[str, Any]]) -> NodeTraffic:
        topic = cell.removeprefix(prefix)
        node = next((name for name, each in nodes if _uses(each, topic)), "")
        return NodeTraffic(node, topic, *self._task.cells[cell])


def _uses(operator: Source | Sink, topic: str) -> bool:
    if isinstance(operator, Source):
        return topic in operator.topics or (operator.pattern is not None and bool(operator.pattern.fullmatch(topic)))
    return operator.topic == topic or operator.extractor is not None
