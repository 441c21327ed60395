"""The driver on a real disk: one voter at first, then three of them over the wire's bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, Uuid
from barnabas.raft.driver import LeaderAndEpoch, NotLeader, PeerGone, RaftDriver
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.raft.settings import RaftSettings
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from barnabas.wire.message import Message, decode, encode
from barnabas.wire.messages import request_of, response_of
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.vote import VoteRequest
from barnabas.world.disk import DiskFailure
from barnabas.world.memory import MemoryDisk
from barnabas.world.real import real_world
from barnabas.world.timers import Timers
from barnabas.world.world import World

CLUSTER = "cluster-of-tests"
QUICK = RaftSettings(
    election_timeout_ms=60,
    fetch_timeout_ms=150,
    election_backoff_max_ms=40,
    request_timeout_ms=150,
    fetch_wait_ms_max=30,
)


def voter(number: int) -> Voter:
    return Voter(
        ReplicaKey(number, Uuid(bytes([number]) * 16)), (Endpoint("CONTROLLER", f"host{number}", 9090 + number),)
    )


class Log:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.batches: list[tuple[int, int, int]] = []
        self.snapshots: list[OffsetAndEpoch] = []
        self.leaders: list[LeaderAndEpoch] = []
        self.changed = asyncio.Event()

    def on_commit(self, base_offset: int, epoch: int, append_time_ms: int, records: list[bytes]) -> None:
        self.batches.append((base_offset, epoch, len(records)))
        self.records += records
        self.changed.set()

    def on_snapshot(self, snapshot_id: OffsetAndEpoch, records: Iterator[bytes]) -> None:
        self.snapshots.append(snapshot_id)
        self.records = list(records)
        self.changed.set()

    def on_leader(self, leader: LeaderAndEpoch) -> None:
        self.leaders.append(leader)
        self.changed.set()

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(10):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


def play(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scene)


def alone(tmp_path: Path, world: World, **options: Any) -> tuple[RaftDriver, Log]:
    listener = Log()
    driver = RaftDriver(
        world,
        options.pop("timers", None) or Timers(world.clock),
        f"{tmp_path}/{METADATA_TOPIC}-0",
        local=options.pop("local", voter(1)),
        cluster_id=CLUSTER,
        listener=listener,
        initial_voters=VoterSet.of(voter(1)),
        **options,
    )
    return driver, listener


async def lead(driver: RaftDriver, listener: Log) -> int:
    await driver.start()
    await listener.until(lambda: listener.leaders and listener.leaders[-1].leader_id == 1)
    return listener.leaders[-1].epoch


def test_one_voter_elects_itself_and_commits(tmp_path: Path) -> None:
    async def scene() -> None:
        driver, listener = alone(tmp_path, real_world())
        epoch = await lead(driver, listener)
        assert (driver.leader, driver.is_leader, epoch) == (LeaderAndEpoch(1, 1), True, 1)
        # The first batch of the epoch holds the leader, the kraft.version and the voters.
        assert driver.high_watermark == 3
        last_offset = driver.propose([b"a", b"b"], epoch=epoch)
        assert last_offset == 4
        await driver.wait_committed(last_offset)
        assert listener.records == [b"a", b"b"]
        assert listener.batches == [(3, 1, 2)]
        await driver.stop()

    play(scene())


def test_a_restart_brings_everything_back_in_a_new_epoch(tmp_path: Path) -> None:
    async def scene() -> None:
        world = real_world()
        driver, listener = alone(tmp_path, world)
        epoch = await lead(driver, listener)
        for number in range(5):
            offset = driver.propose([b"%d" % number], epoch=epoch)
        await driver.wait_committed(offset)
        await driver.stop()
        driver, again = alone(tmp_path, world)
        assert await lead(driver, again) == 2
        assert again.records == [b"0", b"1", b"2", b"3", b"4"]
        assert again.leaders == [LeaderAndEpoch(1, 2)]
        await driver.stop()

    play(scene())


def test_a_leader_hears_of_its_leadership_after_all_that_was_committed_before(tmp_path: Path) -> None:
    async def scene() -> None:
        world = real_world()
        driver, listener = alone(tmp_path, world)
        epoch = await lead(driver, listener)
        await driver.wait_committed(driver.propose([b"x"] * 1000, epoch=epoch))
        await driver.stop()

        class Strict(Log):
            def on_leader(self, leader: LeaderAndEpoch) -> None:
                assert leader.leader_id != 1 or len(self.records) == 1000
                super().on_leader(leader)

        driver, _ = alone(tmp_path, world)
        strict = Strict()
        driver.listener = strict
        await lead(driver, strict)
        await driver.stop()

    play(scene())


def test_a_snapshot_replaces_what_came_before(tmp_path: Path) -> None:
    async def scene() -> None:
        world = real_world()
        driver, listener = alone(tmp_path, world)
        epoch = await lead(driver, listener)
        first = driver.propose([b"a", b"b", b"c"], epoch=epoch)
        await driver.wait_committed(first)
        taken = await driver.create_snapshot(first + 1, epoch, 12345, iter([b"abc"]))
        assert taken == OffsetAndEpoch(6, 1)
        assert await driver.create_snapshot(first + 1, epoch, 12345, iter([])) is None
        await driver.wait_committed(driver.propose([b"d"], epoch=epoch))
        assert world.disk.exists(f"{tmp_path}/{METADATA_TOPIC}-0/00000000000000000006-0000000001.checkpoint")
        await driver.stop()
        driver, again = alone(tmp_path, world)
        await lead(driver, again)
        assert (again.snapshots, again.records) == ([OffsetAndEpoch(6, 1)], [b"abc", b"d"])
        await driver.stop()

    play(scene())


def test_old_snapshots_go_when_the_log_is_too_large(tmp_path: Path) -> None:
    async def scene() -> None:
        world = real_world()
        settings = RaftSettings(max_retention_bytes=1000)
        driver, listener = alone(tmp_path, world, settings=settings)
        epoch = await lead(driver, listener)
        for _ in range(3):
            offset = driver.propose([b"x" * 500], epoch=epoch)
            await driver.wait_committed(offset)
            await driver.create_snapshot(offset + 1, epoch, 1, iter([b"state"]))
            await driver._running._clean()
        names = [name for name in world.disk.list(f"{tmp_path}/{METADATA_TOPIC}-0") if name.endswith("checkpoint")]
        assert [name for name in names if name[0] == "0"] == ["00000000000000000006-0000000001.checkpoint"]
        await driver.wait_committed(driver.propose([b"last"], epoch=epoch))
        await driver.stop()
        driver, again = alone(tmp_path, world, settings=settings)
        await lead(driver, again)
        assert again.records == [b"state", b"last"]
        assert driver.voters == VoterSet.of(voter(1))
        await driver.stop()

    play(scene())


def test_proposals_share_a_sync(tmp_path: Path) -> None:
    async def scene() -> None:
        driver, listener = alone(tmp_path, real_world())
        epoch = await lead(driver, listener)
        log = driver._running.log
        syncs = 0
        real_sync = log.sync

        async def counted() -> None:
            nonlocal syncs
            syncs += 1
            await real_sync()

        log.sync = counted  # type: ignore[method-assign]
        offsets = [driver.propose([b"%d" % number], epoch=epoch) for number in range(50)]
        await driver.wait_committed(offsets[-1])
        assert len(listener.records) == 50
        assert syncs <= 2
        await driver.stop()

    play(scene())


def test_only_the_leader_of_the_epoch_may_propose(tmp_path: Path) -> None:
    async def scene() -> None:
        driver, listener = alone(tmp_path, real_world())
        epoch = await lead(driver, listener)
        with pytest.raises(NotLeader):
            driver.propose([b"a"], epoch=epoch + 1)
        with pytest.raises(ApiError) as refused:
            driver.propose([bytes(9 << 20)], epoch=epoch)
        assert refused.value.error is errors.RECORD_LIST_TOO_LARGE
        await driver.stop()
        with pytest.raises(NotLeader):
            driver.propose([b"a"], epoch=epoch)

    play(scene())


def test_endpoints_that_have_changed_are_written_with_the_next_epoch(tmp_path: Path) -> None:
    async def scene() -> None:
        world = real_world()
        driver, listener = alone(tmp_path, world)
        await lead(driver, listener)
        await driver.stop()
        moved = Voter(voter(1).key, (Endpoint("CONTROLLER", "elsewhere", 1),))
        driver, listener = alone(tmp_path, world, local=moved)
        await lead(driver, listener)
        assert driver.voters == VoterSet.of(moved)
        assert driver.high_watermark == 6
        await driver.stop()

    play(scene())


def test_a_request_for_another_cluster_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        driver, listener = alone(tmp_path, real_world())
        await lead(driver, listener)
        partition = VoteRequest.PartitionData(replica_id=2, replica_epoch=9)
        topics = [VoteRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])]
        answer: Any = await driver.handle(VoteRequest(cluster_id="other", topics=topics))
        assert answer.error_code == errors.INCONSISTENT_CLUSTER_ID.code
        answer = await driver.handle(VoteRequest(cluster_id=CLUSTER, topics=[]))
        assert answer.error_code == errors.INVALID_REQUEST.code
        await driver.stop()

    play(scene())


def test_an_observer_can_fetch_the_log(tmp_path: Path) -> None:
    async def scene() -> None:
        driver, listener = alone(tmp_path, real_world())
        epoch = await lead(driver, listener)
        await driver.wait_committed(driver.propose([b"a"], epoch=epoch))
        partition = FetchRequest.FetchPartition(current_leader_epoch=epoch, fetch_offset=0, last_fetched_epoch=0)
        topic = FetchRequest.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])
        request = FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=7), topics=[topic])
        answer: Any = await driver.handle(request)
        found = answer.responses[0].partitions[0]
        assert (found.error_code, found.high_watermark, found.current_leader.leader_id) == (0, 4, 1)
        assert len(found.records) > 61
        description = driver.describe()
        assert [replica.key.id for replica in description.voters] == [1]
        assert [replica.key.id for replica in description.observers] == [7]
        await driver.stop()

    play(scene())


# Three voters ----------


class Wires:
    """Carries requests between drivers as bytes of the newest version."""

    def __init__(self) -> None:
        self.drivers: dict[int, RaftDriver] = {}
        self.silent: set[int] = set()

    def of(self, source: int) -> Peer:
        return Peer(self, source)


class Peer:
    def __init__(self, wires: Wires, source: int) -> None:
        self.wires = wires
        self.source = source
        self.ports: dict[int, int] = {}

    def learn(self, node_id: int, endpoints: tuple[Endpoint, ...]) -> None:
        self.ports[node_id] = endpoints[0].port

    async def send(self, node_id: int, request: Message) -> Message:
        target = self.ports[node_id] - 9090
        if target in self.wires.silent or self.source in self.wires.silent or target not in self.wires.drivers:
            raise PeerGone("silent")
        assert request.api_key is not None
        version = max(request.versions)
        if isinstance(request, ApiVersionsRequest):
            feature = ApiVersionsResponse.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            return ApiVersionsResponse(supported_features=[feature])
        arrived = decode(request_of(request.api_key), version, encode(request, version))
        answer = await self.wires.drivers[target].handle(arrived)
        await asyncio.sleep(0)
        if target in self.wires.silent:
            raise PeerGone("silent")
        return decode(response_of(request.api_key), version, encode(answer, version))


class Cluster:
    def __init__(self, tmp_path: Path, count: int = 3) -> None:
        self.tmp_path = tmp_path
        self.world = real_world()
        self.timers = Timers(self.world.clock)
        self.wires = Wires()
        self.voters = VoterSet.of(*(voter(number) for number in range(1, count + 1)))
        self.logs: dict[int, Log] = {}

    async def start(self, number: int, *, is_first: bool = True, settings: RaftSettings = QUICK) -> RaftDriver:
        self.logs[number] = Log()
        driver = RaftDriver(
            self.world,
            self.timers,
            f"{self.tmp_path}/{number}/{METADATA_TOPIC}-0",
            local=voter(number),
            cluster_id=CLUSTER,
            settings=settings,
            listener=self.logs[number],
            peers=self.wires.of(number),
            initial_voters=self.voters if is_first else None,
            bootstrap_servers=[voter(1).endpoints[0], voter(2).endpoints[0]],
        )
        await driver.start()
        self.wires.drivers[number] = driver
        return driver

    async def leader(self) -> RaftDriver:
        async with asyncio.timeout(10):
            while True:
                for number, driver in self.wires.drivers.items():
                    is_reachable = number not in self.wires.silent
                    if is_reachable and driver.is_leader and self.logs[number].leaders[-1:] == [driver.leader]:
                        return driver
                await self.timers.sleep(5)

    async def stop(self) -> None:
        for driver in self.wires.drivers.values():
            await driver.stop()


def test_three_voters_elect_replicate_and_fail_over(tmp_path: Path) -> None:
    async def scene() -> None:
        cluster = Cluster(tmp_path)
        for number in (1, 2, 3):
            await cluster.start(number)
        leader = await cluster.leader()
        await leader.wait_committed(leader.propose([b"a"], epoch=leader.leader.epoch))
        first = leader.leader
        cluster.wires.silent.add(first.leader_id)
        successor = await cluster.leader()
        assert successor.leader.epoch > first.epoch
        await successor.wait_committed(successor.propose([b"b"], epoch=successor.leader.epoch))
        cluster.wires.silent.clear()
        for log in cluster.logs.values():
            await log.until(lambda log=log: log.records == [b"a", b"b"])
        await cluster.stop()

    play(scene())


def test_an_isolated_leader_commits_nothing_and_what_it_wrote_is_cut(tmp_path: Path) -> None:
    async def scene() -> None:
        cluster = Cluster(tmp_path)
        for number in (1, 2, 3):
            await cluster.start(number)
        old = await cluster.leader()
        cluster.wires.silent.add(old.leader.leader_id)
        offset = old.propose([b"lost"], epoch=old.leader.epoch)
        with pytest.raises(NotLeader):
            await old.wait_committed(offset)
        new = await cluster.leader()
        await new.wait_committed(new.propose([b"kept"], epoch=new.leader.epoch))
        cluster.wires.silent.clear()
        for log in cluster.logs.values():
            await log.until(lambda log=log: log.records == [b"kept"])
        await cluster.stop()

    play(scene())


def test_a_late_observer_downloads_the_snapshot_and_becomes_a_voter(tmp_path: Path) -> None:
    async def scene() -> None:
        cluster = Cluster(tmp_path, count=2)
        for number in (1, 2):
            await cluster.start(number)
        leader = await cluster.leader()
        epoch = leader.leader.epoch
        offset = leader.propose([b"a"] * 10, epoch=epoch)
        await leader.wait_committed(offset)
        await leader.create_snapshot(offset + 1, epoch, 1, (b"s" * 1000 for _ in range(3000)))
        await leader.wait_committed(leader.propose([b"after"], epoch=epoch))
        await cluster.start(3, is_first=False, settings=RaftSettings(fetch_timeout_ms=100, auto_join_enable=True))
        log = cluster.logs[3]
        await log.until(lambda: log.records[-1:] == [b"after"])
        assert log.snapshots == [OffsetAndEpoch(offset + 1, epoch)]
        assert len(log.records) == 3001
        async with asyncio.timeout(10):
            while not leader.voters.is_voter(voter(3).key):
                await cluster.timers.sleep(5)
        await leader.wait_committed(leader.propose([b"three"], epoch=epoch))
        await cluster.stop()

    play(scene())


def test_a_failed_sync_stops_the_driver_for_good(tmp_path: Path) -> None:
    async def scene() -> None:
        real = real_world()
        disk = MemoryDisk(real.clock)
        world = World(clock=real.clock, disk=disk, entropy=real.entropy, workers=real.workers)
        failures: list[Exception] = []
        driver, listener = alone(tmp_path, world, on_failure=failures.append)
        epoch = await lead(driver, listener)
        disk.fail_next_sync(str(tmp_path))
        offset = driver.propose([b"a"], epoch=epoch)
        with pytest.raises((NotLeader, DiskFailure)):
            await driver.wait_committed(offset)
        assert isinstance(driver.failure, DiskFailure)
        assert failures == [driver.failure]
        assert listener.records == []
        with pytest.raises(NotLeader):
            driver.propose([b"b"], epoch=epoch)
        await driver.stop()

    play(scene())


def test_a_listener_that_breaks_stops_the_driver(tmp_path: Path) -> None:
    async def scene() -> None:
        driver, listener = alone(tmp_path, real_world())
        epoch = await lead(driver, listener)

        def broken(*_: object) -> None:
            raise ZeroDivisionError

        listener.on_commit = broken  # type: ignore[assignment]
        with pytest.raises(NotLeader):
            await driver.wait_committed(driver.propose([b"a"], epoch=epoch))
        assert isinstance(driver.failure, ZeroDivisionError)
        await driver.stop()

    play(scene())
