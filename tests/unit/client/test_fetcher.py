"""When the fetcher looks again."""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.client.consumer_settings import ConsumerSettings
from barnabas.client.cursor import Cursor
from barnabas.client.errors import TimedOut
from barnabas.client.fetcher import Fetcher
from barnabas.model.ids import TopicPartition
from barnabas.transport.backoff import Backoff

PAUSE_MS = 1
ANSWER_SECONDS = 0.02  # longer than the pause before the next attempt


class SlowToRefuse:
    """A cluster that cannot be reached, and takes its time to say so."""

    def __init__(self) -> None:
        self.asked = 0

    async def topic(self, name: str, **_: Any) -> None:
        self.asked += 1
        await asyncio.sleep(ANSWER_SECONDS)
        raise TimedOut("nobody answers")

    def invalidate(self) -> None:
        pass

    def backoff(self) -> Backoff:
        return Backoff(PAUSE_MS, PAUSE_MS, lambda limit: 0)


def test_a_refusal_that_took_longer_than_the_pause_is_followed_by_another_attempt() -> None:
    async def work() -> int:
        cluster: Any = SlowToRefuse()
        place = TopicPartition("orders", 0)
        cursor = Cursor(place, ConsumerSettings())
        cursor.seek(0)
        running = asyncio.create_task(Fetcher(cluster, ConsumerSettings(), {place: cursor}).run())
        async with asyncio.timeout(5):
            while cluster.asked < 3:
                await asyncio.sleep(ANSWER_SECONDS)
        running.cancel()
        await asyncio.wait([running])
        return int(cluster.asked)

    assert asyncio.run(work()) >= 3
