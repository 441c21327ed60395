"""A stream into topics batch by batch, for output modes that a Python sink of Spark cannot have: update, above all.

``stream.writeStream.outputMode("update").foreachBatch(each_batch({...}))`` has the sink's guarantee: the batch is
written by the same writer, under the query's name and the batch's number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from barnabas.spark.errors import InvalidOption

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

from barnabas.spark.connector.writers import QUERY_ID


def each_batch(
    options: Mapping[str, str],
    *,
    prepare: Callable[[DataFrame], DataFrame] | None = None,
    name: str | None = None,
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch``. ``prepare`` may make key, value and topic out of the batch's rows.

    ``name`` tells apart several of these in one query, and stands for the query where Spark does not tell which it is
    (Spark Connect).
    """

    def write(batch: DataFrame, batch_id: int) -> None:
        rows = batch if prepare is None else prepare(batch)
        sink_id = "-".join(part for part in ("spark-sink", _query_id(batch), name) if part)
        if sink_id == "spark-sink":
            raise InvalidOption("each_batch: Spark does not say here which query this is; say name=...")
        writer = rows.write.format("barnabas").mode("append").options(**options)
        writer.option("sinkId", sink_id).option("batchId", batch_id).save()

    return write


def _query_id(batch: DataFrame) -> str | None:
    context = getattr(batch.sparkSession, "sparkContext", None)
    return None if context is None else context.getLocalProperty(QUERY_ID)
