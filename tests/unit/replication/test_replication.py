"""Three brokers replicate a partition: acknowledged means that all in-sync replicas have it, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from trio import Trio, content

from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.testing.loop import simulate

LAG_MS = 30_000


def play(scene: Callable[[Trio], Awaitable[None]], *, seed: int = 0, **options: Any) -> None:
    async def main() -> None:
        async with Trio(seed, **options) as trio:
            await scene(trio)

    simulate(main, seed=seed, time_s_max=3600)


def test_a_record_is_acknowledged_when_all_in_sync_replicas_have_it() -> None:
    async def scene(trio: Trio) -> None:
        leader = trio.leader()
        offset = trio.append(leader, b"one")
        assert leader.log.high_watermark == 0, "nobody has it yet"
        async with asyncio.timeout(1):
            assert await leader.acknowledged(offset)
        for broker in trio.brokers.values():
            assert content(broker.partition) == content(leader)

    play(scene)


def test_followers_learn_the_high_watermark_with_their_next_fetch() -> None:
    async def scene(trio: Trio) -> None:
        await leader_acknowledges(trio, b"one")
        await trio.settled()
        assert [broker.partition.log.high_watermark for broker in trio.brokers.values()] == [1, 1, 1]

    play(scene)


async def leader_acknowledges(trio: Trio, value: bytes) -> int:
    leader = trio.leader()
    offset = trio.append(leader, value)
    async with asyncio.timeout(60):
        assert await leader.acknowledged(offset)
    return offset


def test_a_dead_follower_leaves_the_isr_after_the_lag_time_and_not_before() -> None:
    async def scene(trio: Trio) -> None:
        await leader_acknowledges(trio, b"one")
        trio.isolate(3)
        leader = trio.leader()
        offset = trio.append(leader, b"two")
        await trio.settled(LAG_MS - 1000)
        assert trio.isr == [1, 2, 3]
        assert leader.log.high_watermark == offset, "the follower that is away still counts"
        await trio.settled(LAG_MS)
        assert trio.isr == [1, 2]
        assert leader.log.high_watermark == offset + 1
        trio.heal()
        await trio.settled(5000)
        assert trio.isr == [1, 2, 3]
        assert content(trio.brokers[3].partition) == content(leader)

    play(scene)


def test_an_idle_follower_stays_in_sync_for_ever() -> None:
    async def scene(trio: Trio) -> None:
        await leader_acknowledges(trio, b"one")
        trio.isolate(3)
        await trio.settled(10 * LAG_MS)
        assert trio.isr == [1, 2, 3], "it has everything, so it lags behind nothing"

    play(scene)


def test_below_the_minimum_nothing_is_accepted_and_the_high_watermark_stays() -> None:
    async def scene(trio: Trio) -> None:
        await leader_acknowledges(trio, b"one")
        trio.isolate(2)
        trio.isolate(3)
        trio.cuts -= {(0, 1), (1, 0)}
        leader = trio.leader()
        late = trio.append(leader, b"late")
        await trio.settled(3 * LAG_MS)
        assert trio.isr == [1]
        with pytest.raises(ApiError) as refused:
            trio.append(leader, b"refused")
        assert refused.value.error is errors.NOT_ENOUGH_REPLICAS
        trio.append(leader, b"acks=1", is_waiting_for_all=False)
        await trio.settled()
        assert leader.log.high_watermark == late, "what only the leader has is not committed (KIP-966)"
        trio.heal()
        await trio.settled(5000)
        assert trio.isr == [1, 2, 3]
        assert leader.log.high_watermark == leader.log.end_offset

    play(scene)


def test_a_deposed_leader_gives_up_its_waiters_and_cuts_what_was_not_committed() -> None:
    async def scene(trio: Trio) -> None:
        await leader_acknowledges(trio, b"one")
        old = trio.leader()
        trio.isolate(1)
        lost = trio.append(old, b"lost")
        waiting = asyncio.ensure_future(old.acknowledged(lost))
        trio.change(leader=2, isr=[2, 3])
        await asyncio.sleep(0.01)
        await leader_acknowledges(trio, b"kept")
        assert old.is_leader, "it has heard nothing"
        assert not waiting.done()
        trio.heal()
        assert not await waiting
        await trio.settled(5000)
        assert content(trio.brokers[1].partition) == content(trio.leader())
        assert [epoch for _, epoch, _ in content(trio.leader())] == [0, 1]
        assert trio.isr == [1, 2, 3]

    play(scene)


def test_histories_that_parted_more_than_once_are_cut_step_by_step() -> None:
    """Leaders of epochs 1 and 2 wrote alone, each in ignorance of the other."""

    async def scene(trio: Trio) -> None:
        await leader_acknowledges(trio, b"common")
        await trio.settled()
        for _ in range(3):
            trio.part()
            for value in (b"a", b"b", b"c"):
                trio.append(trio.brokers[1].partition, value, is_waiting_for_all=False)
            trio.change(leader=2, isr=[2, 3])
            await asyncio.sleep(0.01)
            trio.append(trio.brokers[2].partition, b"d", is_waiting_for_all=False)
            trio.change(leader=1, isr=[1, 2, 3])
            await asyncio.sleep(0.01)
        trio.heal()
        trio.change(leader=3, isr=[3])
        await trio.settled(5000)
        assert len({tuple(content(broker.partition)) for broker in trio.brokers.values()}) == 1
        assert trio.isr == [1, 2, 3]

    play(scene, min_insync_replicas=1)


def test_a_follower_that_is_far_behind_starts_where_the_leader_starts() -> None:
    async def scene(trio: Trio) -> None:
        await leader_acknowledges(trio, b"one")
        trio.isolate(3)
        trio.fence(trio.brokers[3])
        trio.change(isr=[1, 2])
        leader = trio.leader()
        for _ in range(20):
            await leader_acknowledges(trio, b"x")
        leader.delete_records(15)
        trio.heal()
        trio.register(trio.brokers[3])
        await trio.settled(5000)
        follower = trio.brokers[3].partition
        assert (follower.log.log_start_offset, follower.log.end_offset) == (15, 21)
        assert trio.isr == [1, 2, 3]

    play(scene)


def test_followers_follow_the_start_of_the_log_and_the_leader_hears_of_it() -> None:
    async def scene(trio: Trio) -> None:
        for _ in range(5):
            await leader_acknowledges(trio, b"x")
        await trio.settled()
        leader = trio.leader()
        leader.delete_records(3)
        assert leader.low_watermark == 0
        await trio.settled(3000)
        assert [broker.partition.log.log_start_offset for broker in trio.brokers.values()] == [3, 3, 3]
        assert leader.low_watermark == 3

    play(scene)


def test_a_follower_that_crashed_must_catch_up_in_its_new_epoch() -> None:
    async def scene(trio: Trio) -> None:
        await leader_acknowledges(trio, b"one")
        follower = trio.brokers[3]
        await follower.stop(loses_power=True)
        trio.fence(follower)
        trio.change(isr=[1, 2])
        await leader_acknowledges(trio, b"two")
        trio.register(follower)
        await follower.start()
        await trio.settled(5000)
        assert trio.isr == [1, 2, 3]
        assert content(follower.partition) == content(trio.leader())

    play(scene)


def test_with_flush_messages_1_what_is_acknowledged_is_on_every_disk() -> None:
    async def scene(trio: Trio) -> None:
        await leader_acknowledges(trio, b"one")
        for broker in trio.brokers.values():
            assert broker.partition.log.recovery_point >= 1
            await broker.stop(loses_power=True)
        for broker in trio.brokers.values():
            trio.register(broker)
            await broker.start()
        assert all(len(content(broker.partition)) == 1 for broker in trio.brokers.values())

    play(scene, flush_messages=1)


def test_a_follower_that_could_join_again_holds_the_high_watermark_for_the_lag_time_only() -> None:
    async def scene(trio: Trio) -> None:
        await leader_acknowledges(trio, b"one")
        trio.isolate(3)
        trio.change(isr=[1, 2])
        leader = trio.leader()
        trio.append(leader, b"two")
        await trio.settled(LAG_MS - 1000)
        assert leader.log.high_watermark == 1, "it was in sync a moment ago and may ask to be so again"
        await trio.settled(LAG_MS)
        assert leader.log.high_watermark == 2

    play(scene)


def test_a_controller_that_is_away_for_a_while_is_asked_again() -> None:
    async def scene(trio: Trio) -> None:
        trio.is_controller_deaf = True
        trio.isolate(3)
        trio.append(trio.leader(), b"one")
        await trio.settled(2 * LAG_MS)
        assert trio.isr == [1, 2, 3]
        trio.is_controller_deaf = False
        await trio.settled(1000)
        assert trio.isr == [1, 2]

    play(scene)


def test_a_leader_that_hears_from_no_follower_sends_producers_to_look_for_another() -> None:
    async def scene(trio: Trio) -> None:
        await leader_acknowledges(trio, b"one")
        leader = trio.leader()
        trio.isolate(3)
        await trio.settled(10_000)
        assert leader.why_late(10_000) is errors.REQUEST_TIMED_OUT, "one follower is there: this one leads"
        trio.isolate(2)
        await trio.settled(1_000)
        assert leader.why_late(100) is errors.REQUEST_TIMED_OUT, "a follower may take its time"
        await trio.settled(10_000)
        assert leader.why_late(5_000) is errors.NOT_LEADER_OR_FOLLOWER

    play(scene)
