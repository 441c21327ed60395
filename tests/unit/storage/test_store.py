"""All logs of a broker: found again, checkpointed, deleted, and lost with their disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.model.ids import TopicPartition, Uuid
from barnabas.storage.identity import WrongDirectory, read_meta_properties
from barnabas.storage.settings import TopicSettings
from barnabas.storage.store import LogStore
from barnabas.storage.validate import Rules, validate
from barnabas.wire.records import decode_all, encode_batch
from barnabas.world.adjustable import AdjustableClock
from barnabas.world.disk import AlreadyLocked, DiskFailure
from barnabas.world.timers import Timers
from barnabas.world.world import World

if TYPE_CHECKING:
    from .conftest import Machine

TOPIC_ID = Uuid(bytes(range(16)))
ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("pay-ments", 12)
SETTINGS = TopicSettings(segment_bytes=600, index_interval_bytes=100, retention_ms=1000, file_delete_delay_ms=5000)


class Broker:
    """A store that is opened and closed as a broker does."""

    def __init__(self, machine: Machine, *directories: str) -> None:
        self.disk = machine.disk
        self.clock = AdjustableClock(machine.clock)
        self.world = World(clock=self.clock, disk=machine.disk, entropy=machine.entropy, workers=machine.world.workers)
        self.directories = directories or ("/data",)
        self.offline: list[str] = []
        self.store: LogStore

    async def start(self, **options: Any) -> LogStore:
        self.timers = Timers(self.clock)
        self.store = await LogStore.open(
            self.world,
            self.timers,
            self.directories,
            node_id=options.pop("node_id", 1),
            cluster_id=options.pop("cluster_id", "cluster"),
            defaults=SETTINGS,
            settings_of=lambda topic: SETTINGS,
            on_offline=lambda directory, error: self.offline.append(directory),
        )
        return self.store

    async def stop(self, *, clean: bool = True, broker_epoch: int = -1) -> None:
        await self.store.close(clean=clean, broker_epoch=broker_epoch)
        self.timers.close()
        self.disk.kill()

    async def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)
        for _ in range(5):
            await asyncio.sleep(0.001)
        await self.store._doomed.done()

    def append(self, partition: TopicPartition, *values: bytes) -> None:
        log = self.store.logs[partition]
        now_ms = self.clock.wall_ms()
        batch = encode_batch([(now_ms, b"k", value, ()) for value in values])
        log.append_as_leader(validate(batch, Rules.of(log.settings), now_ms=now_ms), leader_epoch=0, now_ms=now_ms)

    def values(self, partition: TopicPartition) -> list[bytes | None]:
        log = self.store.logs[partition]
        return [
            record.value
            for segment in log.segments.all()
            for record in decode_all(segment.read_batch(0, segment.size_bytes))
        ]


@pytest.fixture
def broker(new_machine: Callable[..., Machine]) -> Broker:
    return Broker(new_machine())


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_logs_are_found_again_with_their_high_watermarks(broker: Broker) -> None:
    async def main() -> None:
        store = await broker.start()
        for partition in (ORDERS, PAYMENTS):
            await store.create(partition, TOPIC_ID, SETTINGS)
            for number in range(20):
                broker.append(partition, b"%d" % number)
        store.logs[ORDERS].advance_high_watermark(15)
        store.logs[PAYMENTS].advance_high_watermark(20)
        store.logs[PAYMENTS].delete_records(7)
        await broker.stop(broker_epoch=99)
        assert broker.disk.exists("/data/.kafka_cleanshutdown")
        store = await broker.start()
        assert store.previous_broker_epoch == 99
        assert not broker.disk.exists("/data/.kafka_cleanshutdown")
        assert sorted(store.logs) == [ORDERS, PAYMENTS]
        assert (store.logs[ORDERS].high_watermark, store.logs[ORDERS].end_offset) == (15, 20)
        assert (store.logs[PAYMENTS].high_watermark, store.logs[PAYMENTS].log_start_offset) == (20, 7)
        assert store.logs[ORDERS].topic_id == TOPIC_ID
        assert broker.values(ORDERS) == [b"%d" % number for number in range(20)]
        await broker.stop()

    run(main())


def test_without_a_clean_shutdown_nothing_is_trusted(broker: Broker) -> None:
    async def main() -> None:
        store = await broker.start()
        await store.create(ORDERS, TOPIC_ID)
        for number in range(20):
            broker.append(ORDERS, b"%d" % number)
        await store.checkpoint()
        await broker.stop(clean=False)
        broker.disk.flip_bit(f"/data/orders-0/{0:020d}.log", 300, 1)
        store = await broker.start()
        assert store.previous_broker_epoch == -1
        assert store.logs[ORDERS].end_offset < 20
        await broker.stop()

    run(main())


def test_checkpoints_are_kafkas(broker: Broker) -> None:
    async def main() -> None:
        store = await broker.start()
        await store.create(ORDERS, TOPIC_ID)
        broker.append(ORDERS, b"a", b"b")
        store.logs[ORDERS].advance_high_watermark(1)
        await store.logs[ORDERS].flush()
        await asyncio.gather(store.checkpoint(), store.checkpoint())
        read = {
            name: broker.disk.read_all(f"/data/{name}", size_bytes_max=1000)
            for name in broker.disk.list("/data")
            if name.endswith("checkpoint")
        }
        assert read == {
            "cleaner-offset-checkpoint": b"0\n0\n",
            "recovery-point-offset-checkpoint": b"0\n1\norders 0 1\n",
            "log-start-offset-checkpoint": b"0\n0\n",
            "replication-offset-checkpoint": b"0\n1\norders 0 1\n",
        }
        await broker.stop()
        written = broker.disk.read_all("/data/recovery-point-offset-checkpoint", size_bytes_max=1000)
        assert written == b"0\n1\norders 0 2\n"

    run(main())


def test_a_deleted_log_is_gone_at_once_and_its_files_later(broker: Broker) -> None:
    async def main() -> None:
        store = await broker.start()
        await store.create(ORDERS, TOPIC_ID)
        broker.append(ORDERS, b"a")
        log = store.logs[ORDERS]
        await store.delete(ORDERS)
        assert store.get(ORDERS) is None
        assert not broker.disk.exists("/data/orders-0")
        (doomed,) = [name for name in broker.disk.list("/data") if name.endswith("-delete")]
        assert doomed.startswith("orders-0.")
        assert len(doomed) == len("orders-0.") + 32 + len("-delete")
        await log.flush()
        again = await store.create(ORDERS, Uuid(bytes(16)))
        assert again.end_offset == 0
        await broker.pass_time(5000)
        assert not broker.disk.exists(f"/data/{doomed}")
        await store.delete(ORDERS)
        await broker.stop()
        store = await broker.start()
        assert not store.logs
        assert not [name for name in broker.disk.list("/data") if name.endswith("-delete")]
        await broker.stop()

    run(main())


def test_retention_removes_files_after_the_delay(broker: Broker) -> None:
    async def main() -> None:
        store = await broker.start()
        await store.create(ORDERS, TOPIC_ID)
        for number in range(30):
            broker.append(ORDERS, b"%d" % number)
        store.logs[ORDERS].advance_high_watermark(30)
        assert await store.retain_all() == 0
        await broker.pass_time(2000)
        assert await store.retain_all() > 0
        assert [name for name in broker.disk.list("/data/orders-0") if name.endswith(".deleted")]
        await broker.pass_time(5000)
        assert not [name for name in broker.disk.list("/data/orders-0") if name.endswith(".deleted")]
        await broker.stop()

    run(main())


def test_a_rolled_segment_is_synced_in_the_background(broker: Broker) -> None:
    async def main() -> None:
        store = await broker.start()
        await store.create(ORDERS, TOPIC_ID)
        for number in range(30):
            broker.append(ORDERS, b"%d" % number)
        log = store.logs[ORDERS]
        assert log.recovery_point == 0
        for _ in range(50):
            await asyncio.sleep(0)
        assert log.recovery_point == log.segments.active.base_offset
        await broker.stop()

    run(main())


def test_logs_that_are_due_are_flushed(broker: Broker) -> None:
    async def main() -> None:
        store = await broker.start()
        log = await store.create(ORDERS, TOPIC_ID, TopicSettings(flush_ms=1000))
        broker.append(ORDERS, b"a")
        await store.flush_due()
        assert log.recovery_point == 0
        await broker.pass_time(1000)
        await store.flush_due()
        assert log.recovery_point == 1
        await broker.stop()

    run(main())


def test_idle_producers_are_forgotten_everywhere(broker: Broker) -> None:
    async def main() -> None:
        store = await broker.start()
        log = await store.create(ORDERS, TOPIC_ID)
        batch = encode_batch(
            [(broker.clock.wall_ms(), b"k", b"v", ())], producer_id=1, producer_epoch=0, base_sequence=0
        )
        rules = Rules.of(SETTINGS)
        log.append_as_leader(validate(batch, rules, now_ms=broker.clock.wall_ms()), leader_epoch=0, now_ms=0)
        store.expire_producers(expiration_ms=1000)
        assert log.producers.by_id
        await broker.pass_time(1000)
        store.expire_producers(expiration_ms=1000)
        assert not log.producers.by_id
        await broker.stop()

    run(main())


def test_a_directory_belongs_to_one_node_of_one_cluster(broker: Broker) -> None:
    async def main() -> None:
        store = await broker.start()
        (directory_id,) = store.directory_ids.values()
        with pytest.raises(AlreadyLocked):
            await LogStore.open(
                broker.world,
                broker.timers,
                ["/data"],
                node_id=1,
                cluster_id="cluster",
                defaults=SETTINGS,
                settings_of=lambda topic: SETTINGS,
            )
        await broker.stop()
        for options in ({"node_id": 2}, {"cluster_id": "other"}):
            with pytest.raises(WrongDirectory):
                await broker.start(**options)
            broker.timers.close()
        store = await broker.start()
        assert store.directory_ids == {"/data": directory_id}
        properties = read_meta_properties(broker.disk, "/data")
        assert properties == ("cluster", 1, directory_id)
        await broker.stop()

    run(main())


def test_new_logs_go_where_the_fewest_are(new_machine: Callable[..., Machine]) -> None:
    async def main() -> None:
        broker = Broker(new_machine(), "/one", "/two")
        store = await broker.start()
        for number in range(6):
            await store.create(TopicPartition("orders", number), TOPIC_ID)
        assert {name for name in broker.disk.list("/one") if name.startswith("orders")} == {
            "orders-0",
            "orders-2",
            "orders-4",
        }
        assert len(set(store.directory_ids.values())) == 2
        await broker.stop()

    run(main())


@pytest.mark.parametrize("fault", ["write", "sync"])
def test_a_failed_disk_takes_its_directory_offline_and_no_other(
    new_machine: Callable[..., Machine], fault: str
) -> None:
    async def main() -> None:
        broker = Broker(new_machine(), "/one", "/two")
        store = await broker.start()
        first = await store.create(TopicPartition("orders", 0), TOPIC_ID)
        await store.create(TopicPartition("orders", 1), TOPIC_ID)
        broker.append(TopicPartition("orders", 0), b"a")
        if fault == "write":
            broker.disk.fail_next_write("/one")
            with pytest.raises(DiskFailure):
                broker.append(TopicPartition("orders", 0), b"b")
        else:
            broker.disk.fail_next_sync("/one")
            with pytest.raises(DiskFailure):
                await first.flush()
        assert broker.offline == ["/one"]
        assert sorted(store.logs) == [TopicPartition("orders", 1)]
        assert list(store.directory_ids) == ["/two"]
        broker.append(TopicPartition("orders", 1), b"c")
        moved = await store.create(TopicPartition("orders", 7), TOPIC_ID)
        assert moved.directory == "/two/orders-7"
        await store.checkpoint()
        await broker.stop()
        assert not broker.disk.exists("/one/.kafka_cleanshutdown")
        assert broker.disk.exists("/two/.kafka_cleanshutdown")

    run(main())


def test_a_broker_without_a_directory_creates_no_log(broker: Broker) -> None:
    async def main() -> None:
        store = await broker.start()
        broker.disk.fail_next_sync("/data")
        await store.checkpoint()
        assert broker.offline == ["/data"]
        with pytest.raises(DiskFailure):
            await store.create(ORDERS, TOPIC_ID)
        await broker.stop()

    run(main())


def test_a_log_may_be_deleted_while_another_is_checkpointed(broker: Broker) -> None:
    async def main() -> None:
        store = await broker.start()
        for partition in (ORDERS, PAYMENTS):
            await store.create(partition, TOPIC_ID)
            broker.append(partition, b"a")
        await asyncio.gather(store.checkpoint(), store.delete(PAYMENTS))
        assert list(store.logs) == [ORDERS]
        await broker.stop()

    run(main())


def test_new_logs_without_records_cost_no_syncs_at_the_end(
    new_machine: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        broker = Broker(new_machine())
        store = await broker.start()
        await store.create(ORDERS, TOPIC_ID)
        await store.create(PAYMENTS, TOPIC_ID)
        broker.append(ORDERS, b"a")
        synced: list[str] = []
        sync_directory = broker.disk.sync_directory

        async def count(path: str) -> None:
            synced.append(path)
            await sync_directory(path)

        monkeypatch.setattr(broker.disk, "sync_directory", count)
        await broker.stop()
        assert "/data/orders-0" in synced
        assert "/data/pay-ments-12" not in synced
        broker.disk.crash(broker.world.entropy)
        store = await broker.start()
        assert store.logs[ORDERS].end_offset == 1
        assert PAYMENTS not in store.logs or store.logs[PAYMENTS].end_offset == 0
        await broker.stop()

    run(main())


def test_names_that_are_no_partitions_are_left_alone(broker: Broker) -> None:
    async def main() -> None:
        for name in ("__cluster_metadata-0", "lost+found", "orders", "orders-x", "orders-1-future"):
            broker.disk.make_directory(f"/data/{name}")
        broker.disk.open("/data/file-0", create=True).close()
        store = await broker.start()
        assert not store.logs
        assert broker.disk.list("/data/__cluster_metadata-0") == []
        await broker.stop()

    run(main())
