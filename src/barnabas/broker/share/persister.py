"""Calls of the share coordinator, in this process or on another broker: the state of share-partitions.

The share coordinator of a share-partition is the leader of a partition of ``__share_group_state``. Errors that another
attempt may cure are retried with a growing delay until a deadline; a write that was applied although its answer was
lost may be repeated, because state only moves forward.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from barnabas.coordinator.runtime.partitioning import partition_of
from barnabas.coordinator.share_state.batches import StateBatch
from barnabas.coordinator.share_state.records import SharePartitionKey
from barnabas.coordinator.share_state.requests import Delete, Initialize, Read, ReadSummary, ShareState, Write
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed, error_of
from barnabas.model.ids import NO_BROKER, SHARE_STATE_TOPIC
from barnabas.replication.replicas import Replicas
from barnabas.transport.channel import PeerGone
from barnabas.transport.links import Links
from barnabas.wire.message import Message
from barnabas.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from barnabas.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from barnabas.wire.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from barnabas.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from barnabas.wire.messages.write_share_group_state import WriteShareGroupStateRequest
from barnabas.world.clock import Clock
from barnabas.world.timers import Timers

LANE: Final = "share-state"
RETRY_MS_MIN: Final = 20
RETRY_MS_MAX: Final = 1_000
DEADLINE_MS: Final = 15_000  # time for all attempts of a call: below the request timeout of clients
_RETRIABLE: Final = (
    errors.NOT_COORDINATOR,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.NETWORK_EXCEPTION,
)

StateRequest = Initialize | Read | ReadSummary | Write | Delete


class Persister:
    def __init__(
        self,
        *,
        replicas: Replicas,
        ask_local: Callable[[SharePartitionKey, StateRequest], Awaitable[Any]],
        links: Links,
        clock: Clock,
        timers: Timers,
        timeout_ms: Callable[[], int],
        create_topic: Callable[[str], Awaitable[object]],
    ) -> None:
        self._replicas = replicas
        self._ask_local = ask_local
        self._links = links
        self._clock = clock
        self._timers = timers
        self._timeout_ms = timeout_ms
        self._create_topic = create_topic

    async def initialize(self, key: SharePartitionKey, *, state_epoch: int, start_offset: int) -> None:
        await self._call(Initialize(key, state_epoch, start_offset))

    async def read(self, key: SharePartitionKey, *, leader_epoch: int) -> ShareState:
        state: ShareState = await self._call(Read(key, leader_epoch))
        return state

    async def read_summary(self, key: SharePartitionKey) -> ShareState:
        """The start offset, the epochs and the number of completed deliveries; the batches are not among it."""
        state: ShareState = await self._call(ReadSummary(key))
        return state

    async def write(self, write: Write) -> None:
        await self._call(write)

    async def delete(self, key: SharePartitionKey) -> None:
        await self._call(Delete(key))

    # --- one call -------------------------------------------------------------------------------------------------

    async def _call(self, request: StateRequest) -> Any:
        delay_ms = RETRY_MS_MIN
        deadline_ms = self._clock.monotonic_ms() + DEADLINE_MS
        while True:
            try:
                return await self._attempt(request)
            except ApiError as error:
                if error.error not in _RETRIABLE or self._clock.monotonic_ms() + delay_ms >= deadline_ms:
                    raise
            await self._timers.sleep(delay_ms)
            delay_ms = min(2 * delay_ms, RETRY_MS_MAX)

    async def _attempt(self, request: StateRequest) -> Any:
        topic = self._replicas.image.topics.by_name.get(SHARE_STATE_TOPIC)
        if topic is None:
            await self._create_topic(SHARE_STATE_TOPIC)
            raise ApiError(errors.COORDINATOR_NOT_AVAILABLE, f"the topic {SHARE_STATE_TOPIC} is being created")
        leader = topic.partitions[partition_of(request.key.coordinator_key, len(topic.partitions))].leader
        if leader == self._replicas.broker_id:
            return await self._ask_local(request.key, request)
        if leader == NO_BROKER:
            raise ApiError(errors.COORDINATOR_NOT_AVAILABLE)
        try:
            answer = await self._links.send(leader, _message(request), lane=LANE, timeout_ms=self._timeout_ms())
        except (PeerGone, TimeoutError, Malformed) as error:
            raise ApiError(errors.NETWORK_EXCEPTION, str(error)) from error
        return _state(answer)


def _message(request: StateRequest) -> Message:
    """The request to another broker, about one share-partition."""
    group_id, topic_id, partition = request.key
    match request:
        case Initialize():
            kind = InitializeShareGroupStateRequest
            row = kind.PartitionData(
                partition=partition, state_epoch=request.state_epoch, start_offset=request.start_offset
            )
            return kind(group_id=group_id, topics=[kind.InitializeStateData(topic_id=topic_id, partitions=[row])])
        case Read():
            read = ReadShareGroupStateRequest
            read_row = read.PartitionData(partition=partition, leader_epoch=request.leader_epoch)
            return read(group_id=group_id, topics=[read.ReadStateData(topic_id=topic_id, partitions=[read_row])])
        case ReadSummary():
            summary = ReadShareGroupStateSummaryRequest
            summary_row = summary.PartitionData(partition=partition, leader_epoch=-1)
            return summary(
                group_id=group_id, topics=[summary.ReadStateSummaryData(topic_id=topic_id, partitions=[summary_row])]
            )
        case Delete():
            delete = DeleteShareGroupStateRequest
            delete_row = delete.PartitionData(partition=partition)
            return delete(
                group_id=group_id, topics=[delete.DeleteStateData(topic_id=topic_id, partitions=[delete_row])]
            )
        case Write():
            write = WriteShareGroupStateRequest
            write_row = write.PartitionData(
                partition=partition,
                state_epoch=request.state_epoch,
                leader_epoch=request.leader_epoch,
                start_offset=request.start_offset,
                delivery_complete_count=request.delivery_complete_count,
                state_batches=[write.StateBatch(**batch._asdict()) for batch in request.batches],
            )
            return write(group_id=group_id, topics=[write.WriteStateData(topic_id=topic_id, partitions=[write_row])])


def _state(answer: Any) -> ShareState | None:
    """What a response says about the one share-partition that was asked about; ApiError if it has an error."""
    (topic,) = answer.results
    (row,) = topic.partitions
    if row.error_code:
        raise ApiError(error_of(row.error_code), row.error_message)
    if isinstance(answer, ReadShareGroupStateResponse):
        return ShareState(
            state_epoch=row.state_epoch,
            start_offset=row.start_offset,
            batches=tuple(
                StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
                for each in row.state_batches
            ),
        )
    if isinstance(answer, ReadShareGroupStateSummaryResponse):
        return ShareState(
            state_epoch=row.state_epoch,
            leader_epoch=row.leader_epoch,
            start_offset=row.start_offset,
            delivery_complete_count=row.delivery_complete_count,
        )
    return None
