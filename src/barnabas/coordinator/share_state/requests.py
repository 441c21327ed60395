"""What the shard of the share coordinator is asked, one share-partition at a time, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.coordinator.share_state.batches import StateBatch
from barnabas.coordinator.share_state.records import UNKNOWN_COUNT, SharePartitionKey
from barnabas.model.ids import NO_LEADER_EPOCH, Uuid

UNINITIALIZED_OFFSET: Final = -1  # start offset of a share-partition that has not been read yet
NO_STATE_EPOCH: Final = -1


class Initialize(NamedTuple):
    key: SharePartitionKey
    state_epoch: int
    start_offset: int


class Read(NamedTuple):
    key: SharePartitionKey
    leader_epoch: int


class ReadSummary(NamedTuple):
    key: SharePartitionKey


class Write(NamedTuple):
    key: SharePartitionKey
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class Delete(NamedTuple):
    key: SharePartitionKey


class StateTopicsDeleted(NamedTuple):
    """Topics were deleted, and the state of their share-partitions has no use."""

    topic_ids: frozenset[Uuid]


class Prune(NamedTuple):
    """A send of the shard: delete the records of its partition below an offset."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareState:
    """The state of one share-partition."""

    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = NO_LEADER_EPOCH
    start_offset: int = UNINITIALIZED_OFFSET
    delivery_complete_count: int = UNKNOWN_COUNT
    create_timestamp: int = 0
    write_timestamp: int = 0
    batches: tuple[StateBatch, ...] = ()
    update_count: int = 0  # updates since the last snapshot
    snapshot_offset: int = 0  # offset of the last snapshot in the log of the coordinator
