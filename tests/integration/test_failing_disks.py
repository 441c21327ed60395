"""One of two disks fails while a broker runs: what lies on the other goes on, and nobody waits for ever."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from memory_disk import disk_of
from talk import Talk, batch, creatable

from barnabas.model import errors
from barnabas.testing import Broker
from barnabas.transport.channel import PeerGone
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

HOME, SECOND = "/home", "/second"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(settings={"log.dirs": f"{HOME},{SECOND}"}) as running:
        yield running


@pytest.fixture
def talk(broker: Broker) -> Iterator[Talk]:
    with Talk(broker.bootstrap_servers) as connection:
        yield connection


def place_of(broker: Broker, topic: str, partition: int = 0) -> str:
    directory = broker.node.services.replicas.leader(topic, partition).log.directory
    return directory.rpartition("/")[0]


def is_alive(talk: Talk, name: str) -> None:
    """Topics can be made and written to."""
    talk.create(name)
    assert talk.produce(name, batch(b"alive")).error_code == 0
    assert [record.value for record in talk.read(name)] == [b"alive"]


def test_partitions_are_spread_over_the_directories(broker: Broker, talk: Talk) -> None:
    talk.create("t", 4)
    assert sorted(place_of(broker, "t", index) for index in range(4)) == [HOME, HOME, SECOND, SECOND]


def test_an_append_that_fails_takes_its_directory_away(broker: Broker, talk: Talk) -> None:
    talk.create("t", 2)
    lost, kept = sorted(range(2), key=lambda index: place_of(broker, "t", index) == HOME)
    assert talk.produce("t", batch(b"x"), partition=lost).error_code == 0
    disk_of(broker).fail_next_write(f"{SECOND}/")
    assert talk.produce("t", batch(b"y"), partition=lost).error_code == errors.KAFKA_STORAGE_ERROR.code
    assert talk.produce("t", batch(b"y"), partition=lost).error_code == errors.KAFKA_STORAGE_ERROR.code
    assert talk.fetch("t", partition=lost).error_code == errors.KAFKA_STORAGE_ERROR.code
    assert talk.produce("t", batch(b"z"), partition=kept).error_code == 0
    rows = {row.log_dir: row.error_code for row in talk.ask(DescribeLogDirsRequest(topics=None)).results}
    assert rows == {HOME: 0, SECOND: errors.KAFKA_STORAGE_ERROR.code}
    is_alive(talk, "after")


def test_a_read_that_fails_takes_its_directory_away(broker: Broker, talk: Talk) -> None:
    talk.create("t", 2)
    lost, kept = sorted(range(2), key=lambda index: place_of(broker, "t", index) == HOME)
    for index in (lost, kept):
        assert talk.produce("t", batch(b"x"), partition=index).error_code == 0
    disk_of(broker).fail_next_read(f"{SECOND}/t-{lost}/")
    assert talk.offset("t", 1_700_000_000_000, partition=lost).error_code == errors.KAFKA_STORAGE_ERROR.code
    assert list(broker.node.services.store.offline) == [SECOND]
    assert talk.fetch("t", partition=lost).error_code == errors.KAFKA_STORAGE_ERROR.code
    assert [record.value for record in talk.read("t", partition=kept)] == [b"x"]
    is_alive(talk, "after")


def test_a_read_that_fails_while_an_answer_is_sent_takes_its_directory_away(broker: Broker, talk: Talk) -> None:
    """The head of the answer is out when its records cannot be read: the connection ends, and the disk is given up."""
    talk.create("t", 2)
    lost, kept = sorted(range(2), key=lambda index: place_of(broker, "t", index) == HOME)
    for index in (lost, kept):
        assert talk.produce("t", batch(bytes(300_000)), partition=index).error_code == 0
    disk_of(broker).fail_next_read(f"{SECOND}/t-{lost}/")
    with pytest.raises(PeerGone):
        talk.fetch("t", partition=lost)
    with Talk(broker.bootstrap_servers) as again:
        assert list(broker.node.services.store.offline) == [SECOND]
        assert again.fetch("t", partition=lost).error_code == errors.KAFKA_STORAGE_ERROR.code
        assert len(again.read("t", partition=kept)) == 1
        is_alive(again, "after")


@pytest.mark.parametrize("writes_before", range(6))
def test_a_topic_made_while_a_disk_fails(broker: Broker, talk: Talk, writes_before: int) -> None:
    """Whichever write of the new partitions fails, the cluster goes on and the answer comes."""
    disk = disk_of(broker)
    failing = ["", "t-0/", "t-1/", "t-1/leader-epoch", "t-0/leader-epoch", "t-1/partition.metadata"][writes_before]
    disk.fail_next_write(f"{SECOND}/{failing}")
    talk.create("t", 2)
    is_alive(talk, "after")


def test_settings_changed_after_a_disk_failed(broker: Broker, talk: Talk) -> None:
    talk.create("t", 2)
    disk_of(broker).fail_next_write(f"{SECOND}/")
    for index in range(2):
        talk.produce("t", batch(b"x"), partition=index)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=2,
        resource_name="t",
        configs=[IncrementalAlterConfigsRequest.AlterableConfig(name="retention.ms", value="1000")],
    )
    assert talk.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses[0].error_code == 0
    broker.clock.advance("1h")
    is_alive(talk, "after")


def test_a_flush_that_fails_is_not_tried_again(broker: Broker, talk: Talk) -> None:
    talk.create("t", 2, flush_messages="1")
    lost, kept = sorted(range(2), key=lambda index: place_of(broker, "t", index) == HOME)
    disk_of(broker).fail_next_sync(f"{SECOND}/")
    row = talk.produce("t", batch(b"x"), partition=lost)
    assert row.error_code in (errors.KAFKA_STORAGE_ERROR.code, errors.NOT_LEADER_OR_FOLLOWER.code)
    assert talk.produce("t", batch(b"x"), partition=kept).error_code == 0
    is_alive(talk, "after")


def test_the_metadata_log_fails_and_the_node_says_so(broker: Broker, talk: Talk) -> None:
    disk_of(broker).fail_next_sync(f"{HOME}/__cluster_metadata-0")
    topics = CreateTopicsRequest(topics=[creatable("t")], timeout_ms=500)
    (row,) = talk.ask(topics).topics
    assert row.error_code == errors.REQUEST_TIMED_OUT.code  # there is no controller any more
    assert broker.node.failed.is_set()
