"""Drivers of a quorum when something goes wrong at an inconvenient moment."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from driver_stage import Log
from quorum_stage import QUICK, VIRTUAL_SECONDS_MAX, Cluster

from barnabas.model import errors
from barnabas.raft import events, messages
from barnabas.raft.delivery import TURN_BYTES
from barnabas.raft.driver import NotLeader, RaftDriver
from barnabas.raft.engine import CLEANING_PERIOD_MS
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.raft.roles import Leader
from barnabas.testing.loop import simulate


async def started(count: int = 3) -> tuple[Cluster, RaftDriver]:
    cluster = Cluster(count)
    for number in range(1, count + 1):
        await cluster.start(number)
    return cluster, await cluster.leader()


def test_what_is_written_in_the_moment_of_resignation_does_not_count_as_committed() -> None:
    """As after a pause of the whole process: what it was asked meanwhile comes before its own timers."""

    async def scene() -> None:
        cluster, old = await started()
        epoch = old.leader.epoch
        cluster.wires.silent.add(old.leader.leader_id)
        role = old._running.machine.role
        assert isinstance(role, Leader)
        role.check_quorum_deadline_ms = cluster.world.clock.monotonic_ms()
        offset = old.propose([b"lost"], epoch=epoch)
        assert not old.is_leader
        waiting = asyncio.create_task(old.wait_committed(offset, epoch=epoch))
        new = await cluster.leader()
        await new.wait_committed(new.propose([b"kept"], epoch=new.leader.epoch), epoch=new.leader.epoch)
        cluster.wires.silent.clear()
        with pytest.raises(NotLeader):
            await waiting
        await cluster.stop()

    simulate(scene, time_s_max=VIRTUAL_SECONDS_MAX)


class Picky(Log):
    """Fails at a record."""

    def on_commit(self, base_offset: int, epoch: int, append_time_ms: int, records: list[bytes]) -> None:
        assert records != [b"bad"]
        super().on_commit(base_offset, epoch, append_time_ms, records)


def test_a_listener_that_fails_in_a_later_turn_ends_the_replica() -> None:
    async def scene() -> None:
        cluster, leader = await started()
        number = leader.leader.leader_id % 3 + 1
        await cluster.wires.drivers.pop(number).stop()
        for value in (b"a" * TURN_BYTES, b"b" * TURN_BYTES, b"bad"):
            offset = leader.propose([value], epoch=leader.leader.epoch)
        await leader.wait_committed(offset, epoch=leader.leader.epoch)
        cluster.log_type = Picky
        reports: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context["task_name"]))
        follower = await cluster.start(number)
        async with asyncio.timeout(10):
            while follower.failure is None:
                await cluster.timers.sleep(5)
        assert reports == ["raft-delivery"]
        await cluster.stop()

    simulate(scene, time_s_max=VIRTUAL_SECONDS_MAX)


def test_a_replica_without_a_leader_may_clean_up() -> None:
    async def scene() -> None:
        cluster, leader = await started()
        number, epoch = leader.leader.leader_id, leader.leader.epoch
        for _ in range(2):
            offset = leader.propose([b"x" * 500], epoch=epoch)
            await leader.wait_committed(offset, epoch=leader.leader.epoch)
            await leader.create_snapshot(offset + 1, epoch, 1, iter([b"state"]))
        await cluster.stop()
        cluster.wires.drivers.clear()
        lonely = await cluster.start(number, settings=replace(QUICK, max_retention_bytes=1000))
        await cluster.timers.sleep(2 * CLEANING_PERIOD_MS)
        assert lonely.failure is None
        assert lonely._running.log.start_offset == offset
        await cluster.stop()

    simulate(scene, time_s_max=10 * VIRTUAL_SECONDS_MAX)


def test_a_fetch_whose_records_went_before_it_was_answered_is_refused() -> None:
    """Its answer waited for the quorum's state to be written, and the log was cleaned meanwhile."""

    async def scene() -> None:
        cluster, leader = await started()
        epoch = leader.leader.epoch
        for _ in range(2):
            offset = leader.propose([b"x" * 500], epoch=epoch)
            await leader.wait_committed(offset, epoch=epoch)
            await leader.create_snapshot(offset + 1, epoch, 1, iter([b"state"]))
        engine = leader._running
        assert await engine.log.start_after(OffsetAndEpoch(offset + 1, epoch))
        future: asyncio.Future[messages.Response] = asyncio.get_running_loop().create_future()
        engine._asked[0] = (future, 1)
        engine._reply(events.Reply(0, messages.FetchResponse(read_offset=0)))
        answer = await future
        assert isinstance(answer, messages.FetchResponse)
        assert answer.error is errors.OFFSET_OUT_OF_RANGE
        engine.step(events.LogStartMoved(OffsetAndEpoch(offset + 1, epoch)))
        await cluster.stop()

    simulate(scene, time_s_max=VIRTUAL_SECONDS_MAX)
