"""Replicas move between the directories of a running broker: nothing is lost, and every client sees it happen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from counting import PARTITIONS, TOPIC, Load, judge
from memory_disk import disk_of
from talk import Talk, batch

from barnabas import Admin, Settings
from barnabas.model import errors
from barnabas.model.ids import ZERO_UUID, TopicPartition
from barnabas.testing import Broker, BrokerProcess
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

HOME, SECOND = "/home", "/second"
SECONDS_MAX = 30.0
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(settings={"log.dirs": f"{HOME},{SECOND}"}) as running:
        yield running


@pytest.fixture
def talk(broker: Broker) -> Iterator[Talk]:
    with Talk(broker.bootstrap_servers) as connection:
        yield connection


def wait_until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not is_done():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.01)


def move(talk: Talk, path: str, topic: str = "t", partition: int = 0) -> int:
    named = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=topic, partitions=[partition])
    wanted = AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=path, topics=[named])
    (result,) = talk.ask(AlterReplicaLogDirsRequest(dirs=[wanted])).results
    (row,) = result.partitions
    assert (result.topic_name, row.partition_index) == (topic, partition)
    code: int = row.error_code
    return code


def places(talk: Talk, topic: str = "t") -> list[tuple[str, bool, int]]:
    """Where the replicas of a topic lie, which of them are copies, and how far those are behind."""
    return [
        (result.log_dir, row.is_future_key, row.offset_lag)
        for result in talk.ask(DescribeLogDirsRequest(topics=None)).results
        for found in result.topics
        if found.name == topic
        for row in found.partitions
    ]


def limit(talk: Talk, rate: str) -> None:
    change = IncrementalAlterConfigsRequest.AlterableConfig(name=RATE, config_operation=0, value=rate)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=4, resource_name="1", configs=[change])
    assert talk.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses[0].error_code == 0


def other(path: str) -> str:
    return SECOND if path == HOME else HOME


def fill(talk: Talk, topic: str, count: int, size_bytes: int = 10) -> list[bytes]:
    values = [b"%d:" % number + b"x" * size_bytes for number in range(count)]
    for value in values:
        assert talk.produce(topic, batch(value)).error_code == 0
    return values


def read(talk: Talk, topic: str = "t") -> list[bytes | None]:
    values: list[bytes | None] = []
    while records := talk.read(topic, len(values)):
        values += [record.value for record in records]
    return values


def test_a_replica_moves_with_all_it_has(broker: Broker, talk: Talk) -> None:
    talk.create("t", **{"segment.bytes": str(1 << 20)})
    values = fill(talk, "t", 30, 100_000)
    ((before, _, _),) = places(talk)
    assert move(talk, other(before)) == 0
    wait_until(lambda: places(talk) == [(other(before), False, 0)])
    assert read(talk) == values
    assert talk.produce("t", batch(b"after")).error_code == 0
    assert read(talk) == [*values, b"after"]
    disk = disk_of(broker)
    assert not any(name.endswith("-future") for home in (HOME, SECOND) for name in disk.list(home))
    wait_until(lambda: "t-0" not in disk.list(before))
    partition = broker.node.services.replicas.leader("t", 0)
    store = broker.node.services.store
    # The controller knows it, too.
    wait_until(
        lambda: (
            broker.node.services.image.topics.by_name["t"].partitions[0].directory_of(1)
            == store.directory_ids[other(before)]
        )
    )
    assert partition.log.directory == f"{other(before)}/t-0"
    assert move(talk, before) == 0
    wait_until(lambda: places(talk) == [(before, False, 0)])
    assert read(talk) == [*values, b"after"]


def test_a_copy_is_shown_and_may_be_given_up(broker: Broker, talk: Talk) -> None:
    talk.create("t")
    fill(talk, "t", 20, 100_000)
    ((before, _, _),) = places(talk)
    limit(talk, "1")
    assert move(talk, other(before)) == 0
    (copy,) = [row for row in places(talk) if row[1]]
    assert copy[0] == other(before)
    assert copy[2] > 0
    assert (before, False, 0) in places(talk)
    assert move(talk, other(before)) == 0, "it is under way already"
    assert move(talk, before) == 0
    assert places(talk) == [(before, False, 0)]
    wait_until(lambda: not any("future" in name or "delete" in name for name in disk_of(broker).list(other(before))))
    limit(talk, str(2**63 - 1))
    assert move(talk, other(before)) == 0
    wait_until(lambda: places(talk) == [(other(before), False, 0)])


def test_records_are_copied_as_slowly_as_the_setting_says(talk: Talk) -> None:
    talk.create("t")
    fill(talk, "t", 20, 100_000)
    ((before, _, _),) = places(talk)
    limit(talk, "1")
    assert move(talk, other(before)) == 0
    time.sleep(0.3)
    assert [row for row in places(talk) if row[1]], "2 MB are not copied at a byte a second"
    limit(talk, str(2**63 - 1))
    wait_until(lambda: places(talk) == [(other(before), False, 0)])


def test_what_cannot_be_done_is_refused(broker: Broker, talk: Talk) -> None:
    talk.create("t", 2)
    assert move(talk, "/nowhere") == errors.LOG_DIR_NOT_FOUND.code
    assert move(talk, SECOND, "later") == errors.REPLICA_NOT_AVAILABLE.code
    assert move(talk, SECOND, "t", 7) == errors.REPLICA_NOT_AVAILABLE.code
    talk.create("later")
    assert places(talk, "later") == [(SECOND, False, 0)], "it was made where it was wanted"
    assert move(talk, HOME, "l" * 249) == errors.INVALID_TOPIC_EXCEPTION.code
    directories = {
        key.partition: log.directory for key, log in broker.node.services.store.logs.items() if key[0] == "t"
    }
    (lost,) = [index for index, directory in directories.items() if directory.startswith(SECOND)]
    disk_of(broker).fail_next_write(f"{SECOND}/")
    assert talk.produce("t", batch(b"x"), partition=lost).error_code == errors.KAFKA_STORAGE_ERROR.code
    assert move(talk, SECOND, "t", 1 - lost) == errors.KAFKA_STORAGE_ERROR.code
    assert move(talk, HOME, "t", lost) == errors.KAFKA_STORAGE_ERROR.code


def test_a_topic_that_is_deleted_takes_its_copy_with_it(broker: Broker, talk: Talk) -> None:
    talk.create("t")
    fill(talk, "t", 20, 100_000)
    ((before, _, _),) = places(talk)
    limit(talk, "1")
    assert move(talk, other(before)) == 0
    named = DeleteTopicsRequest.DeleteTopicState(name="t", topic_id=ZERO_UUID)
    talk.ask(DeleteTopicsRequest(topics=[named], timeout_ms=1000))
    wait_until(lambda: places(talk) == [])
    wait_until(lambda: not any(name.endswith("-future") for name in disk_of(broker).list(other(before))))
    assert broker.node.services.store.futures.all() == []


def test_a_move_goes_on_after_a_restart(tmp_path: Path) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    settings = {"log.dirs": f"{first},{second}"}
    with Broker(data_dir=first, settings=settings) as broker, Talk(broker.bootstrap_servers) as talk:
        talk.create("t")
        values = fill(talk, "t", 20, 100_000)
        ((before, _, _),) = places(talk)
        limit(talk, "1")
        target = second if before == first else first
        assert move(talk, target) == 0
        wait_until(lambda: any(row[1] and row[2] < len(values) for row in places(talk)))
    with Broker(data_dir=first, settings=settings) as broker, Talk(broker.bootstrap_servers) as talk:
        assert (before, False, 0) in places(talk)
        limit(talk, str(2**63 - 1))
        wait_until(lambda: places(talk) == [(target, False, 0)])
        assert read(talk) == values


def test_the_admin_client_moves_replicas(broker: Broker, talk: Talk) -> None:
    async def story() -> None:
        async with Admin(Settings(bootstrap_servers=(broker.bootstrap_servers,))) as admin:
            here, gone = TopicPartition("t", 0), TopicPartition("gone", 0)
            answers = await admin.alter_replica_log_dirs(1, {here: other(before), gone: HOME})
            assert answers[here] is None
            error = answers[gone]
            assert error is not None
            assert error.error is errors.REPLICA_NOT_AVAILABLE

    talk.create("t")
    values = fill(talk, "t", 10)
    ((before, _, _),) = places(talk)
    asyncio.run(story())
    wait_until(lambda: places(talk) == [(other(before), False, 0)])
    assert read(talk) == values


def test_what_was_acknowledged_survives_kills_while_replicas_move(tmp_path: Path) -> None:
    """Killed at any moment of a copy, a broker goes on with it, and no record is lost, doubled or out of order."""
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    broker = BrokerProcess(
        tmp_path / "data", settings={"log.dirs": f"{first},{second}", "log.segment.bytes": str(1024 * 1024)}
    )
    broker.start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(SECONDS_MAX)
        load = Load(broker.bootstrap_servers)
        load.start()
        for turn in range(6):
            load.wait_for_progress()
            with Talk(broker.bootstrap_servers) as talk:
                for index in range(PARTITIONS):
                    assert move(talk, (first, second)[(turn + index) % 2], TOPIC, index) == 0
            if turn % 2:
                time.sleep(0.02 * turn)
                broker.kill()
                broker.start()
        load.wait_for_progress()
        load.stop()
        judge(load, broker.bootstrap_servers)
        with Talk(broker.bootstrap_servers) as talk:
            wait_until(lambda: not any(is_copy for _, is_copy, _ in places(talk, TOPIC)))
            assert len(places(talk, TOPIC)) == PARTITIONS
    finally:
        broker.stop()
