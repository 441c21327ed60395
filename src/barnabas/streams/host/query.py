"""The plan of an application as a DataFrame: source → pack → stages of operators → unpack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sql

from barnabas.streams.host.blobs import PACKED, WRITTEN
from barnabas.streams.host.code import AppCode
from barnabas.streams.host.operator import TaskOperator
from barnabas.streams.host.packing import Packing, Ticking, unpack
from barnabas.streams.host.plan import Plan
from barnabas.streams.host.state_topic import StateTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    records: DataFrame,
    ticks: DataFrame | None,
    code: AppCode,
    plan: Plan,
    *,
    state_bytes_max: int,
    state_topic: StateTopic | None = None,
) -> DataFrame:
    """The records that the application writes.

    records: columns of the format ``barnabas`` with headers. ticks: rows of the tick source, if the plan has ticks.
    state_topic: the topic that has a copy of the state; None without a cluster.
    """
    packed = _with_time(records).mapInArrow(Packing(plan), PACKED)
    if ticks is not None:
        packed = packed.unionByName(_with_time(ticks).mapInArrow(Ticking(plan), PACKED))
    for stage in range(plan.stage_count):
        packed = packed.groupBy("task").transformWithState(
            statefulProcessor=TaskOperator(code, plan, stage, state_bytes_max, state_topic),
            outputStructType=PACKED,
            outputMode="Append",
            timeMode="None",
        )
    return packed.select("blob").mapInArrow(unpack, WRITTEN)


def _with_time(frame: DataFrame) -> DataFrame:
    """Add the time of the batch, which is in Spark's offset log: a batch that is repeated has the same time."""
    return frame if "now" in frame.columns else frame.withColumn("now", sql.current_timestamp())
