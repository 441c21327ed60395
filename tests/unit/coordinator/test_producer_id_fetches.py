"""Producer ids for time-outs: fetched once for each transactional id, and again after a failure."""

from __future__ import annotations

import asyncio

from barnabas.coordinator.transactions.producer_id_fetches import ProducerIdFetches
from barnabas.coordinator.transactions.requests import AbortTimedOut, FetchProducerId
from barnabas.model import errors
from barnabas.model.errors import ApiError


def test_an_id_is_fetched_once_and_handed_to_the_shard() -> None:
    async def story() -> None:
        reported: list[tuple[int, AbortTimedOut]] = []
        ready = asyncio.Event()
        answers = [ApiError(errors.COORDINATOR_NOT_AVAILABLE), 41, 42]

        async def next_id() -> int:
            await ready.wait()
            answer = answers.pop(0)
            if isinstance(answer, ApiError):
                raise answer
            return answer

        fetches = ProducerIdFetches(next_id, report=lambda index, message: reported.append((index, message)))
        for _ in range(2):
            fetches.start(3, FetchProducerId("orders"))
            fetches.start(3, FetchProducerId("orders"))
            ready.set()
            for _ in range(5):
                await asyncio.sleep(0)
        assert reported == [(3, AbortTimedOut(transactional_id="orders", fresh_producer_id=41))]
        ready.clear()
        fetches.start(3, FetchProducerId("orders"))
        await fetches.stop()
        assert len(reported) == 1

    asyncio.run(story())
