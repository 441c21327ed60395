"""Reading topics with Spark: what is read, how much at once, and what a query's group knows of it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import StreamingQueryException

from barnabas import ProducerSettings, blocking


def texts(frame: Any) -> list[str]:
    return sorted(row.value.decode() for row in frame.select("value").collect())


def test_a_batch_reads_everything_with_the_columns_of_the_kafka_source(stage: Any) -> None:
    topic = stage.topic("orders", 3)
    stage.send(topic, range(100), keys=range(100))
    frame = stage.read(subscribe=topic)
    assert frame.dtypes == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
    ]
    rows = frame.collect()
    assert sorted(int(row.value) for row in rows) == list(range(100))
    assert all(row.key == row.value and row.topic == topic for row in rows)
    assert {row.partition for row in rows} == {0, 1, 2}


def test_a_batch_has_a_start_and_an_end(stage: Any) -> None:
    topic = stage.topic("orders")
    stage.send(topic, range(20))
    start, end = json.dumps({topic: {"0": 5}}), json.dumps({topic: {"0": 8}})
    assert texts(stage.read(subscribe=topic, startingOffsets=start, endingOffsets=end)) == ["5", "6", "7"]
    assert len(texts(stage.read(assign=json.dumps({topic: [0]}), endingOffsets=json.dumps({topic: {"0": -1}})))) == 20
    later = str(int(time.time() * 1000) + 3_600_000)
    assert stage.read(subscribe=topic, startingTimestamp="0", endingTimestamp=later).count() == 20
    with pytest.raises(PySparkException, match=r"no record of .* is as new as"):
        stage.read(subscribe=topic, startingTimestamp=later).count()
    lenient = {"startingOffsetsByTimestampStrategy": "latest"}
    assert stage.read(subscribe=topic, startingTimestamp=later, **lenient).count() == 0


def test_tasks_are_cut_as_asked(stage: Any) -> None:
    topic = stage.topic("orders", 2)
    stage.send(topic, range(100), keys=range(100))
    assert stage.read(subscribe=topic, minPartitions=6).rdd.getNumPartitions() == 6
    cut = stage.read(subscribe=topic, maxRecordsPerPartition=10)
    assert cut.rdd.getNumPartitions() >= 10
    assert len(set(texts(cut))) == 100


def test_headers_come_when_asked_for(stage: Any) -> None:
    topic = stage.topic("orders")
    with blocking.Producer(ProducerSettings.of({"bootstrap.servers": stage.servers})) as producer:
        producer.send(topic, b"with", headers={"trace": b"1", "empty": None})
        producer.send(topic, b"without")
    rows = stage.read(subscribe=topic, includeHeaders="true").orderBy("offset").collect()
    assert [(header.key, header.value) for header in rows[0].headers] == [("trace", b"1"), ("empty", None)]
    assert rows[1].headers is None


def test_conditions_are_taken_over_where_spark_allows_it(stage: Any) -> None:
    topic = stage.topic("orders", 2)
    stage.send(topic, range(100), keys=range(100))
    frame = stage.read(subscribe=topic, pushFilters="true")
    expected = [row for row in stage.read(subscribe=topic).collect() if row.partition == 1 and 5 <= row.offset < 9]
    narrow = frame.where("partition = 1 and offset >= 5 and offset < 9")
    assert narrow.rdd.getNumPartitions() == 1
    assert {row.value for row in narrow.collect()} == {row.value for row in expected}
    assert frame.where("timestamp > '2100-01-01'").count() == 0
    assert frame.where("timestamp > '2020-01-01'").count() == 100


def test_a_stream_reads_in_limited_batches_and_its_group_follows(stage: Any) -> None:
    source, target = stage.topic("orders", 3), stage.topic("copy", 3)
    stage.send(source, range(90), keys=range(90))
    options = {"subscribe": source, "startingOffsets": "earliest", "kafka.group.id": f"g-{source}"}
    query = stage.run(stage.stream(maxOffsetsPerTrigger=30, **options), target)
    batches = [each for each in stage.progress(query) if each["numInputRows"]]
    assert len(batches) >= 3
    assert max(each["numInputRows"] for each in batches) <= 33
    assert batches[0]["sources"][0]["endOffset"].keys() == {source}
    assert sorted(map(int, stage.values(target))) == list(range(90))
    stage.send(source, range(90, 100))
    stage.run(stage.stream(**options), target)
    assert sorted(map(int, stage.values(target))) == list(range(100))
    # The group knows what was done when the last run began; the next look tells the rest.
    assert sum(stage.committed(f"g-{source}").values()) >= 90


def test_new_partitions_are_found_and_read_from_their_beginning(stage: Any) -> None:
    source, target = stage.topic("orders"), stage.topic("copy")
    stage.send(source, range(10))
    frame = stage.stream(subscribe=source, startingOffsets="earliest")
    stage.run(frame, target)
    with stage.admin() as admin:
        admin.create_partitions({source: 3})
    with blocking.Producer(ProducerSettings.of({"bootstrap.servers": stage.servers})) as producer:
        for value in range(10, 20):
            producer.send(source, str(value).encode(), partition=value % 3)
    stage.run(frame, target)
    assert sorted(map(int, stage.values(target))) == list(range(20))


def test_a_pattern_finds_new_topics(stage: Any) -> None:
    first = stage.topic("one")
    target = stage.topic("copy")
    stage.send(first, ["a"])
    frame = stage.stream(subscribePattern=f"(one|two)-{first[4:]}", startingOffsets="earliest")
    stage.run(frame, target)
    stage.send(stage.topic("two"), ["b"])
    stage.run(frame, target)
    assert stage.values(target) == ["a", "b"]


def test_the_start_of_the_first_batch_survives_its_failure(stage: Any) -> None:
    """Spark would ask for "latest" again, and what came between would be lost."""
    source, target = stage.topic("orders"), stage.topic("copy")
    stage.send(source, range(10))
    frame = stage.stream(subscribe=source, startingOffsets="latest")
    stage.run(frame, target)  # nothing to do, but the query has started here
    stage.send(source, range(10, 20))
    broken = frame.selectExpr("key", "raise_error('broken') as value")
    with pytest.raises(StreamingQueryException, match="broken"):
        stage.run(broken, target)
    stage.send(source, range(20, 30))
    stage.run(frame, target)
    stage.run(frame, target)
    assert sorted(map(int, stage.values(target))) == list(range(10, 30))


def test_records_lost_to_retention_stop_a_query_or_are_left_out(stage: Any) -> None:
    source, target = stage.topic("orders"), stage.topic("copy")
    stage.send(source, range(10))
    options = {"subscribe": source, "startingOffsets": "earliest"}
    stage.run(stage.stream(**options), target)
    stage.send(source, range(10, 30))
    from barnabas import TopicPartition

    with stage.admin() as admin:
        admin.delete_records({TopicPartition(source, 0): 20})
    with pytest.raises(StreamingQueryException, match="failOnDataLoss"):
        stage.run(stage.stream(**options), target)
    stage.run(stage.stream(failOnDataLoss="false", **options), target)
    assert sorted(map(int, stage.values(target))) == [*range(10), *range(20, 30)]


def test_a_topic_that_was_made_again_stops_a_query_or_is_read_from_its_beginning(stage: Any) -> None:
    source, target = stage.topic("orders"), stage.topic("copy")
    stage.send(source, range(10))
    options = {"subscribe": source, "startingOffsets": "earliest"}
    stage.run(stage.stream(**options), target)
    stage.run(stage.stream(**options), target)  # so that its group knows which topic it was
    with stage.admin() as admin:
        admin.delete_topic(source)
    stage.topic("orders")
    stage.send(source, range(100, 120))  # more than before: the offsets alone would look right
    with pytest.raises(StreamingQueryException, match="deleted and made again"):
        stage.run(stage.stream(**options), target)
    stage.run(stage.stream(failOnDataLoss="false", **options), target)
    assert sorted(map(int, stage.values(target))) == [*range(10), *range(100, 120)]


def test_a_checkpoint_of_another_topic_is_refused(stage: Any) -> None:
    source, other, target = stage.topic("orders"), stage.topic("other"), stage.topic("copy")
    stage.send(source, ["a"])
    stage.send(other, ["b"])
    stage.run(stage.stream(subscribe=source, startingOffsets="earliest"), target)
    with pytest.raises(StreamingQueryException, match="the checkpoint is of a query that reads orders"):
        stage.run(stage.stream(subscribe=other, startingOffsets="earliest"), target)


def test_a_missing_topic_and_wrong_options_are_sentences(stage: Any) -> None:
    with pytest.raises(PySparkException, match="There is no topic 'nowhere'"):
        stage.read(subscribe="nowhere").count()
    with pytest.raises(PySparkException, match="subscribe and subscribePattern"):
        stage.read().count()
    with pytest.raises(PySparkException, match="a batch would be empty"):
        stage.read(subscribe="orders", startingOffsets="latest").count()
    with pytest.raises(PySparkException, match="takes no schema"):
        stage.spark.read.format("barnabas").schema("a int").options(**stage.options({"subscribe": "x"})).load().count()
