"""Transactions as the admin client sees them: who has one open, where, since when, and how to end it.

Coordinators know transactional ids, leaders know producer ids; what readers wait for is found by asking both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.client.admin.calls import AdminCalls, problem
from barnabas.client.cluster.coordinators import Coordinator, KeyKind
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.transport.versions import NO_LIMIT
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse


class ListedTransaction(NamedTuple):
    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


class TransactionDescription(NamedTuple):
    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int  # -1 if it has none open and had none
    partitions: tuple[TopicPartition, ...]


class ActiveProducer(NamedTuple):
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_timestamp_ms: int
    transaction_start_offset: int  # -1 if it has no transaction open


class TransactionAdmin(AdminCalls):
    async def list_transactions(
        self, *, states: Iterable[str] = (), producer_ids: Iterable[int] = (), pattern: str | None = None
    ) -> list[ListedTransaction]:
        """The transactional ids of every coordinator, by name."""
        request = ListTransactionsRequest(
            state_filters=list(states), producer_id_filters=list(producer_ids), transactional_id_pattern=pattern
        )
        await self.cluster.refresh()
        found = []
        for broker in sorted(self.cluster.metadata.brokers):
            answer = await self._transactions_of(broker, request)
            if answer.unknown_state_filters:
                raise ApiError(errors.INVALID_REQUEST, f"there is no state {answer.unknown_state_filters[0]!r}")
            found += [
                ListedTransaction(row.transactional_id, row.producer_id, row.transaction_state, broker)
                for row in answer.transaction_states
            ]
        return sorted(found)

    async def _transactions_of(self, broker: int, request: ListTransactionsRequest) -> ListTransactionsResponse:
        async def attempt() -> ListTransactionsResponse:
            answer = await self.cluster.call(broker, request, ListTransactionsResponse, version_max=NO_LIMIT)
            error = problem(answer.error_code, None, about=f"broker {broker}")
            if error is not None:
                raise error
            return answer

        return await self.cluster.retrying(attempt)

    async def describe_transactions(self, ids: Iterable[str]) -> dict[str, TransactionDescription | ApiError]:
        found: dict[str, TransactionDescription | ApiError] = {}
        for transactional_id in ids:
            try:
                found[transactional_id] = await self.describe_transaction(transactional_id)
            except ApiError as error:
                found[transactional_id] = error
        return found

    async def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        async def attempt() -> TransactionDescription:
            broker = await self._coordinator_of(transactional_id)
            request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
            answer = await self.cluster.call(broker, request, DescribeTransactionsResponse, version_max=NO_LIMIT)
            (row,) = answer.transaction_states
            error = problem(row.error_code, None, about=transactional_id)
            if error is not None:
                raise error
            return TransactionDescription(
                transactional_id=transactional_id,
                coordinator=broker,
                state=row.transaction_state,
                producer_id=row.producer_id,
                producer_epoch=row.producer_epoch,
                timeout_ms=row.transaction_timeout_ms,
                started_ms=row.transaction_start_time_ms,
                partitions=tuple(
                    TopicPartition(topic.topic, each) for topic in row.topics for each in topic.partitions
                ),
            )

        return await self.cluster.retrying(attempt)

    async def fence_producer(self, transactional_id: str) -> int:
        """Shut out whoever uses an id, abort what it has open, and return when that is done: the id's new epoch."""

        async def attempt() -> int:
            broker = await self._coordinator_of(transactional_id)
            request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1)
            answer = await self.cluster.call(broker, request, InitProducerIdResponse, version_max=NO_LIMIT)
            error = problem(answer.error_code, None, about=transactional_id)
            if error is not None:
                raise error
            return answer.producer_epoch

        return await self.cluster.retrying(attempt)

    async def describe_producers(self, partition: TopicPartition) -> list[ActiveProducer]:
        """Who has written to a partition with a producer id, as its leader remembers."""

        async def attempt() -> list[ActiveProducer]:
            topic = DescribeProducersRequest.TopicRequest(name=partition.topic, partition_indexes=[partition.partition])
            request = DescribeProducersRequest(topics=[topic])
            broker = await self._leader_of(partition)
            answer = await self.cluster.call(broker, request, DescribeProducersResponse, version_max=NO_LIMIT)
            row = answer.topics[0].partitions[0]
            error = problem(row.error_code, row.error_message, about=str(partition))
            if error is not None:
                raise error
            return [
                ActiveProducer(
                    each.producer_id,
                    each.producer_epoch,
                    each.coordinator_epoch,
                    each.last_timestamp,
                    each.current_txn_start_offset,
                )
                for each in row.active_producers
            ]

        return await self.cluster.retrying(attempt)

    async def abort_in_partition(self, partition: TopicPartition, producer: ActiveProducer) -> None:
        """End a transaction in one partition without asking its coordinator: for one that no coordinator knows."""
        topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic(
            name=partition.topic, partition_indexes=[partition.partition]
        )
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            coordinator_epoch=max(producer.coordinator_epoch, 0),
            transaction_result=False,
            topics=[topic],
        )

        async def attempt() -> None:
            broker = await self._leader_of(partition)
            request = WriteTxnMarkersRequest(markers=[marker])
            answer = await self.cluster.call(broker, request, WriteTxnMarkersResponse, version_max=NO_LIMIT)
            code = answer.markers[0].topics[0].partitions[0].error_code
            error = problem(code, None, about=str(partition))
            if error is not None:
                raise error

        await self.cluster.retrying(attempt)

    async def _leader_of(self, partition: TopicPartition) -> int:
        topic = await self.cluster.topic(partition.topic)
        if not 0 <= partition.partition < len(topic.partitions):
            raise ApiError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {partition}")
        leader = self.cluster.leader_of(partition)
        if leader is None:
            raise ApiError(errors.LEADER_NOT_AVAILABLE)
        return leader

    async def _coordinator_of(self, transactional_id: str) -> int:
        coordinator = Coordinator(self.cluster, KeyKind.TRANSACTION, transactional_id)
        coordinator.forget()  # it may have moved since
        return await coordinator.find()
