"""Runs applications: one query of Spark for each, from its checkpoint, started again after a lost worker or broker."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.spark.connector.offsets import EARLIEST
from barnabas.spark.errors import InvalidOption, PipelineFailed
from barnabas.spark.pipelines.runner import About, Run, reason_of
from barnabas.streams.app import App
from barnabas.streams.host.checkpoint import Note, Origin, read_note, write_note
from barnabas.streams.host.code import AppCode
from barnabas.streams.host.plan import Plan, make_plan
from barnabas.streams.host.query import state_partitions, written
from barnabas.streams.host.rebuild import RebuildRefused, rebuild
from barnabas.streams.host.registration import (
    check_newest,
    check_unused,
    known_application,
    new_generation,
    register,
)
from barnabas.streams.host.state import STATE_BYTES_MAX
from barnabas.streams.host.state_topic import MESSAGE_BYTES_MAX, StateTopic
from barnabas.streams.host.state_topic import topic_name as state_topic_name
from barnabas.streams.host.ticks import FORMAT as TICKS
from barnabas.streams.host.ticks import INTERVAL, TickSource
from barnabas.streams.host.topics import create_internal_topics, partitions_of
from barnabas.streams.runtime.task import RECORD_BYTES_MAX
from barnabas.streams.topology.node import Topology

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["AppRun", "start"]

TRIGGER: Final = "250 milliseconds"
RECORDS_MAX: Final = 250_000  # records of a batch: a task has all of its records of a batch in memory
STATE_LIMIT: Final = "spark.barnabas.task.state.max.bytes"
RECORDS_LIMIT: Final = "spark.barnabas.batch.records.max"
TICK_MS_MIN: Final = 100
PARTITIONS_PER_CORE: Final = 4  # state partitions of an operator on a cluster
BACK_OFF_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 60.0)  # then the application has failed
# Errors of the application itself, which would come again.
_LASTING: Final = re.compile(r"barnabas\.(streams(\.\w+)+|spark\.errors)\.\w+: |AnalysisException|pickle")


class AppRun(Run):
    """An application that is running."""

    def __init__(self, about: About, start_query: Callable[[], StreamingQuery], *, once: bool, is_looped: bool) -> None:
        super().__init__(about, [start_query()])
        self._start_query = start_query
        self._once = once
        self._is_looped = is_looped
        self._failures = 0
        self._failed_batch = -1
        self._restart_at: float | None = None

    @property
    def has_ended(self) -> bool:
        return self._restart_at is None and super().has_ended

    def failure(self) -> PipelineFailed | None:
        return None if self._restart_at is not None else super().failure()

    def tend(self) -> None:
        """Start the query again if it failed for a passing reason, after a pause that grows with each failure."""
        query = self.queries[0]
        if self._restart_at is not None:
            if time.monotonic() >= self._restart_at:
                self._restart_at = None
                self.queries[:] = [self._start_query()]
        elif not query.isActive:
            error = query.exception()
            if error is not None:
                self._plan_restart(str(error))
            elif self._once and self._is_looped and _has_read(query):
                self.queries[:] = [self._start_query()]  # what it has written to its own topics is to be read too

    def stop(self, *, grace_seconds: float | None = None) -> None:
        self._restart_at = None
        super().stop() if grace_seconds is None else super().stop(grace_seconds=grace_seconds)

    def _plan_restart(self, error: str) -> None:
        batch = self.state().batch_id
        self._failures = 1 if batch > self._failed_batch else self._failures + 1
        self._failed_batch = batch
        if not _LASTING.search(error) and self._failures <= len(BACK_OFF_SECONDS):
            pause = BACK_OFF_SECONDS[self._failures - 1]
            self.notice = f"{self.about.name} failed and starts again in {pause:.0f} s: {reason_of(error)}"
            self._restart_at = time.monotonic() + pause


def start(
    app: App,
    spark: SparkSession,
    *,
    servers: str,
    checkpoints: str | Path,
    once: bool = False,
    client: Mapping[str, str] | None = None,
    trigger: str = TRIGGER,
) -> AppRun:
    """Start an application from its checkpoint; ``once`` processes the records that are there and ends.

    Raises CheckpointMismatch if the checkpoint is of another topology, TopologyError if topics are missing or differ
    in their number of partitions.
    """
    topology, code = app.topology(), AppCode.of(app)
    told = {"bootstrap.servers": servers} | dict(client or {})
    home = f"{str(checkpoints).rstrip('/')}/{app.application_id}"
    note, plan, state_topic = _prepared(topology, spark, told, home)
    options = {f"kafka.{name}": value for name, value in told.items()}

    def start_query() -> StreamingQuery:
        check_newest(note, told)
        checkpoint = f"{home}/checkpoint"
        source = _records(spark, topology, plan, options, note.origin)
        return _start(
            spark, topology, code, plan, source, state_topic, options, checkpoint, trigger=None if once else trigger
        )

    reads = [*topology.cluster_topics, *(each.pattern for each in topology.source_patterns)]
    name = app.application_id
    about = About(name, name, [f"topic {each}" for each in reads], ", ".join(topology.sink_topics), "application")
    return AppRun(about, start_query, once=once, is_looped=bool(plan.looped))


def _prepared(
    topology: Topology, spark: SparkSession, client: Mapping[str, str], home: str
) -> tuple[Note, Plan, StateTopic]:
    """The note of the checkpoint, which is rebuilt if it is missing, the plan, and the state topic, which exists."""
    note, known = read_note(spark, home), known_application(topology.application_id, client)
    plan = make_plan(
        topology,
        partitions_of(topology, client),
        partitions_max=_partitions_max(spark),
        state_partitions=None if note is None else note.state_partitions,
        record_bytes_max=int(client.get("max.request.size", RECORD_BYTES_MAX)),
    )
    now = Note.of(topology, plan)
    is_fresh = note is None
    if note is not None:
        note.check(now)
        note.check_generation(known)
    elif known is not None:
        Note.of_cluster(known).check(now, "the state in the cluster")
    # Topics that a lost checkpoint is rebuilt from are created first: a rebuild without one finds an empty topic.
    if known is None and is_fresh:
        check_unused(topology.application_id, client)
    partitions = create_internal_topics(topology, plan, client)
    if note is None:
        if known is not None and topology.frames:
            raise RebuildRefused(
                f"the checkpoint of {topology.application_id} is missing. It has the positions of the DataFrames "
                f"{', '.join(topology.frames)}, so the state cannot be rebuilt. Restore the checkpoint, or start anew: "
                f"`barnabas streams reset {topology.application_id}`"
            )
        origin = None if known is None else rebuild(known, {**plan.partitions, **now.partitions}, client)
        note = replace(now, generation=new_generation(), origin=origin)
    register(note, topology, plan, home, client)
    if is_fresh:
        write_note(spark, home, note)
    ends = None if note.origin is None else {int(number): end for number, end in note.origin.ends.items()}
    state_topic = StateTopic(state_topic_name(topology.application_id), partitions, dict(client), ends)
    return note, plan, state_topic


def _partitions_max(spark: SparkSession) -> int:
    """Partitions of an operator's state: one for each core of one machine, more on a cluster, which may grow."""
    context = getattr(spark, "sparkContext", None)  # None with Spark Connect
    cores = os.cpu_count() or 1 if context is None else context.defaultParallelism
    return cores if context is not None and context.master.startswith("local") else PARTITIONS_PER_CORE * cores


