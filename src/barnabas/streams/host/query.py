"""The plan of an application as a DataFrame: source → pack, with stateless tasks → stages of operators → unpack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from barnabas.streams.errors import TopologyError
from barnabas.streams.host.blobs import PACKED, WRITTEN
from barnabas.streams.host.code import AppCode
from barnabas.streams.host.operator import TaskOperator
from barnabas.streams.host.packing import Framing, Packing, Ticking, unpack
from barnabas.streams.host.plan import Plan
from barnabas.streams.host.state_topic import StateTopic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["state_partitions", "written"]


_SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"


@contextmanager
def state_partitions(spark: SparkSession, plan: Plan) -> Iterator[None]:
    """Let queries that are started within the block have the plan's number of state partitions."""
    before = spark.conf.get(_SHUFFLE_PARTITIONS)
    assert before is not None, "Spark has a default for it"
    spark.conf.set(_SHUFFLE_PARTITIONS, plan.state_partitions)
    try:
        yield
    finally:
        spark.conf.set(_SHUFFLE_PARTITIONS, before)


def written(
    records: DataFrame | None,
    ticks: DataFrame | None,
    code: AppCode,
    plan: Plan,
    *,
    state_bytes_max: int,
    state_topic: StateTopic | None = None,
    frames: Mapping[str, DataFrame] | None = None,
) -> DataFrame:
    """The records that the application writes.

    records: columns of the format ``barnabas`` with headers, if the application reads topics.
    ticks: rows of the tick source, if the plan has ticks.
    state_topic: the topic that has a copy of the state; None without a cluster.
    frames: DataFrames that the application reads, by name.
    """
    parts = [] if records is None else [_with_time(records).mapInArrow(Packing(plan, code), PACKED)]
    if ticks is not None:
        parts.append(_with_time(ticks).mapInArrow(Ticking(plan), PACKED))
    for name, frame in (frames or {}).items():
        parts.append(_with_time(_as_records(name, frame)).mapInArrow(Framing(plan, name), PACKED))
    packed = reduce(DataFrame.unionByName, parts)
    for stage in range(plan.stage_count):
        packed = packed.groupBy("task").transformWithState(
            statefulProcessor=TaskOperator(code, plan, stage, state_bytes_max, state_topic),
            outputStructType=PACKED,
            outputMode="Append",
            timeMode="None",
        )
    if not plan.stage_count:
        packed = packed.coalesce(plan.state_partitions)  # the number of transactions that a rebuild has to fence
    return packed.select("blob").mapInArrow(unpack, WRITTEN)


def _as_records(name: str, frame: DataFrame) -> DataFrame:
    missing = {"key", "value"} - set(frame.columns)
    if missing:
        raise TopologyError(f"the DataFrame {name} has no column {' and no column '.join(sorted(missing))}")
    columns = [sql.col(each).cast("binary").alias(each) for each in ("key", "value")]
    now = sql.current_timestamp()
    columns.append(sql.col("timestamp").cast("timestamp") if "timestamp" in frame.columns else now.alias("timestamp"))
    kind = "array<struct<key: string, value: binary>>"
    given = sql.col("headers") if "headers" in frame.columns else sql.lit(None)
    return frame.select(*columns, given.cast(kind).alias("headers"), sql.lit(0).cast("long").alias("offset"))


def _with_time(frame: DataFrame) -> DataFrame:
    """Add the time of the batch, which is in Spark's offset log: a batch that is repeated has the same time."""
    return frame if "now" in frame.columns else frame.withColumn("now", sql.current_timestamp())
