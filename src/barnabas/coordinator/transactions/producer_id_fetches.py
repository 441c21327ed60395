"""Producer ids for transactions that time out with the last epoch: fetched from the cluster, then handed to the shard.

A shard decides without waiting, so it sends ``FetchProducerId`` and gets ``AbortTimedOut`` once the id is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.coordinator.transactions.requests import AbortTimedOut, FetchProducerId
from barnabas.model.errors import ApiError
from barnabas.observe.log import logger

log = logger("transactions")


class ProducerIdFetches:
    def __init__(
        self, next_producer_id: Callable[[], Awaitable[int]], *, report: Callable[[int, AbortTimedOut], None]
    ) -> None:
        """``report(index, …)`` gives the shard the id that it needs."""
        self._next_producer_id = next_producer_id
        self._report = report
        self._tasks: dict[tuple[int, str], asyncio.Task[None]] = {}

    def start(self, index: int, message: FetchProducerId) -> None:
        """Fetch an id, unless one is being fetched for the same transactional id."""
        key = (index, message.transactional_id)
        if key in self._tasks:
            return
        name = f"producer-id:{message.transactional_id}"
        task = asyncio.get_running_loop().create_task(self._fetch(index, message.transactional_id), name=name)
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._tasks.pop(key, None))

    async def stop(self) -> None:
        tasks = [task for _, task in sorted(self._tasks.items())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fetch(self, index: int, transactional_id: str) -> None:
        try:
            fresh = await self._next_producer_id()
        except ApiError as error:
            # The next check for time-outs tries again.
            log.info("no producer id to abort with", transactional_id=transactional_id, reason=error)
            return
        self._report(index, AbortTimedOut(transactional_id=transactional_id, fresh_producer_id=fresh))
