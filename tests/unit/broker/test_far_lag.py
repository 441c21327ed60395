"""Questions to the leaders of far partitions: few at once, none twice, and none to a leader that does not answer."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.lag.remote_lag import PAUSE_MS, REQUESTS_MAX, Committed, FarLags
from barnabas.broker.lag.remote_queries import PARTITIONS_PER_REQUEST_MAX
from barnabas.model.ids import Uuid
from barnabas.transport.channel import PeerGone
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas.world.adjustable import AdjustableClock
from barnabas.world.real import RealClock
from barnabas.world.timers import Timers

LEADERS = 3 * REQUESTS_MAX
END = 9


class Ways:
    """Stands for the links to other brokers: every leader answers when it is let."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.at_once = self.at_once_max = 0
        self.silent: set[int] = set()

    def __contains__(self, node_id: int) -> bool:
        return node_id < LEADERS

    async def send(
        self, node_id: int, request: ListOffsetsRequest, *, lane: str, timeout_ms: int
    ) -> ListOffsetsResponse:
        self.asked.append(node_id)
        self.at_once += 1
        self.at_once_max = max(self.at_once_max, self.at_once)
        await asyncio.sleep(0.001)
        self.at_once -= 1
        if node_id in self.silent:
            raise PeerGone("gone")
        row = ListOffsetsResponse.ListOffsetsPartitionResponse
        return ListOffsetsResponse(
            topics=[
                ListOffsetsResponse.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        row(
                            partition_index=each.partition_index,
                            offset=END,
                            log_start_offset=0,
                            newest_timestamp=500,
                            unread_timestamps=[400] * len(each.unread_offsets or ()),
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


class Stage:
    """Partition p of the one topic is led by broker p modulo the number of leaders."""

    def __init__(self, partitions: int) -> None:
        self.clock = AdjustableClock(RealClock())
        self.timers = Timers(self.clock)
        self.ways = Ways()
        self.rows = [Committed("g", "t", index, 5) for index in range(partitions)]
        self.leader_count = LEADERS
        replicas: Any = SimpleNamespace(by_name={}, state_of=self._state_of)
        links: Any = self.ways
        self.lags = FarLags(
            lambda: iter(self.rows), replicas=replicas, links=links, clock=self.clock, timers=self.timers
        )

    def _state_of(self, topic: str, topic_id: Uuid, index: int) -> Any:
        return SimpleNamespace(leader=index % self.leader_count, leader_epoch=0)

    async def until(self, count: int) -> None:
        """So many requests were sent, and what they brought is known."""
        async with asyncio.timeout(10):
            while len(self.ways.asked) < count or self.ways.at_once:
                await asyncio.sleep(0.001)
        for _ in range(20):
            await asyncio.sleep(0)

    def known(self) -> int:
        return sum(self.lags.of(row) is not None for row in self.rows)


@pytest.fixture
def run() -> Any:
    def play(scene: Any, partitions: int) -> None:
        async def main() -> None:
            stage = Stage(partitions)
            await scene(stage)
            await stage.lags.stop()
            stage.timers.close()

        asyncio.run(main())

    return play


def test_few_leaders_are_asked_at_once_and_each_of_them_once(run: Any) -> None:
    async def scene(stage: Stage) -> None:
        stage.lags.look()
        stage.lags.look()
        await stage.until(LEADERS)
        assert sorted(stage.ways.asked) == list(range(LEADERS))
        assert stage.ways.at_once_max == REQUESTS_MAX
        assert stage.known() == len(stage.rows)
        lag = stage.lags.of(stage.rows[0])
        assert lag is not None
        assert (lag.records, lag.newest_ms, lag.unread_ms) == (END - 5, 500, 400)

    run(scene, 2 * LEADERS)


def test_one_leader_gets_one_request_after_the_other(run: Any) -> None:
    async def scene(stage: Stage) -> None:
        stage.leader_count = 1
        stage.lags.look()
        await stage.until(3)
        assert stage.ways.asked == [0, 0, 0]
        assert stage.ways.at_once_max == 1
        assert stage.known() == len(stage.rows)

    run(scene, 2 * PARTITIONS_PER_REQUEST_MAX + 1)


def test_a_leader_that_does_not_answer_is_asked_once_a_round(run: Any) -> None:
    async def scene(stage: Stage) -> None:
        stage.leader_count = 1
        stage.ways.silent = {0}
        stage.lags.look()
        await stage.until(1)
        assert (stage.ways.asked, stage.known()) == ([0], 0)
        stage.ways.silent = set()
        stage.clock.advance(PAUSE_MS)
        await stage.until(4)
        assert stage.known() == len(stage.rows)

    run(scene, 2 * PARTITIONS_PER_REQUEST_MAX + 1)


def test_a_partition_without_a_leader_that_can_be_reached_is_left_out(run: Any) -> None:
    async def scene(stage: Stage) -> None:
        stage.leader_count = LEADERS + 1  # there is no way to the last one
        stage.lags.look()
        await stage.until(LEADERS)
        assert stage.known() == LEADERS
        assert stage.lags.left_out == 0

    run(scene, LEADERS + 1)
