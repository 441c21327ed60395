"""Pipelines: from a file to records, and what becomes of records that cannot be decoded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors.exceptions.captured import StreamingQueryException

from barnabas import blocking
from barnabas.spark.pipelines.pipeline import Files, Pipeline, Topic
from barnabas.spark.pipelines.pipeline_file import load
from barnabas.spark.pipelines.runner import Run, reason_of, start

SCHEMA = "id long, total double"
GOOD = ['{"id": 1, "total": 10.5}', '{"id": 2, "total": 250}']
BROKEN = ["no JSON at all", '{"id": "x", "total": 1}']


def run(pipeline: Pipeline, stage: Any) -> Run:
    """Everything that is there, then the end."""
    running = start(pipeline, stage.spark, servers=stage.servers, checkpoints=stage.directory, once=True)
    try:
        for query in running.queries:
            assert query.awaitTermination(120)
    finally:
        running.stop(grace_seconds=0)
    return running


def copying(source: Topic, target: Topic | Files) -> Pipeline:
    return Pipeline(name="copy", reads={"orders": source}, writes=target, transform=lambda orders: orders.select("id"))


def test_a_pipeline_of_a_yaml_file_reads_selects_and_writes(stage: Any) -> None:
    source, target = stage.topic("orders"), stage.topic("large")
    stage.send(source, GOOD)
    path = Path(stage.directory) / "large.yaml"
    path.write_text(
        f"sources: {{orders: {{topic: {source}, schema: '{SCHEMA}'}}}}\n"
        f"sql: select id, total from orders where total > 100\nsink: {{topic: {target}, key: id}}\n"
    )
    (pipeline,) = load(path)
    running = run(pipeline, stage)
    assert [json.loads(value) for value in stage.values(target)] == [{"id": 2, "total": 250.0}]
    assert running.state().batch_id == 0
    assert running.failure() is None
    run(pipeline, stage)  # from its checkpoint: nothing twice
    assert len(stage.values(target)) == 1
    assert stage.committed("large")[f"{source}-0"] == 2


def test_broken_records_go_to_dead_letters_with_where_and_why(stage: Any) -> None:
    source, target = stage.topic("orders"), stage.topic("copy")
    letters = stage.topic("letters")
    stage.send(source, [GOOD[0], BROKEN[0], GOOD[1], BROKEN[1]])
    orders = Topic(name=source, schema=SCHEMA, on_bad_record="dead_letter", dead_letters=letters)
    run(
        Pipeline(name="copy", reads={"orders": orders}, writes=Topic(name=target), transform=lambda orders: orders),
        stage,
    )
    assert len(stage.values(target)) == 2
    assert stage.values(letters) == sorted(BROKEN)
    table = blocking.read(letters, bootstrap_servers=stage.servers, isolation_level="read_committed", with_headers=True)
    facts = {header["key"]: header["value"] for header in table.column("headers").to_pylist()[0]}
    assert facts["barnabas.topic"].decode() == source
    assert facts["barnabas.offset"] == b"1"
    assert b"not JSON of id long, total double" in facts["barnabas.reason"]


def test_a_broken_record_stops_the_pipeline_and_says_which(stage: Any) -> None:
    source, target = stage.topic("orders"), stage.topic("copy")
    stage.send(source, [GOOD[0], BROKEN[1]])
    orders = Topic(name=source, schema=SCHEMA)
    pipeline = Pipeline(
        name="copy", reads={"orders": orders}, writes=Topic(name=target), transform=lambda orders: orders
    )
    with pytest.raises(StreamingQueryException) as failure:
        run(pipeline, stage)
    sentence = reason_of(str(failure.value))
    assert f"a record cannot be decoded: topic {source}, partition 0, offset 1" in sentence
    assert "on_bad_record=dead_letter" in sentence
    assert stage.values(target) == []


def test_update_mode_and_files(stage: Any) -> None:
    source, target = stage.topic("orders"), stage.topic("counts")
    stage.send(source, [GOOD[0], GOOD[0], GOOD[1]])
    orders = Topic(name=source, schema=SCHEMA)
    counts = Pipeline(
        name="counts",
        reads={"orders": orders},
        writes=Topic(name=target, key="id"),
        transform=lambda orders: orders.groupBy("id").count(),
        mode="update",
    )
    run(counts, stage)
    assert [json.loads(value) for value in stage.values(target)] == [{"id": 1, "count": 2}, {"id": 2, "count": 1}]
    files = Files(path=str(stage.directory / "out"), format="json")
    run(
        Pipeline(name="files", reads={"orders": orders}, writes=files, transform=lambda orders: orders.select("id")),
        stage,
    )
    assert sorted(row.id for row in stage.spark.read.json(files.path).collect()) == [1, 1, 2]
