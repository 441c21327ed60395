"""The transaction coordinator as the broker's handlers see it: questions about transactional ids, answered by shards.

It finds the shard, brings producer ids where one is needed, and keeps the markers going. What is decided is decided in
``transactions``; the runtime makes it durable.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from barnabas.coordinator.runtime.effects import Question
from barnabas.coordinator.runtime.partitioning import partition_of
from barnabas.coordinator.runtime.runtime import CoordinatorRuntime
from barnabas.coordinator.transactions.marker_delivery import MarkerDelivery
from barnabas.coordinator.transactions.markers import MarkerSender
from barnabas.coordinator.transactions.producer_id_fetches import ProducerIdFetches
from barnabas.coordinator.transactions.requests import (
    AddPartitions,
    Describe,
    EndTransaction,
    FetchProducerId,
    InitProducer,
    ListAll,
    NeedsProducerId,
    Outcome,
    VerifyPartitions,
    WriteMarkers,
)
from barnabas.coordinator.transactions.shard import TransactionRules, TransactionShard
from barnabas.coordinator.transactions.state import Transaction
from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError
from barnabas.model.ids import TRANSACTIONS_TOPIC, TopicPartition
from barnabas.replication.replicas import Replicas
from barnabas.world.timers import Timers
from barnabas.world.world import World

R = TypeVar("R")


class TransactionCoordinator:
    def __init__(
        self,
        *,
        replicas: Replicas,
        world: World,
        timers: Timers,
        rules: Callable[[], TransactionRules],
        next_producer_id: Callable[[], Awaitable[int]],
        sender: MarkerSender,
    ) -> None:
        self._replicas = replicas
        self._next_producer_id = next_producer_id
        self._producer_ids = ProducerIdFetches(
            next_producer_id, report=lambda index, timed_out: self.runtime.post(index, timed_out)
        )
        self._delivery = MarkerDelivery(
            sender,
            timers,
            coordinator_epoch=lambda index: replicas.leader(TRANSACTIONS_TOPIC, index).leader_epoch,
            report=lambda index, written: self.runtime.post(index, written),
        )
        self.runtime = CoordinatorRuntime(
            topic=TRANSACTIONS_TOPIC,
            replicas=replicas,
            world=world,
            timers=timers,
            make_shard=lambda _: TransactionShard(rules),
            perform=self._perform,
        )

    @property
    def markers_under_way(self) -> int:
        return len(self._delivery)

    async def stop(self) -> None:
        await self._producer_ids.stop()
        await self._delivery.stop()
        await self.runtime.stop()

    def _perform(self, index: int, message: WriteMarkers | FetchProducerId) -> None:
        if isinstance(message, WriteMarkers):
            self._delivery.start(index, message)
        else:
            self._producer_ids.start(index, message)

    # --- producers ------------------------------------------------------------------------------------------------

    async def init_producer(self, request: InitProducer) -> Outcome:
        return await self._outcome(request)

    async def end(self, request: EndTransaction) -> Outcome:
        return await self._outcome(request)

    async def add_partitions(self, request: AddPartitions) -> Outcome:
        return await self._outcome(request)

    async def verify(self, request: VerifyPartitions) -> dict[TopicPartition, WireError]:
        try:
            return await self._ask(request.transactional_id, request)
        except ApiError as error:
            return dict.fromkeys(sorted(request.partitions), error.error)

    async def until_ended(self, transactional_id: str, *, timeout_ms: int) -> None:
        """Wait while the last transaction of an id is being ended by this coordinator, but no longer than that."""
        await self._delivery.until_written(self._index(transactional_id), transactional_id, timeout_ms=timeout_ms)

    async def _outcome(self, request: InitProducer | EndTransaction | AddPartitions) -> Outcome:
        if not request.transactional_id:
            return Outcome(errors.INVALID_REQUEST)
        try:
            answer: Outcome | NeedsProducerId = await self._ask(request.transactional_id, request)
            if isinstance(answer, NeedsProducerId):
                assert not isinstance(request, AddPartitions)
                fresh = await self._next_producer_id()
                answer = await self._ask(request.transactional_id, replace(request, fresh_producer_id=fresh))
        except ApiError as error:
            return Outcome(error.error)
        assert isinstance(answer, Outcome)
        return answer

    # --- administrators -------------------------------------------------------------------------------------------

    async def describe(self, transactional_id: str) -> Transaction:
        """The state of one id; ApiError if there is none here."""
        if not transactional_id:
            raise ApiError(errors.INVALID_REQUEST)
        found = await self._ask(transactional_id, Describe(transactional_id))
        if found is None:
            raise ApiError(errors.TRANSACTIONAL_ID_NOT_FOUND)
        return found

    async def all(self) -> list[Transaction]:
        """Every transactional id whose coordinator this broker is; ApiError while some are being loaded."""
        if self.runtime.loading:
            raise ApiError(errors.COORDINATOR_LOAD_IN_PROGRESS)
        found: list[Transaction] = []
        for index in self.runtime.active:
            found += await self.runtime.ask(index, ListAll())
        return found

    async def _ask(self, transactional_id: str, request: Question[R]) -> R:
        return await self.runtime.ask(self._index(transactional_id), request)

    def _index(self, transactional_id: str) -> int:
        topic = self._replicas.image.topics.by_name.get(TRANSACTIONS_TOPIC)
        if topic is None:
            raise ApiError(errors.NOT_COORDINATOR)
        return partition_of(transactional_id, len(topic.partitions))
