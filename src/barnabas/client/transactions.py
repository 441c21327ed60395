"""A producer's transactions: its identity at the coordinator, what is part of the open one, and how it ends.

The sender asks :meth:`Transactions.join` before it produces and reports failures; the producer begins and ends. Both
versions of the protocol are spoken: with version 2 (KIP-890) producing itself adds a partition, and every end gives a
new epoch.

::

    IDLE --begin--> OPEN --commit, abort--> IDLE
    OPEN --a record or offset failed--> DOOMED --abort--> IDLE
    OPEN, DOOMED --nobody heard how it ended--> ENDING --the same end again--> IDLE
    any --fenced--> FENCED
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.coordinators import Coordinator, KeyKind
from barnabas.client.errors import NoTransaction, ProducerFenced, TransactionAborted
from barnabas.client.group.commits import GROUP_LANE, GroupMetadata, OffsetAndMetadata, check_storable
from barnabas.client.partitions.protocol import by_topic
from barnabas.client.produce.batch import Identity
from barnabas.client.produce.transaction_requests import (
    OpenTransaction,
    add_offsets_request,
    add_partitions_request,
    offset_commit_request,
)
from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError, WireError, error_of
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitResponse

__all__ = ["OpenTransaction", "State", "Transactions"]

LANE: Final = "transactions"
IMPLICIT_SINCE: Final = 2  # of transaction.version
VERSION_1_PRODUCE_MAX: Final = 11
VERSION_1_ADD_MAX: Final = 3
VERSION_1_OFFSETS_MAX: Final = 4
VERSION_1_END_MAX: Final = 4

_LOST_COORDINATOR: Final = frozenset({errors.COORDINATOR_NOT_AVAILABLE, errors.NOT_COORDINATOR})
_FENCED: Final = frozenset({errors.PRODUCER_FENCED, errors.INVALID_PRODUCER_EPOCH, errors.INVALID_PRODUCER_ID_MAPPING})


class State(enum.Enum):
    IDLE = "idle"
    OPEN = "open"
    DOOMED = "doomed"
    ENDING = "ending"
    FENCED = "fenced"


class Transactions:
    def __init__(self, cluster: Cluster, transactional_id: str, *, timeout_ms: int) -> None:
        self.transactional_id = transactional_id
        self.state = State.IDLE
        self.identity = Identity()
        self.is_implicit = False  # version 2 of the protocol
        self._reason: BarnabasError | None = None
        self._is_started = False  # the coordinator may know of the open transaction
        self._is_commit = False  # the end that was asked for last
        self._cluster = cluster
        self._coordinator = Coordinator(cluster, KeyKind.TRANSACTION, transactional_id)
        self._timeout_ms = timeout_ms
        self._added: set[TopicPartition] = set()
        self._adding = asyncio.Lock()

    @property
    def handle(self) -> OpenTransaction:
        return OpenTransaction(self.transactional_id, *self.identity)

    # --- begin and end --------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        if self.state is State.FENCED:
            raise self._fenced()
        if self.state is not State.IDLE:
            raise NoTransaction("a transaction is open already; end it before the next one")
        if self.identity == Identity():
            await self._init()
        self._added.clear()
        self._is_started = False
        self._reason = None
        self.state = State.OPEN

    def check_open(self) -> None:
        """Only in an open transaction that can still succeed may anything be sent."""
        if self.state is State.OPEN:
            return
        if self.state is State.FENCED:
            raise self._fenced()
        if self.state is State.DOOMED:
            raise TransactionAborted(f"the transaction cannot be committed any more: {self._reason}")
        raise NoTransaction("a producer with transactional.id sends only inside of a transaction")

    def fail(self, error: BarnabasError) -> None:
        """A record or an offset was not written, so the whole cannot be committed."""
        if self.state is State.OPEN:
            self.state = State.DOOMED
            self._reason = error

    async def end(self, *, commit: bool) -> None:
        """Tell the coordinator. Whether anything is still under way is the producer's to know."""
        self.check_end(commit=commit)
        if self._is_started:
            answer = await self._ended(commit=commit)
            if answer.producer_id >= 0:
                self.identity = Identity(answer.producer_id, answer.producer_epoch)
            elif not commit:
                await self._init()  # sequences may have gaps; a new epoch begins them anew
        self.state = State.IDLE

    def check_end(self, *, commit: bool) -> None:
        """Only an open transaction can be committed; one whose end is not known can only be ended the same way."""
        if self.state is State.ENDING:
            if commit is not self._is_commit:
                asked = "a commit" if self._is_commit else "an abort"
                raise NoTransaction(f"{asked} was asked for, and nobody knows what came of it: ask for it again")
        elif commit:
            self.check_open()
        elif self.state is State.FENCED:
            raise self._fenced()
        elif self.state is State.IDLE:
            raise NoTransaction("there is no transaction to abort")

    async def _ended(self, *, commit: bool) -> EndTxnResponse:
        """Whoever is interrupted here, or gives up, does not know whether the coordinator has heard it."""
        before, self.state, self._is_commit = self.state, State.ENDING, commit
        try:
            return await self._told_end(commit=commit)
        except BarnabasError as error:
            if self.state is State.ENDING and not error.retriable:
                self.state = before
            raise

    def hand_over(self) -> OpenTransaction:
        """Somebody else ends it. This producer takes a new epoch if it is used again."""
        self.check_open()
        handle = self.handle
        self.state = State.IDLE
        self.identity = Identity()
        return handle

    async def _told_end(self, *, commit: bool) -> EndTxnResponse:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
            committed=commit,
        )

        async def attempt() -> EndTxnResponse:
            version_max = EndTxnRequest.versions[-1] if self.is_implicit else VERSION_1_END_MAX
            answer = await self._coordinator.call(request, EndTxnResponse, lane=LANE, version_max=version_max)
            self._check(error_of(answer.error_code), "the end of the transaction")
            return answer

        return await self._cluster.retrying(attempt)

    async def _init(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
        )

        async def attempt() -> Identity:
            answer = await self._coordinator.call(request, InitProducerIdResponse, lane=LANE)
            self._check(error_of(answer.error_code), "the producer's id")
            return Identity(answer.producer_id, answer.producer_epoch)

        self.identity = await self._cluster.retrying(attempt)
        self.is_implicit = await self._speaks_version_2()

    async def _speaks_version_2(self) -> bool:
        connection = self._cluster.connection(await self._coordinator.find(), LANE)
        await connection.open()
        ranges = connection.ranges
        return (
            ranges.features.get("transaction.version", 0) >= IMPLICIT_SINCE
            and ranges.highest_common(EndTxnRequest) > VERSION_1_END_MAX
        )

    # --- what is part of it ---------------------------------------------------------------------------------------

    async def join(self, partitions: Iterable[TopicPartition]) -> None:
        """Before records go to these partitions: make them part of the transaction."""
        async with self._adding:
            new = sorted(set(partitions) - self._added)
            self._is_started = True
            if new and not self.is_implicit:
                await self._cluster.retrying(lambda: self._add(new))
            self._added.update(new)

    async def _add(self, partitions: list[TopicPartition]) -> None:
        answer = await self._coordinator.call(
            add_partitions_request(self.handle, partitions),
            AddPartitionsToTxnResponse,
            lane=LANE,
            version_max=VERSION_1_ADD_MAX,
        )
        for topic in answer.results_by_topic_v3_and_below:
            for part in topic.results_by_partition:
                self._check(error_of(part.partition_error_code), f"{topic.name}-{part.partition_index}")

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], group: GroupMetadata
    ) -> None:
        """Store a group's offsets if, and only if, the transaction commits."""
        self.check_open()
        check_storable(offsets)
        if not offsets:
            return
        entries = {
            place: entry if isinstance(entry, OffsetAndMetadata) else OffsetAndMetadata(entry)
            for place, entry in offsets.items()
        }
        coordinator = Coordinator(self._cluster, KeyKind.GROUP, group.group_id)
        self._is_started = True
        try:
            if not self.is_implicit:
                await self._cluster.retrying(lambda: self._add_group(group.group_id))
            await self._cluster.retrying(lambda: self._store(coordinator, group, entries))
        except BarnabasError as error:
            self.fail(error)
            raise

    async def _add_group(self, group_id: str) -> None:
        answer = await self._coordinator.call(
            add_offsets_request(self.handle, group_id), AddOffsetsToTxnResponse, lane=LANE
        )
        self._check(error_of(answer.error_code), f"group {group_id!r}")

    async def _store(
        self, coordinator: Coordinator, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        request = offset_commit_request(self.handle, group, offsets, by_topic(offsets))
        version_max = type(request).versions[-1] if self.is_implicit else VERSION_1_OFFSETS_MAX
        answer = await coordinator.call(request, TxnOffsetCommitResponse, lane=GROUP_LANE, version_max=version_max)
        for topic in answer.topics:
            for part in topic.partitions:
                row = error_of(part.error_code)
                if row in _LOST_COORDINATOR:
                    coordinator.forget()
                    raise ApiError(row)
                self._check(row, f"the offset of {topic.name}-{part.partition_index}")

    def _check(self, row: WireError, about: str) -> None:
        if row is errors.NONE:
            return
        if row in _LOST_COORDINATOR:
            self._coordinator.forget()
        if row in _FENCED:
            self.state = State.FENCED
            raise ProducerFenced(row, f"{about}: {row.text}")
        raise ApiError(row, f"{about}: {row.text}")

    def _fenced(self) -> ProducerFenced:
        return ProducerFenced(errors.PRODUCER_FENCED, f"another producer has taken {self.transactional_id!r}")


async def end_transaction(cluster: Cluster, transaction: OpenTransaction, *, commit: bool) -> None:
    """End what another process began and handed over. Asking twice for the same end is no error."""
    taken = Transactions(cluster, transaction.transactional_id, timeout_ms=0)
    taken.identity = Identity(transaction.producer_id, transaction.producer_epoch)
    taken.is_implicit = await cluster.retrying(taken._speaks_version_2)
    await taken._told_end(commit=commit)
