"""Runs pipelines: one query of Spark for each, started from its checkpoint, and its progress.

A pipeline with dead letters has a second query for them. The caller watches the queries and decides when they stop.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.spark.connector.foreach_batch import each_batch
from barnabas.spark.errors import PipelineFailed
from barnabas.spark.pipelines.decoding import dead_letters, decoded, encoded
from barnabas.spark.pipelines.pipeline import Files, Pipeline, Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

GRACE_SECONDS: Final = 60.0  # for the batch under way, when a pipeline shall stop
POLL_SECONDS: Final = 0.1
_OURS: Final = re.compile(r"(?:.*\s)?barnabas(?:\.\w+)+: (.+)")
_ROW: Final = re.compile(r"a record cannot be decoded: topic \S+, partition \d+, offset \d+.*")


@dataclass(frozen=True)
class State:
    """How a pipeline is going, at one moment."""

    batch_id: int = -1
    rows: int = 0  # in the last batch
    rows_per_second: float = 0.0
    lag: int | None = None  # offsets that are not read yet
    state_rows: int = 0
    state_bytes: int = 0
    batch_ms: int = 0


class About(NamedTuple):
    """What a listing shows of a pipeline or an application."""

    name: str
    group: str
    reads: list[str]
    writes: str
    kind: str = "pipeline"  # or application


class Run:
    """A pipeline or an application that is running."""

    def __init__(self, about: About, queries: list[StreamingQuery]) -> None:
        self.about = about
        self.queries = queries
        self.rows_total = 0
        self.notice = ""  # the last event that users should see
        self._last_batch: tuple[str, int] | None = None

    @property
    def is_active(self) -> bool:
        return all(query.isActive for query in self.queries)

    @property
    def has_ended(self) -> bool:
        return not any(query.isActive for query in self.queries)

    def state(self) -> State:
        progress = self.queries[0].lastProgress
        if progress is None:
            return State()
        told = json.loads(progress.json)
        found = state_of(told)
        batch = (told["timestamp"], found.batch_id)
        if batch != self._last_batch:
            self.rows_total += found.rows
            self._last_batch = batch
        return found

    def failure(self) -> PipelineFailed | None:
        for query in self.queries:
            error = query.exception()
            if error is not None:
                return PipelineFailed(f"{self.about.name} stopped: {reason_of(str(error))}")
        return None

    def tend(self) -> None:
        """Do what is due while the queries run."""

    def stop(self, *, grace_seconds: float = GRACE_SECONDS) -> None:
        """Stop after the batch that is under way, or after ``grace_seconds`` if the batch takes longer."""
        deadline = time.monotonic() + grace_seconds
        for query in self.queries:
            while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
            query.stop()


def start(
    pipeline: Pipeline,
    spark: SparkSession,
    *,
    servers: str,
    checkpoints: str | Path,
    once: bool = False,
    client: Mapping[str, str] | None = None,
) -> Run:
    """Start a pipeline where its checkpoint says; ``once`` takes what there is and ends."""
    home = f"{str(checkpoints).rstrip('/')}/{pipeline.name}"
    options = {"kafka.bootstrap.servers": servers} | {f"kafka.{name}": value for name, value in (client or {}).items()}
    tables = {name: _read(spark, each, options, pipeline.group) for name, each in pipeline.reads.items()}
    frames = {
        name: decoded(tables[name], each) if isinstance(each, Topic) else tables[name]
        for name, each in pipeline.reads.items()
    }
    queries = [_write(pipeline, pipeline.transform(**frames), options, home, once=once)]
    for name, each in pipeline.reads.items():
        if isinstance(each, Topic) and each.is_decoded and each.on_bad_record == "dead_letter":
            letters = dead_letters(_read(spark, each, options, f"{pipeline.group}.dead-letters"), each)
            writer = letters.writeStream.format("barnabas").options(**options)
            queries.append(
                _started(
                    writer,
                    f"{pipeline.name}: dead letters of {name}",
                    f"{home}/dead-letters-{name}",
                    pipeline.trigger,
                    once=once,
                )
            )
    reads = [str(each) for each in pipeline.reads.values()]
    return Run(About(pipeline.name, pipeline.group, reads, str(pipeline.writes)), queries)


def _read(spark: SparkSession, end: Topic | Files, options: Mapping[str, str], group: str) -> DataFrame:
    if isinstance(end, Topic):
        told = {"subscribe": end.name, "startingOffsets": end.start, "kafka.group.id": group} | dict(end.options)
        return spark.readStream.format("barnabas").options(**options).options(**told).load()
    reader = spark.readStream.format(end.format).options(**end.options)
    reader = reader if end.schema is None else reader.schema(end.schema)
    frame = reader.load(end.path)
    return frame if end.watermark is None else frame.withWatermark(*end.watermark)


def _write(
    pipeline: Pipeline, frame: DataFrame, options: Mapping[str, str], home: str, *, once: bool
) -> StreamingQuery:
    end = pipeline.writes
    if isinstance(end, Files):
        writer: Any = frame.writeStream.format(end.format).option("path", end.path).options(**end.options)
    elif pipeline.mode == "update":
        told = _written(options, end)
        writer = frame.writeStream.foreachBatch(each_batch(told, prepare=lambda batch: encoded(batch, end)))
    else:
        told = _written(options, end)
        writer = encoded(frame, end).writeStream.format("barnabas").options(**told)
    writer = writer.outputMode(pipeline.mode)
    return _started(writer, pipeline.name, f"{home}/checkpoint", pipeline.trigger, once=once)


def _written(options: Mapping[str, str], end: Topic) -> dict[str, str]:
    """The options of a sink."""
    formats = {}
    if end.format is not None:
        formats = {"value.format": end.format, "value.subject": end.subject_name}
        formats |= {} if end.registry is None else {"registry.url": end.registry}
    return {**options, "topic": end.name, **formats, **end.options}


def _started(writer: Any, name: str, checkpoint: str, trigger: str, *, once: bool) -> StreamingQuery:
    writer = writer.queryName(name).option("checkpointLocation", checkpoint)
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=trigger)
    query: StreamingQuery = writer.start()
    return query


def state_of(progress: Mapping[str, Any]) -> State:
    """What Spark's progress says that people want to know."""
    operators = progress.get("stateOperators") or []
    lags = [_lag(source) for source in progress["sources"]]
    known = [lag for lag in lags if lag is not None]
    return State(
        batch_id=progress["batchId"],
        rows=progress.get("numInputRows", 0),
        rows_per_second=progress.get("processedRowsPerSecond") or 0.0,
        lag=sum(known) if known else None,
        state_rows=sum(each.get("numRowsTotal", 0) for each in operators),
        state_bytes=sum(each.get("memoryUsedBytes", 0) for each in operators),
        batch_ms=progress.get("durationMs", {}).get("triggerExecution", 0),
    )


def _lag(source: Mapping[str, Any]) -> int | None:
    latest, end = source.get("latestOffset"), source.get("endOffset")
    if not isinstance(latest, dict) or not isinstance(end, dict):
        return None
    behind = 0
    for topic, parts in latest.items():
        for index, offset in parts.items():
            behind += max(0, int(offset) - int(end.get(topic, {}).get(index, 0)))
    return behind


def reason_of(text: str) -> str:
    """The sentence in a query's error: the last that is one of ours or Spark's own for a row, else its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = [found[1] for line in lines if (found := _OURS.match(line))]
    if ours:
        return ours[-1]
    row = _ROW.search(text)  # the plan that follows has the words too, but no numbers
    return row[0] if row else (lines[0] if lines else text)