def _start(
    spark: SparkSession,
    topology: Topology,
    code: AppCode,
    plan: Plan,
    records: DataFrame | None,
    state_topic: StateTopic,
    options: Mapping[str, str],
    checkpoint: str,
    *,
    trigger: str | None,
) -> StreamingQuery:
    limit = _limit(spark, STATE_LIMIT, STATE_BYTES_MAX)
    frames = {name: source.frame(spark) for name, source in topology.frames.items() if source.frame is not None}
    frame = written(
        records, _ticks(spark, plan), code, plan, state_bytes_max=limit, state_topic=state_topic, frames=frames
    )
    told = {"kafka.max.request.size": str(MESSAGE_BYTES_MAX)} | dict(options)
    writer: Any = frame.writeStream.format("barnabas").options(**told).outputMode("append")
    writer = writer.option("includeTimestamp", "true").option("offsetsGroup", plan.application_id)
    writer = writer.option("applicationId", plan.application_id)
    writer = writer.option("decidedCommits", str(not plan.is_atomic).lower())
    writer = writer.queryName(plan.application_id).option("checkpointLocation", checkpoint)
    writer = writer.trigger(availableNow=True) if trigger is None else writer.trigger(processingTime=trigger)
    with state_partitions(spark, plan):
        query: StreamingQuery = writer.start()
    return query


def _records(
    spark: SparkSession, topology: Topology, plan: Plan, options: Mapping[str, str], origin: Origin | None
) -> DataFrame | None:
    """All topics of the application, by one source: so there is one offset log and one group. None without topics."""
    topics = [*topology.cluster_topics, *(topology.decorate(topic) for topic in sorted(plan.looped))]
    if not topics and not topology.source_patterns:
        return None
    reader: Any = spark.readStream.format("barnabas").options(**options)
    if topology.source_patterns:
        patterns = [*map(re.escape, topics), *(each.pattern for each in topology.source_patterns)]
        reader = reader.option("subscribePattern", "|".join(f"(?:{each})" for each in patterns))
    else:
        reader = reader.option("subscribe", ",".join(topics))
    reader = reader.option("startingOffsets", _starts(plan, origin)).option("includeHeaders", "true")
    reader = reader.option("kafka.group.id", plan.application_id)
    frame: DataFrame = reader.option("maxOffsetsPerTrigger", _limit(spark, RECORDS_LIMIT, RECORDS_MAX)).load()
    return frame


def _starts(plan: Plan, origin: Origin | None) -> str:
    """Where the topics are read from: the beginning, or what was committed when the checkpoint was rebuilt."""
    if origin is None:
        return "earliest"
    counts = {topic: plan.partitions[reader.topic] for topic, reader in plan.readers.items() if plan.is_read(topic)}
    counts |= {topic: count for topic, count in plan.partitions.items() if plan.is_matched(topic)}
    starts = {
        topic: {str(number): origin.offsets.get(topic, {}).get(str(number), EARLIEST) for number in range(count)}
        for topic, count in counts.items()
    }
    return json.dumps(starts)


def _ticks(spark: SparkSession, plan: Plan) -> DataFrame | None:
    if plan.tick_ms is None:
        return None
    spark.dataSource.register(TickSource)
    return spark.readStream.format(TICKS).option(INTERVAL, max(TICK_MS_MIN, plan.tick_ms)).load()


def _limit(spark: SparkSession, name: str, default: int) -> int:
    text = spark.conf.get(name, str(default))
    if text is None or not text.isdecimal() or not int(text):
        raise InvalidOption(f"{name}={text!r}: pass a number above 0")
    return int(text)


def _has_read(query: StreamingQuery) -> bool:
    progress = [json.loads(each.json) for each in query.recentProgress]
    return any(source["numInputRows"] for each in progress for source in each["sources"][:1])
