"""Writing topics with Spark: exactly once, whatever comes twice."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import StreamingQueryException

import barnabas.spark


def forget_last_commit(checkpoint: Path) -> None:
    """As if the driver had died after the sink's commit and before Spark wrote that down."""
    commits = checkpoint / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
    for path in [*commits.glob(f"{last}*"), *commits.glob(f".{last}*")]:
        path.unlink()


def test_a_batch_lands_with_key_headers_and_partition(stage: Any) -> None:
    target = stage.topic("copy", 3)
    columns = (
        "cast(id as string) as key",
        "cast(id as string) as value",
        f"'{target}' as topic",
        "cast(id % 3 as int) as partition",
        "array(struct('n' as key, cast(cast(id as string) as binary) as value)) as headers",
    )
    frame = stage.spark.range(30).selectExpr(*columns)
    frame.write.format("barnabas").mode("append").options(**stage.options({})).save()
    rows = stage.read(subscribe=target, includeHeaders="true").collect()
    assert len(rows) == 30
    assert all(int(row.value) % 3 == row.partition and row.headers[0].value == row.key for row in rows)


def test_headers_cost_no_more_than_rows(stage: Any) -> None:
    """A column of lists that are null made Spark compute for minutes; the session's settings keep it out of that."""
    target = stage.topic("copy")
    frame = stage.spark.range(200_000).selectExpr(
        "cast(id as string) as value", "cast(null as array<struct<key: string, value: binary>>) as headers"
    )
    frame.write.format("barnabas").mode("append").options(**stage.options({"topic": target})).save()
    assert stage.read(subscribe=target).count() == 200_000
    assert stage.spark.conf.get("spark.sql.execution.arrow.maxBytesPerBatch") == "2147483647"


def test_a_failed_batch_leaves_nothing_that_readers_see(stage: Any) -> None:
    target = stage.topic("copy")
    frame = stage.spark.range(0, 1000, 1, 4).selectExpr(
        "if(id = 999, raise_error('broken'), cast(id as string)) as value"
    )
    with pytest.raises(PySparkException, match="broken"):
        frame.write.format("barnabas").mode("append").options(**stage.options({"topic": target})).save()
    assert stage.values(target) == []


def test_a_batch_that_comes_again_is_written_once(stage: Any) -> None:
    source, target = stage.topic("orders", 3), stage.topic("copy", 3)
    stage.send(source, range(50), keys=range(50))
    frame = stage.stream(subscribe=source, startingOffsets="earliest")
    stage.run(frame, target)
    forget_last_commit(stage.directory / "checkpoint")
    stage.send(source, range(50, 60), keys=range(50, 60))
    stage.run(frame, target)
    assert sorted(map(int, stage.values(target))) == list(range(60))


def test_at_least_once_writes_it_twice(stage: Any) -> None:
    """So the test above would notice."""
    source, target = stage.topic("orders"), stage.topic("copy")
    stage.send(source, range(5))
    frame = stage.stream(subscribe=source, startingOffsets="earliest")
    stage.run(frame, target, deliveryGuarantee="at_least_once")
    forget_last_commit(stage.directory / "checkpoint")
    stage.run(frame, target, deliveryGuarantee="at_least_once")
    assert sorted(map(int, stage.values(target))) == sorted([*range(5), *range(5)])


def test_a_batch_that_comes_again_cut_differently_stops_the_query(stage: Any) -> None:
    source, target = stage.topic("orders", 2), stage.topic("copy")
    stage.send(source, range(50), keys=range(50))
    frame = stage.stream(subscribe=source, startingOffsets="earliest")
    stage.run(frame, target)
    forget_last_commit(stage.directory / "checkpoint")
    with pytest.raises(StreamingQueryException, match="has changed between"):
        stage.run(stage.stream(subscribe=source, startingOffsets="earliest", minPartitions=5), target)
    stage.run(frame, target)
    assert sorted(map(int, stage.values(target))) == list(range(50))


def test_a_checkpoint_older_than_the_output_stops_the_query(stage: Any) -> None:
    source, target = stage.topic("orders"), stage.topic("copy")
    frame = stage.stream(subscribe=source, startingOffsets="earliest")
    stage.send(source, range(5))
    stage.run(frame, target)
    old = stage.directory / "old"
    shutil.copytree(stage.directory / "checkpoint", old)
    for value in (5, 6):
        stage.send(source, [value])
        stage.run(frame, target)
    stage.send(source, [7])
    with pytest.raises(StreamingQueryException, match="older than what was written"):
        stage.run(frame, target, checkpoint="old")


def test_update_mode_through_foreach_batch_is_exactly_once(stage: Any) -> None:
    source, target = stage.topic("orders", 2), stage.topic("counts")
    stage.send(source, ["a", "b", "a"])
    counts = stage.stream(subscribe=source, startingOffsets="earliest").groupBy("value").count()
    write = barnabas.spark.each_batch(
        stage.options({"topic": target}),
        prepare=lambda batch: batch.selectExpr("value as key", "concat(cast(value as string), '=', count) as value"),
    )
    stage.finish(counts.writeStream.outputMode("update").foreachBatch(write))
    forget_last_commit(stage.directory / "checkpoint")
    stage.send(source, ["b"])
    stage.finish(counts.writeStream.outputMode("update").foreachBatch(write))
    assert stage.values(target) == ["a=2", "b=1", "b=2"]


def test_wrong_columns_and_options_are_sentences(stage: Any) -> None:
    frame = stage.spark.range(3)
    with pytest.raises(PySparkException, match="the column value is missing"):
        frame.write.format("barnabas").mode("append").options(**stage.options({"topic": "x"})).save()
    values = frame.selectExpr("cast(id as string) as value")
    with pytest.raises(PySparkException, match="say the option topic, or have a column topic"):
        values.write.format("barnabas").mode("append").options(**stage.options({})).save()
    with pytest.raises(PySparkException, match="a log is only added to"):
        values.write.format("barnabas").mode("overwrite").options(**stage.options({"topic": "x"})).save()
