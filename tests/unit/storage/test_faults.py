"""A fault of one log concerns no other log: retention, checkpoints, compaction and a clean stop go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.model.errors import CorruptBatch
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.storage.flushing import Flushing
from barnabas.storage.settings import TopicSettings
from barnabas.storage.store import LogStore
from barnabas.storage.validate import Rules, validate
from barnabas.wire.records import encode_batch
from barnabas.world.adjustable import AdjustableClock
from barnabas.world.disk import DiskFailure, PathGone
from barnabas.world.timers import Timers
from barnabas.world.world import World

if TYPE_CHECKING:
    from .conftest import Machine

TOPIC_ID = Uuid(bytes(range(16)))
BAD, GOOD = TopicPartition("aaa", 0), TopicPartition("bbb", 0)
SETTINGS = TopicSettings(segment_bytes=600, index_interval_bytes=100, retention_ms=1000, file_delete_delay_ms=5000)
MARK = "/data/.kafka_cleanshutdown"


class Broker:
    """A store with two logs of several segments, opened and closed as a broker does."""

    def __init__(self, machine: Machine) -> None:
        self.disk = machine.disk
        self.clock = AdjustableClock(machine.clock)
        self.world = World(clock=self.clock, disk=machine.disk, entropy=machine.entropy, workers=machine.world.workers)
        self.lost: list[TopicPartition] = []
        self.store: LogStore

    async def start(self) -> LogStore:
        self.timers = Timers(self.clock)
        self.store = await LogStore.open(
            self.world,
            self.timers,
            ("/data",),
            node_id=1,
            cluster_id="cluster",
            defaults=SETTINGS,
            settings_of=lambda topic: SETTINGS,
        )
        self.store.on_log_offline = self.lost.append
        return self.store

    async def fill(self) -> LogStore:
        store = await self.start()
        for partition in (BAD, GOOD):
            log = await store.create(partition, TOPIC_ID, SETTINGS)
            for number in range(20):
                now_ms = self.clock.wall_ms()
                batch = encode_batch([(now_ms, b"k", b"%d" % number, ())])
                checked = validate(batch, Rules.of(log.settings), now_ms=now_ms)
                log.append_as_leader(checked, leader_epoch=0, now_ms=now_ms)
            log.advance_high_watermark(log.end_offset)
            assert len(log.segments) > 2
        return store

    async def stop(self) -> None:
        await self.store.close(clean=True, broker_epoch=7)
        self.timers.close()
        self.disk.kill()

    def damage(self) -> None:
        """Make the first batch unreadable, and the time index that would spare retention from reading it."""
        index = self.disk.open("/data/aaa-0/00000000000000000000.timeindex")
        index.truncate(max(0, index.size_bytes - 1)) if index.size_bytes else index.append(b"x")
        self.disk.open("/data/aaa-0/00000000000000000000.log").write(16, b"\x07")


@pytest.fixture
def broker(new_machine: Callable[..., Machine]) -> Broker:
    return Broker(new_machine())


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_a_damaged_segment_stops_the_retention_of_no_other_log(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        await broker.fill()
        await broker.stop()
        broker.damage()
        store = await broker.start()
        broker.clock.advance(10_000)
        assert await store.retain_all() > 0
        assert store.logs[GOOD].log_start_offset == 20
        fault = store.faults.get(BAD)
        assert fault is not None
        assert fault.work == "retention"
        assert BAD in store.logs, "records that are not damaged can still be read"
        assert not store.offline
        assert caplog.text.count("log is damaged partition=aaa-0") == 1
        await store.retain_all()
        assert caplog.text.count("log is damaged partition=aaa-0") == 1, "a known fault is not logged again"
        await broker.stop()

    run(main())


def test_a_fault_is_forgotten_when_the_work_succeeds_again(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        store = await broker.fill()

        def corrupt(_: int) -> int:
            raise CorruptBatch("unreadable")

        monkeypatch.setattr(store.logs[BAD], "retain", corrupt)
        await store.retain_all()
        assert store.faults.get(BAD) is not None
        monkeypatch.undo()
        await store.retain_all()
        assert store.faults.get(BAD) is None
        assert store.faults.total == 1
        await broker.stop()

    run(main())


def test_a_mistake_of_ours_in_one_log_is_reported_and_stops_no_other(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        reports: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context["task_name"]))
        store = await broker.fill()

        def broken(_: int) -> int:
            raise KeyError("a mistake")

        monkeypatch.setattr(store.logs[BAD], "retain", broken)
        broker.clock.advance(10_000)
        assert await store.retain_all() > 0
        assert reports == ["retention:aaa-0"]
        await broker.stop()

    run(main())


def test_a_removed_directory_takes_its_log_offline_and_nothing_else(broker: Broker) -> None:
    async def main() -> None:
        store = await broker.fill()
        log = store.logs[BAD]
        broker.disk.remove_tree("/data/aaa-0")
        broker.clock.advance(10_000)
        assert await store.retain_all() > 0
        assert (sorted(store.logs), broker.lost, store.offline) == ([GOOD], [BAD], {})
        assert isinstance(log.failure, PathGone)
        fault = store.faults.get(BAD)
        assert fault is not None
        assert fault.is_offline
        assert "aaa-0" in fault.reason
        await store.checkpoint()
        await broker.stop()
        assert broker.disk.exists(MARK)

    run(main())


def test_a_directory_that_is_removed_before_the_stop_keeps_the_mark_from_no_other_log(broker: Broker) -> None:
    async def main() -> None:
        await broker.fill()
        broker.disk.remove_tree("/data/aaa-0")
        await broker.stop()
        assert broker.disk.exists(MARK)
        store = await broker.start()
        assert sorted(store.logs) == [GOOD]
        assert store.logs[GOOD].end_offset == 20
        await broker.stop()

    run(main())


def test_a_log_that_could_not_be_closed_is_recovered_although_the_stop_was_clean(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        store = await broker.fill()
        monkeypatch.setattr(Flushing, "close", close)
        await broker.stop()
        monkeypatch.undo()
        assert b'"unclean":["aaa-0"]' in broker.disk.read_all(MARK, size_bytes_max=1000)
        store = await broker.start()
        assert store.previous_broker_epoch == -1, "a log may have lost records"
        directory = store._directories[0]
        assert (directory.was_clean, directory.unclean) == (True, {"aaa-0"})
        assert [log.end_offset for log in store.logs.values()] == [20, 20]
        await broker.stop()
        assert b"unclean" not in broker.disk.read_all(MARK, size_bytes_max=1000)

    closed = Flushing.close

    async def close(flushing: Flushing) -> None:
        if flushing._log.partition == BAD:
            raise CorruptBatch("unreadable")
        await closed(flushing)

    run(main())


def test_a_log_that_cannot_be_opened_keeps_no_other_log_from_being_opened(broker: Broker) -> None:
    async def main() -> None:
        await broker.fill()
        await broker.stop()
        broker.disk.remove("/data/aaa-0/leader-epoch-checkpoint")
        broker.disk.make_directory("/data/aaa-0/leader-epoch-checkpoint")
        store = await broker.start()
        assert sorted(store.logs) == [GOOD]
        fault = store.faults.get(BAD)
        assert fault is not None
        assert (fault.is_offline, fault.topic_id) == (True, TOPIC_ID)
        await store.delete(BAD)
        assert store.faults.get(BAD) is None
        assert not broker.disk.exists("/data/aaa-0")
        await broker.stop()
        assert broker.disk.exists(MARK)

    run(main())


def test_a_log_whose_directory_is_gone_can_be_deleted(broker: Broker) -> None:
    async def main() -> None:
        store = await broker.fill()
        broker.disk.remove_tree("/data/aaa-0")
        await store.delete(BAD)
        assert (sorted(store.logs), store.offline) == ([GOOD], {})
        await broker.stop()

    run(main())


def test_a_failed_fsync_still_takes_the_whole_directory_offline(broker: Broker) -> None:
    async def main() -> None:
        store = await broker.fill()
        broker.disk.fail_next_sync("/data/aaa-0")
        with pytest.raises(DiskFailure):
            await store.logs[BAD].flush()
        assert list(store.offline) == ["/data"]
        assert not store.logs
        await broker.stop()

    run(main())
