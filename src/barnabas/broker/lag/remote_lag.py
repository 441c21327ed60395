"""How far groups are behind in partitions whose logs are on other brokers: their leaders are asked, in the background.

They are asked every few seconds while somebody looks at the numbers, and nobody is asked otherwise. What is told of one
group in one partition was true at one moment, which was not long ago. What the numbers mean is said in ``group_lag``;
the other end is ``offset_times``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from barnabas.broker.lag.offset_times import UNKNOWN
from barnabas.broker.lag.remote_queries import Questions, Standing
from barnabas.metadata.image import PartitionImage
from barnabas.model.errors import ApiError, Malformed
from barnabas.model.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.replication.partition import Partition
from barnabas.transport.channel import PeerGone
from barnabas.transport.links import Links
from barnabas.wire.messages.list_offsets import ListOffsetsResponse
from barnabas.world.clock import Clock
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timers

LANE: Final = "lag"
PAUSE_MS: Final = 5_000  # from one round of questions to the next
LOOKING_MS: Final = 150_000  # after the last look: whoever looks every minute or two is told what was true just now
AGE_MS_MAX: Final = 30_000  # what is older is not told
ROWS_MAX: Final = 20_000  # partitions of groups that one round asks about
ROWS_PER_TURN: Final = 200
REQUESTS_MAX: Final = 4  # at once, to as many brokers
TIMEOUT_MS: Final = 5_000


class Committed(NamedTuple):
    group_id: str
    topic: str
    partition: int
    offset: int


class FarLag(NamedTuple):
    """What was true when the leader was asked. The time of the first unread record is −1 if there is none."""

    asked_ms: int  # on the monotonic clock
    records: int
    newest_ms: int
    unread_ms: int | None  # None if it could not be told


class Hosted(Protocol):
    """Which partitions are here, and who leads the others: :class:`barnabas.replication.replicas.Replicas`."""

    by_name: dict[tuple[str, int], Partition]

    def state_of(self, topic: str, topic_id: Uuid, index: int) -> PartitionImage | None: ...


class FarLags:
    def __init__(
        self,
        committed: Callable[[], Iterator[Committed]],
        *,
        replicas: Hosted,
        links: Links,
        clock: Clock,
        timers: Timers,
    ) -> None:
        self._committed = committed
        self._replicas = replicas
        self._links = links
        self._clock = clock
        self._timers = timers
        self._tasks = Tasks()
        self._looked_ms = 0
        self._standings: dict[TopicPartition, Standing] = {}  # of the last round
        self._lags: dict[tuple[str, str, int], FarLag] = {}
        self.left_out = 0  # how many partitions the last round did not ask about

    def look(self) -> None:
        """Somebody looks: go on asking for a while."""
        self._looked_ms = self._clock.monotonic_ms()
        self._tasks.once("far-lags", self._run)

    def of(self, row: Committed) -> FarLag | None:
        """What is known of one group in one partition; None if that is nothing, or too old."""
        found = self._lags.get(row[:3])
        is_told = found is not None and self._clock.monotonic_ms() - found.asked_ms <= AGE_MS_MAX
        return found if is_told else None

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _run(self) -> None:
        try:
            while self._clock.monotonic_ms() - self._looked_ms < LOOKING_MS:
                await self._round()
                await self._timers.sleep(PAUSE_MS)
        finally:
            self._lags.clear()
            self._standings.clear()

    async def _round(self) -> None:
        rows, asked = await self._questions()
        turns = asyncio.Semaphore(REQUESTS_MAX)
        await asyncio.gather(*(self._ask(leader, questions, turns) for leader, questions in sorted(asked.items())))
        standings: dict[TopicPartition, Standing] = {}
        for questions in asked.values():
            standings |= questions.standings
        now_ms = self._clock.monotonic_ms()
        lags: dict[tuple[str, str, int], FarLag] = {}
        for number, row in enumerate(rows, 1):
            if number % ROWS_PER_TURN == 0:
                await asyncio.sleep(0)
            lag = _lag(row, standings, now_ms) or self._lags.get(row[:3])
            if lag is not None:
                lags[row[:3]] = lag
        self._lags, self._standings = lags, standings

    async def _questions(self) -> tuple[list[Committed], dict[int, Questions]]:
        """What groups here have committed in partitions elsewhere, and what is to be asked of whom."""
        rows: list[Committed] = []
        asked: dict[int, Questions] = {}
        left_out = 0
        for number, row in enumerate(self._committed(), 1):
            if number % ROWS_PER_TURN == 0:
                await asyncio.sleep(0)
            _, topic, index, offset = row
            if (topic, index) in self._replicas.by_name:
                continue
            state = self._replicas.state_of(topic, ZERO_UUID, index)
            if state is None or state.leader not in self._links:
                continue
            if len(rows) >= ROWS_MAX:
                left_out += 1
                continue
            rows.append(row)
            place = TopicPartition(topic, index)
            asked.setdefault(state.leader, Questions(self._standings)).add(place, state.leader_epoch, offset)
        self.left_out = left_out
        return rows, asked

    async def _ask(self, leader: int, questions: Questions, turns: asyncio.Semaphore) -> None:
        """One request after the other; a leader that does not answer is left alone until the next round."""
        for request in questions.requests():
            try:
                async with turns:
                    answer = await self._links.send(leader, request, lane=LANE, timeout_ms=TIMEOUT_MS)
            except (PeerGone, TimeoutError, Malformed, ApiError):
                return
            assert isinstance(answer, ListOffsetsResponse)
            questions.take(answer, request)


def _lag(row: Committed, standings: dict[TopicPartition, Standing], now_ms: int) -> FarLag | None:
    standing = standings.get(TopicPartition(row.topic, row.partition))
    if standing is None:
        return None
    unread_ms = standing.time_of(row.offset)
    records = max(standing.end_offset - row.offset, 0)
    return FarLag(now_ms, records, standing.newest_ms, None if unread_ms == UNKNOWN else unread_ms)
