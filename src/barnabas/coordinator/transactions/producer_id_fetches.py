"""Producer ids for transactions that time out with the last epoch: fetched from the cluster, then handed to the shard.

A shard decides without waiting, so it sends ``FetchProducerId`` and gets ``AbortTimedOut`` once the id is there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from barnabas.coordinator.transactions.requests import AbortTimedOut, FetchProducerId
from barnabas.model.errors import ApiError
from barnabas.observe.log import logger
from barnabas.world.tasks import Tasks

log = logger("transactions")


class ProducerIdFetches:
    def __init__(
        self, next_producer_id: Callable[[], Awaitable[int]], *, report: Callable[[int, AbortTimedOut], None]
    ) -> None:
        """``report(index, …)`` gives the shard the id that it needs."""
        self._next_producer_id = next_producer_id
        self._report = report
        self._tasks = Tasks()

    def start(self, index: int, message: FetchProducerId) -> None:
        """Fetch an id, unless one is being fetched for the same transactional id."""
        transactional_id = message.transactional_id
        self._tasks.once(f"producer-id:{index}:{transactional_id}", lambda: self._fetch(index, transactional_id))

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _fetch(self, index: int, transactional_id: str) -> None:
        try:
            fresh = await self._next_producer_id()
        except ApiError as error:
            # The next check for time-outs tries again.
            log.info("no producer id to abort with", transactional_id=transactional_id, reason=error)
            return
        self._report(index, AbortTimedOut(transactional_id=transactional_id, fresh_producer_id=fresh))
