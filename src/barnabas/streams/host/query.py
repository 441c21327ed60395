"""The plan of an application as a DataFrame: source → pack → stages of operators → unpack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from barnabas.streams.host.blobs import PACKED, WRITTEN
from barnabas.streams.host.code import AppCode
from barnabas.streams.host.operator import TaskOperator
from barnabas.streams.host.packing import Packing, Ticking, unpack
from barnabas.streams.host.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["written"]


def written(
    records: DataFrame, ticks: DataFrame | None, code: AppCode, plan: Plan, *, state_bytes_max: int
) -> DataFrame:
    """The records that the application writes.

    records: columns of the format ``barnabas`` with headers. ticks: rows of the tick source, if the plan has ticks.
    """
    packed = _with_time(records).mapInArrow(Packing(plan), PACKED)
    if ticks is not None:
        packed = packed.unionByName(_with_time(ticks).mapInArrow(Ticking(plan), PACKED))
    for stage in range(plan.stage_count):
        packed = packed.groupBy("task").transformWithState(
            statefulProcessor=TaskOperator(code, plan, stage, state_bytes_max),
            outputStructType=PACKED,
            outputMode="Append",
            timeMode="None",
        )
    return packed.select("blob").mapInArrow(unpack, WRITTEN)


def _with_time(frame: DataFrame) -> DataFrame:
    """Add the time of the batch, which is in Spark's offset log: a batch that is repeated has the same time."""
    return frame if "now" in frame.columns else frame.withColumn("now", sql.current_timestamp())
