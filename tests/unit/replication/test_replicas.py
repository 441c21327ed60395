"""All replicas of a broker: the metadata is followed, and if that cannot be done, nobody waits for ever."""

from __future__ import annotations

import asyncio
from typing import NoReturn

import pytest
from trio import TOPIC, TOPIC_ID, Trio

from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.testing.loop import simulate


def test_a_picture_that_cannot_be_applied_fails_the_node_and_all_who_wait_for_it() -> None:
    async def main() -> None:
        async with Trio() as trio:
            broker, reports = trio.brokers[1], []
            handler = lambda _, context: reports.append(context["task_name"])  # noqa: E731
            asyncio.get_running_loop().set_exception_handler(handler)

            def broken(*_: object) -> NoReturn:
                raise RuntimeError("no such setting")

            broker.replicas._settings_of = broken
            trio.add_partition(1, leader=1)
            with pytest.raises(RuntimeError, match="no such setting"):
                await broker.replicas.caught_up(trio.image.offset)
            assert [str(failure) for failure in trio.failures] == ["no such setting"]
            trio.failures.clear()
            assert reports == ["replicas"]

    simulate(main)


def test_partitions_move_between_fetchers_with_their_leader() -> None:
    async def main() -> None:
        async with Trio() as trio:
            assert [len(broker.replication.fetchers) for broker in trio.brokers.values()] == [0, 1, 1]
            trio.change(leader=2)
            await trio.settled(10)
            assert [len(broker.replication.fetchers) for broker in trio.brokers.values()] == [1, 0, 1]
            assert {state.partition.leader_id for state in trio.brokers[3].replication.fetchers.states()} == {2}
            trio.change(leader=-1)
            await trio.settled(10)
            assert [len(broker.replication.fetchers) for broker in trio.brokers.values()] == [0, 0, 0]

    simulate(main)


def test_who_names_an_epoch_hears_of_that_first() -> None:
    async def main() -> None:
        async with Trio() as trio:
            trio.change(leader=2)
            await trio.settled(10)
            expected = {0: errors.FENCED_LEADER_EPOCH, 2: errors.UNKNOWN_LEADER_EPOCH, 1: errors.NOT_LEADER_OR_FOLLOWER}
            for epoch, error in expected.items():
                with pytest.raises(ApiError) as refused:
                    trio.brokers[3].replicas.leader_in(TOPIC, 0, epoch)
                assert refused.value.error is error
            assert trio.brokers[2].replicas.leader_in(TOPIC, 0, 1).is_leader

    simulate(main)


def test_more_fetchers_share_the_partitions_of_a_leader() -> None:
    async def main() -> None:
        async with Trio() as trio:
            for index in range(1, 8):
                trio.add_partition(index, leader=1)
            await trio.settled(100)
            trio.settings = type(trio.settings).of({"num.replica.fetchers": "4"})
            fetchers = trio.brokers[2].replication.fetchers
            fetchers.resize()
            await trio.settled(100)
            assert sorted(len(fetcher.partitions) for fetcher in fetchers._by_lane.values()) == [2, 2, 2, 2]
            for index in range(8):
                partition = trio.brokers[1].replicas.by_id[TOPIC_ID, index]
                async with asyncio.timeout(5):
                    assert await partition.acknowledged(trio.append(partition, b"x"))

    simulate(main)
