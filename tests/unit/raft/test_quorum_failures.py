"""Drivers of a quorum when something goes wrong at an inconvenient moment."""

from __future__ import annotations

import asyncio

import pytest
from quorum_stage import VIRTUAL_SECONDS_MAX, Cluster

from barnabas.raft.driver import NotLeader, RaftDriver
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
