"""The driver of a quorum of one, on a real disk: it leads, commits, restarts, takes snapshots, answers and fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from driver_stage import CLUSTER, Log, alone, lead, play, voter

from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from barnabas.raft.driver import LeaderAndEpoch, NotLeader
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.raft.settings import RaftSettings
from barnabas.raft.voters import Endpoint, Voter, VoterSet
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.vote import VoteRequest
from barnabas.world.disk import DiskFailure
from barnabas.world.memory import MemoryDisk
from barnabas.world.real import real_world
from barnabas.world.world import World


def test_one_voter_elects_itself_and_commits(tmp_path: Path) -> None:
    async def scene() -> None:
        driver, listener = alone(tmp_path, real_world())
        epoch = await lead(driver, listener)
        assert (driver.leader, driver.is_leader, epoch) == (LeaderAndEpoch(1, 1), True, 1)
        # The first batch of the epoch holds the leader, the kraft.version and the voters.
        assert driver.high_watermark == 3
        last_offset = driver.propose([b"a", b"b"], epoch=epoch)
        assert last_offset == 4
        await driver.wait_committed(last_offset, epoch=epoch)
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
        await driver.wait_committed(offset, epoch=epoch)
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
        await driver.wait_committed(driver.propose([b"x"] * 1000, epoch=epoch), epoch=epoch)
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
        await driver.wait_committed(first, epoch=epoch)
        taken = await driver.create_snapshot(first + 1, epoch, 12345, iter([b"abc"]))
        assert taken == OffsetAndEpoch(6, 1)
        assert await driver.create_snapshot(first + 1, epoch, 12345, iter([])) is None
        await driver.wait_committed(driver.propose([b"d"], epoch=epoch), epoch=epoch)
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
        settings = RaftSettings(auto_join_enable=False, max_retention_bytes=1000)
        driver, listener = alone(tmp_path, world, settings=settings)
        epoch = await lead(driver, listener)
        for _ in range(3):
            offset = driver.propose([b"x" * 500], epoch=epoch)
            await driver.wait_committed(offset, epoch=epoch)
            await driver.create_snapshot(offset + 1, epoch, 1, iter([b"state"]))
            await driver._running._clean()
        names = [name for name in world.disk.list(f"{tmp_path}/{METADATA_TOPIC}-0") if name.endswith("checkpoint")]
        assert [name for name in names if name[0] == "0"] == ["00000000000000000006-0000000001.checkpoint"]
        await driver.wait_committed(driver.propose([b"last"], epoch=epoch), epoch=epoch)
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
        await driver.wait_committed(offsets[-1], epoch=epoch)
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
        await driver.wait_committed(driver.propose([b"a"], epoch=epoch), epoch=epoch)
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
            await driver.wait_committed(offset, epoch=epoch)
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
            await driver.wait_committed(driver.propose([b"a"], epoch=epoch), epoch=epoch)
        assert isinstance(driver.failure, ZeroDivisionError)
        await driver.stop()

    play(scene())
