"""The stateful operator of Spark that hosts the tasks of one stage: a group of Spark is a task.

It runs in Spark's Python workers. Rows for tasks of other stages pass through it unchanged.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from heapq import merge
from operator import itemgetter
from typing import Any

from pyspark import TaskContext
from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from barnabas.spark.connector.writers import BATCH_ID, QUERY_ID
from barnabas.streams.catalog.task_metrics import metrics_topic
from barnabas.streams.host import cache
from barnabas.streams.host.blobs import INPUT, records_of
from barnabas.streams.host.code import AppCode
from barnabas.streams.host.counters import Intake
from barnabas.streams.host.hosted import HostedTask
from barnabas.streams.host.plan import Plan
from barnabas.streams.host.routing import Sender, routed
from barnabas.streams.host.state import CHUNKS, HEAD, TOKEN_BYTES, Head, StateLog
from barnabas.streams.host.state_topic import Restored, StateTopic, records_of_entries
from barnabas.streams.positions import merge_into
from barnabas.streams.runtime.task import InputRecord, Row

__all__ = ["TaskOperator"]


class TaskOperator(StatefulProcessor):
    """``state_topic`` has a copy of the state, from which a lost checkpoint is rebuilt; None without a cluster."""

    def __init__(
        self, code: AppCode, plan: Plan, stage: int, state_bytes_max: int, state_topic: StateTopic | None = None
    ) -> None:
        self._code = code
        self._plan = plan
        self._stage = stage
        self._state_bytes_max = state_bytes_max
        self._state_topic = state_topic

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("head", HEAD)
        self._chunks = handle.getMapState("chunks", *CHUNKS)

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[SparkRow],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[SparkRow]:
        index = self._plan.index(key[0])
        given = sorted(rows, key=lambda row: (row.kind, row.topic or "", row.partition, row.first))
        if self._plan.stage(index) != self._stage:
            yield from given
            return
        yield from self._run(index, given)

    def close(self) -> None:
        pass

    def _run(self, index: int, given: list[SparkRow]) -> Iterator[SparkRow]:
        plan, place = self._plan, self._plan.tasks[index]
        query, batch = _query_and_batch()
        log = StateLog(self._head, self._chunks, task=str(place), bytes_max=self._state_bytes_max)
        task = self._task(log, query, index)
        now = max(row.now for row in given)
        intake = Intake()
        done = task.run(_records(given, place.partition, intake), time_ms=now, seed=batch, intake=intake)
        token = secrets.token_bytes(TOKEN_BYTES)
        head = log.append(done.changes, task.snapshot(), token)
        cache.keep(query, self._stage, index, cache.Kept(task, head.next, token))
        rows = done.rows + self._state_rows(index, log, now) + self._metrics_rows(task, head, now)
        for packed in routed(plan, Sender(index, index), rows, task.position, self._offsets(index, given), now):
            yield SparkRow(**packed._asdict())

    def _state_rows(self, index: int, log: StateLog, now: int) -> list[Row]:
        """The records for the state topic."""
        topic = self._state_topic
        if topic is None:
            return []
        records = records_of_entries(str(self._plan.tasks[index]), log.entries, log.head.first)
        return [Row(topic.name, topic.partition(index), key, value, (), now) for key, value in records]

    def _metrics_rows(self, task: HostedTask, head: Head, now: int) -> list[Row]:
        """The record with the counters of the task."""
        if self._state_topic is None:
            return []
        content = task.counters.snapshot(head.snapshot_bytes + head.log_bytes)
        return [Row(metrics_topic(self._plan.application_id), 0, task.name.encode(), content, (), now)]

    def _task(self, log: StateLog, query: str, index: int) -> HostedTask:
        """The task as of the last batch: the kept one, if need be brought up to date, or a new one from the state."""
        kept = cache.take(query, self._stage, index)
        if kept is not None:
            changes = log.since(kept.position, kept.token)
            if changes is not None:
                kept.task.restore(changes)
                return kept.task
            kept.task.close()
        task = HostedTask(self._code.app(), self._plan, index)
        restored = self._restored(log, index)
        if restored is not None:
            log.adopt(restored.kept, restored.next)
        task.restore(log.whole() if restored is None else restored.chunks)
        return task

    def _restored(self, log: StateLog, index: int) -> Restored | None:
        """The state of the cluster for the first batch of a task whose checkpoint was rebuilt."""
        if self._state_topic is None or self._state_topic.ends is None or not log.is_new:
            return None
        return self._state_topic.restore(index, str(self._plan.tasks[index]))

    def _offsets(self, index: int, given: list[SparkRow]) -> dict[str, dict[str, int]]:
        """Offsets up to which the task has read topics of the cluster; of a global table, its first copy tells."""
        plan = self._plan
        found: dict[str, dict[str, int]] = {}
        for row in given:
            if row.kind == INPUT and row.end >= 0:
                copies = plan.copies.get(row.topic)
                if copies is None or copies[0] == index:
                    found.setdefault(row.topic, {})[str(row.partition)] = row.end
        return found


def _records(given: list[SparkRow], partition: int, intake: Intake) -> Iterator[InputRecord]:
    """The input of a task: records of topics in the order of their offsets, repartitioned records merged by time.

    A repartitioned record has no offset of its own. The records that several tasks send are merged as Kafka merges
    partitions, by the smallest timestamp at a head: otherwise all records of the second task would be late.
    Offsets after the records, and those that the sending tasks have read, are merged into the position of ``intake``.
    """
    internal: dict[str, dict[int, list[SparkRow]]] = {}
    for row in given:
        if row.kind == INPUT and row.end >= 0:
            merge_into(intake.position, {row.topic: {row.partition: row.end}})
            yield from records_of(bytes(row.blob), row.name, row.partition, intake)
        elif row.kind == INPUT:
            internal.setdefault(row.name, {}).setdefault(row.partition, []).append(row)
    for name, by_sender in internal.items():
        senders = [_sent(rows, name, partition, intake) for _, rows in sorted(by_sender.items())]
        for offset, record in enumerate(merge(*senders, key=itemgetter(3))):
            yield (*record[:2], offset, *record[3:])


def _sent(rows: list[SparkRow], name: str, partition: int, intake: Intake) -> Iterator[InputRecord]:
    for row in rows:
        yield from records_of(bytes(row.blob), name, partition, intake)


def _query_and_batch() -> tuple[str, str]:
    context = TaskContext.get()
    assert context is not None, "the operator runs in tasks of Spark"
    return context.getLocalProperty(QUERY_ID) or "", context.getLocalProperty(BATCH_ID) or "0"
