"""What the driver's part of a source answers, call by call, as Spark would call it; no Spark runs here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.spark.connector.source_options import SourceOptions
from barnabas.spark.connector.stream_reader import StreamReader
from barnabas.spark.errors import DataLost, InvalidOption
from barnabas.testing import BrokerProcess

ALL = ReadAllAvailable()


class Place:
    """One topic, and readers that restart as often as a test wants."""

    def __init__(self, servers: str, topic: str) -> None:
        self.servers = servers
        self.topic = topic
        self.make()

    def admin(self) -> blocking.Admin:
        return blocking.Admin(Settings.of({"bootstrap.servers": self.servers}))

    def make(self, partitions: int = 1) -> None:
        with self.admin() as admin:
            admin.create_topic(NewTopic(self.topic, partitions))

    def send(self, count: int, partition: int = 0) -> None:
        with blocking.Producer(ProducerSettings.of({"bootstrap.servers": self.servers})) as producer:
            for _ in range(count):
                producer.send(self.topic, b"x", partition=partition)

    def reader(self, **options: str) -> StreamReader:
        told = {"kafka.bootstrap.servers": self.servers, "subscribe": self.topic} | options
        return StreamReader(SourceOptions.of(told, is_streaming=True))

    def offsets(self, *offsets: int) -> dict[str, Any]:
        return {self.topic: {str(index): offset for index, offset in enumerate(offsets)}}

    def groups(self) -> list[str]:
        with self.admin() as admin:
            return [each.group_id for each in admin.list_groups()]


@pytest.fixture
def place(shared_broker: BrokerProcess, tmp_path: Path) -> Place:
    return Place(shared_broker.bootstrap_servers, f"t-{tmp_path.name}"[:100])


def ranges(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int, int]]:
    return [(each.partition, each.start, each.end) for each in reader.partitions(start, end)]  # type: ignore[attr-defined]


def test_a_query_that_waits_for_its_first_record_starts_again_where_it_began(place: Place) -> None:
    place.send(5)
    assert place.reader().initialOffset() == place.offsets(5)
    place.send(3)  # nobody is there
    assert place.reader().initialOffset() == place.offsets(5)


def test_a_first_batch_that_was_not_finished_begins_where_it_began(place: Place) -> None:
    place.send(5)
    first = place.reader()
    start = first.initialOffset()
    place.send(5)
    end = first.latestOffset(start, ALL)
    assert ranges(first, start, end) == [(0, 5, 10)]
    place.send(5)
    second = place.reader()  # Spark remembers the end alone
    fresh = second.initialOffset()
    assert ranges(second, fresh, end) == [(0, 5, 10)]
    assert second.latestOffset(end, ALL) == place.offsets(15)
    # Once it is done, a new query with the same options starts at the end, as it says.
    assert place.reader().initialOffset() == place.offsets(15)


def test_partitions_that_come_after_the_first_batch_was_decided_are_the_next_batch(place: Place) -> None:
    place.send(5)
    first = place.reader(startingOffsets="earliest")
    end = first.latestOffset(first.initialOffset(), ALL)
    with place.admin() as admin:
        admin.create_partitions({place.topic: 2})
    place.send(2, partition=1)
    second = place.reader(startingOffsets="earliest")
    assert ranges(second, second.initialOffset(), end) == [(0, 0, 5)]
    following = second.latestOffset(end, ALL)
    assert following == place.offsets(5, 2)
    assert ranges(second, end, following) == [(1, 0, 2)]


def test_a_topic_that_was_made_again_is_noticed_by_its_id(place: Place) -> None:
    place.send(5)
    first = place.reader(startingOffsets="earliest")
    start = first.initialOffset()
    end = first.latestOffset(start, ALL)
    first.partitions(start, end)
    assert first.latestOffset(end, ALL) == end  # it is done, and its ids are kept
    with place.admin() as admin:
        admin.delete_topic(place.topic)
    place.make()
    place.send(9)
    with pytest.raises(DataLost, match="deleted and made again"):
        place.reader(startingOffsets="earliest").latestOffset(end, ALL)
    lenient = place.reader(startingOffsets="earliest", failOnDataLoss="false")
    following = lenient.latestOffset(end, ALL)
    assert ranges(lenient, end, following) == [(0, 0, 9)]
    # A query that starts anew knows nothing of the old one.
    anew = place.reader(startingOffsets="earliest")
    assert ranges(anew, anew.initialOffset(), following) == [(0, 0, 9)]


def test_a_batch_waits_for_enough_but_not_for_ever(place: Place) -> None:
    patient = place.reader(startingOffsets="earliest", minOffsetsPerTrigger="10", maxTriggerDelay="1h")
    start = patient.initialOffset()
    place.send(5)
    limit = patient.getDefaultReadLimit()
    assert patient.latestOffset(start, limit) == start
    place.send(5)
    assert patient.latestOffset(start, limit) == place.offsets(10)
    hasty = place.reader(startingOffsets="earliest", minOffsetsPerTrigger="100", maxTriggerDelay="0ms")
    assert hasty.latestOffset(hasty.initialOffset(), hasty.getDefaultReadLimit()) == place.offsets(10)


def test_a_query_that_takes_what_there_is_takes_no_more(place: Place) -> None:
    place.send(5)
    reader = place.reader(startingOffsets="earliest", maxOffsetsPerTrigger="4")
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    place.send(5)
    limit = reader.getDefaultReadLimit()
    first = reader.latestOffset(start, limit)
    second = reader.latestOffset(first, limit)
    assert (first, second, reader.latestOffset(second, limit)) == (place.offsets(4), place.offsets(5), place.offsets(5))


def test_the_group_is_told_what_is_done(place: Place) -> None:
    place.send(5)
    reader = place.reader(startingOffsets="earliest", **{"kafka.group.id": f"g-{place.topic}"})
    end = reader.latestOffset(reader.initialOffset(), ALL)
    assert f"g-{place.topic}" not in place.groups()
    reader.latestOffset(end, ALL)
    with place.admin() as admin:
        (entry,) = admin.group_offsets(f"g-{place.topic}").values()
    assert entry.offset == 5
    assert reader.reportLatestOffset() == end


def test_a_checkpoint_of_another_topic_is_refused(place: Place) -> None:
    with pytest.raises(InvalidOption, match="the checkpoint is of a query that reads other"):
        place.reader().latestOffset({"other": {"0": 5}}, ALL)
