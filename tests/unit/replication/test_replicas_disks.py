"""Replicas and their disks: logs that nobody owns, disks that are full and have room again."""

from __future__ import annotations

import pytest
from trio import TOPIC, TOPIC_ID, Trio

from barnabas.model.ids import TopicPartition, Uuid
from barnabas.storage.identity import PARTITION_METADATA_FILE, read_partition_metadata
from barnabas.testing.loop import simulate

LOG = f"/data/{TOPIC}-0"
CAPACITY = 4 * 1024 * 1024


def test_a_log_that_lost_its_identity_is_kept_and_not_served() -> None:
    async def main() -> None:
        async with Trio(brokers=1, min_insync_replicas=1) as trio:
            broker = trio.brokers[1]
            trio.append(trio.leader(), b"of whom?")
            await broker.stop()
            broker.disk.remove(f"{LOG}/{PARTITION_METADATA_FILE}")
            await broker.start()
            assert broker.partition.log.end_offset == 0
            assert broker.partition.log.topic_id == TOPIC_ID
            assert read_partition_metadata(broker.disk, LOG) == TOPIC_ID
            (kept,) = [name for name in broker.disk.list("/data") if name.endswith("-stray")]
            assert any(name.endswith(".log") for name in broker.disk.list(f"/data/{kept}"))
            await broker.stop()
            await broker.start()
            assert kept in broker.disk.list("/data"), "only people remove it"

    simulate(main)


def test_an_empty_log_without_identity_leaves_nothing_behind() -> None:
    async def main() -> None:
        async with Trio(brokers=1) as trio:
            broker = trio.brokers[1]
            await broker.stop()
            broker.disk.remove(f"{LOG}/{PARTITION_METADATA_FILE}")
            await broker.start()
            assert not [name for name in broker.disk.list("/data") if name.endswith("-stray")]
            assert broker.partition.log.topic_id == TOPIC_ID

    simulate(main)


def test_a_log_of_an_earlier_topic_of_that_name_is_removed() -> None:
    async def main() -> None:
        async with Trio(brokers=1) as trio:
            broker = trio.brokers[1]
            await broker.store.delete(TopicPartition(TOPIC, 0))
            await broker.store.create(TopicPartition(TOPIC, 0), Uuid(b"an earlier topic"))
            await broker.stop()
            await broker.start()
            assert broker.partition.log.topic_id == TOPIC_ID

    simulate(main)


def test_whose_a_log_is_survives_a_power_cut_after_the_next_checkpoint() -> None:
    async def main() -> None:
        async with Trio(brokers=1, min_insync_replicas=1) as trio:
            broker = trio.brokers[1]
            trio.append(trio.leader(), b"mine")
            await broker.store.checkpoint()
            for _ in range(20):
                await broker.stop(loses_power=True)
                assert read_partition_metadata(broker.disk, LOG) == TOPIC_ID
                await broker.start()

    simulate(main)


def test_a_replica_that_found_no_room_is_made_when_there_is_some() -> None:
    async def main() -> None:
        async with Trio(brokers=3) as trio:
            broker = trio.brokers[1]
            broker.disk.capacity_bytes = broker.disk.used_bytes()
            trio.add_partition(1, leader=1)
            await trio.settled(100)
            assert (TOPIC_ID, 1) not in broker.replicas.by_id
            broker.replicas.retry()
            await trio.settled(100)
            assert (TOPIC_ID, 1) not in broker.replicas.by_id
            broker.disk.capacity_bytes = CAPACITY
            broker.replicas.retry()
            await trio.settled(100)
            assert broker.replicas.leader(TOPIC, 1).log.topic_id == TOPIC_ID
            broker.replicas.retry()

    simulate(main)


@pytest.mark.parametrize("flush_messages", [1, 1 << 62])
def test_a_follower_whose_disk_was_full_catches_up_by_itself(flush_messages: int) -> None:
    async def main() -> None:
        async with Trio(flush_messages=flush_messages) as trio:
            follower = trio.brokers[3]
            await trio.settled(100)
            follower.disk.capacity_bytes = follower.disk.used_bytes() + 2000
            for _ in range(20):
                trio.append(trio.leader(), bytes(400))
                await trio.settled(200)
            assert follower.partition.log.end_offset < 20
            assert follower.disk.free_bytes("/data") > 0, "the reserve is left alone"
            await trio.settled(60_000)
            assert trio.isr == [1, 2]
            follower.disk.capacity_bytes = CAPACITY
            await trio.settled(5_000)
            assert follower.partition.log.end_offset == 20
            assert trio.isr == [1, 2, 3]

    simulate(main)


def test_room_on_the_disk_is_taken_once_for_the_records_of_a_follower(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with Trio() as trio:
            await trio.settled(100)
            room = trio.brokers[3].partition.log.room
            assert room is not None
            taken: list[int] = []
            monkeypatch.setattr(type(room), "take", lambda self, size: taken.append(size) if self is room else None)
            before = trio.brokers[3].partition.log.size_bytes
            trio.append(trio.leader(), bytes(400))
            await trio.settled(1000)
            assert taken == [trio.brokers[3].partition.log.size_bytes - before]

    simulate(main)
