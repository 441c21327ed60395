"""Three drivers over the wire's bytes, in virtual time: a machine that is busy deposes no leader here.

The driver on a real disk is ``test_driver``'s; a disk in memory keeps the same promises.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from driver_stage import voter
from quorum_stage import QUICK, VIRTUAL_SECONDS_MAX, Cluster

from barnabas.raft.driver import NotLeader
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.testing.loop import simulate


def test_three_voters_elect_replicate_and_fail_over() -> None:
    async def scene() -> None:
        cluster = Cluster()
        for number in (1, 2, 3):
            await cluster.start(number)
        leader = await cluster.leader()
        await leader.wait_committed(leader.propose([b"a"], epoch=leader.leader.epoch), epoch=leader.leader.epoch)
        first = leader.leader
        cluster.wires.silent.add(first.leader_id)
        successor = await cluster.leader()
        assert successor.leader.epoch > first.epoch
        await successor.wait_committed(
            successor.propose([b"b"], epoch=successor.leader.epoch), epoch=successor.leader.epoch
        )
        cluster.wires.silent.clear()
        for log in cluster.logs.values():
            await log.until(lambda log=log: log.records == [b"a", b"b"])
        await cluster.stop()

    simulate(scene, time_s_max=VIRTUAL_SECONDS_MAX)


def test_an_isolated_leader_commits_nothing_and_what_it_wrote_is_cut() -> None:
    async def scene() -> None:
        cluster = Cluster()
        for number in (1, 2, 3):
            await cluster.start(number)
        old = await cluster.leader()
        cluster.wires.silent.add(old.leader.leader_id)
        offset = old.propose([b"lost"], epoch=old.leader.epoch)
        with pytest.raises(NotLeader):
            await old.wait_committed(offset, epoch=old.leader.epoch)
        new = await cluster.leader()
        await new.wait_committed(new.propose([b"kept"], epoch=new.leader.epoch), epoch=new.leader.epoch)
        cluster.wires.silent.clear()
        for log in cluster.logs.values():
            await log.until(lambda log=log: log.records == [b"kept"])
        await cluster.stop()

    simulate(scene, time_s_max=VIRTUAL_SECONDS_MAX)


def test_a_late_observer_downloads_the_snapshot_and_becomes_a_voter() -> None:
    async def scene() -> None:
        cluster = Cluster(count=2)
        for number in (1, 2):
            await cluster.start(number)
        leader = await cluster.leader()
        epoch = leader.leader.epoch
        offset = leader.propose([b"a"] * 10, epoch=epoch)
        await leader.wait_committed(offset, epoch=leader.leader.epoch)
        await leader.create_snapshot(offset + 1, epoch, 1, (b"s" * 1000 for _ in range(3000)))
        await leader.wait_committed(leader.propose([b"after"], epoch=epoch), epoch=epoch)
        await cluster.start(3, is_first=False, settings=replace(QUICK, auto_join_enable=True))
        log = cluster.logs[3]
        await log.until(lambda: log.records[-1:] == [b"after"])
        assert log.snapshots == [OffsetAndEpoch(offset + 1, epoch)]
        assert len(log.records) == 3001
        async with asyncio.timeout(10):
            while not leader.voters.is_voter(voter(3).key):
                await cluster.timers.sleep(5)
        await leader.wait_committed(leader.propose([b"three"], epoch=epoch), epoch=epoch)
        await cluster.stop()

    simulate(scene, time_s_max=VIRTUAL_SECONDS_MAX)
