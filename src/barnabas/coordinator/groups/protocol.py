"""The interface between the group shard and a group protocol.

A shard has a table of protocols: classic groups, consumer groups (KIP-848), and whatever joins them, such as share
groups (KIP-932) and streams groups (KIP-1071). All groups of a shard are in one table by group id, so an id belongs to
one protocol at a time. A protocol declares the requests, the record types and the timers that are its own; the shard
routes by these declarations and knows no protocol by name. The first one in the table, the :class:`DefaultProtocol`,
also owns the groups that exist only because offsets were committed to them.

To add a protocol: a class for its groups (:class:`Group`), a class for the protocol (:class:`GroupProtocol`), and one
entry where the broker makes the table (``broker/coordinators/groups.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence, Sized
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.coordinator.runtime.effects import Effects
from barnabas.wire.message import Message
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

# Takes the request id, the request, its message and the time.
Handler: TypeAlias = "Callable[[int, GroupRequest, Any, int], Effects]"


class Group(Protocol):
    """A group of any protocol, as far as offsets, lists, deletion and metrics use it."""

    group_id: str
    group_type: ClassVar[str]  # protocol of the group, as ListGroups names it: classic, consumer, share, streams

    @property
    def protocol_type(self) -> str | None:
        """The protocol type in ListGroups; None if the group never had a member."""

    @property
    def members(self) -> Sized: ...

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""

    @property
    def may_expire(self) -> bool:
        """Whether the group is deleted when none of its offsets is left: no members, and none about to join."""

    @property
    def state_name(self) -> str:
        """The state in ListGroups."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """ApiError if this member may not fetch the offsets of the group."""

    def check_delete(self) -> None:
        """ApiError if the group must not be deleted."""

    def check_delete_offsets(self) -> None:
        """ApiError if no offset of the group may be deleted."""

    def is_subscribed_to(self, topic: str) -> bool: ...

    def offsets_unused_since_ms(self, commit_timestamp_ms: int) -> int | None:
        """The start of the retention time of an offset; None while it must not expire."""


class Commit(NamedTuple):
    """A request to commit offsets, with the fields that the protocol of the group checks."""

    asked: GroupRequest
    message: OffsetCommitRequest | TxnOffsetCommitRequest
    epoch: int  # generation of a classic member, member epoch of any other; negative for no member
    is_transactional: bool


class GroupProtocol(ABC):
    """One protocol in one shard. Like the shard, it never waits: it decides and returns effects."""

    group_type: ClassVar[str]  # that of its groups
    record_types: ClassVar[Collection[int]]  # key types of the records that it writes and replays
    timer_kinds: ClassVar[Collection[str]]  # first elements of the keys of its timers

    @property
    @abstractmethod
    def requests(self) -> Mapping[type[Message], Handler]:
        """The requests that the protocol answers: joining, heartbeats, descriptions.

        Several protocols may answer the same request, which then names one group: the protocol that owns the group
        answers. If no protocol owns it, or the owner does not answer such requests, the first protocol in the table
        does; it finds a group of another type, or none.
        """

    def handle(self, request_id: int, content: object, now_ms: int) -> Effects:
        """Answer a request of the broker itself, which arrives as a ``ProtocolRequest``."""
        raise AssertionError(f"{self.group_type} groups have no request {content}")

    # --- records and time -----------------------------------------------------------------------------------------

    @abstractmethod
    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply a record of one of the ``record_types``; it may create or delete a group in the shard's table."""

    @abstractmethod
    def loaded(self, now_ms: int) -> Effects:
        """Arm the timers of the groups after all records were replayed."""

    @abstractmethod
    def on_timer(self, key: Hashable, now_ms: int) -> Effects:
        """A timer of one of the ``timer_kinds`` has expired."""

    # --- groups ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def check_commit(self, group: Group, commit: Commit, now_ms: int, effects: Effects) -> None:
        """ApiError if the sender may not commit offsets to the group; a commit may also extend its session."""

    @abstractmethod
    def add_tombstones(self, group: Group, effects: Effects) -> None:
        """Add the records that delete a group without members, but not those of its offsets."""

    def forget_if_unused(self, group: Group) -> None:  # noqa: B027  # only classic groups exist without a record
        """Remove a group from the shard's table that was created without a record and is not needed."""

    def on_topics_deleted(self, names: frozenset[str], effects: Effects) -> None:  # noqa: B027  # not all keep topics
        """Add what follows from the deletion of topics. The shard deletes the offsets."""


class DefaultProtocol(GroupProtocol):
    """The first protocol in the table: it creates the group of a commit that names no existing group."""

    @abstractmethod
    def create(self, group_id: str, now_ms: int) -> Group:
        """A new group without members; ApiError if the shard has too many groups."""

    @abstractmethod
    def replay_offset(self, group_id: str, timestamp_ms: int) -> None:
        """An offset was replayed: create its group, unless it exists."""


class Protocols(NamedTuple):
    """The table of protocols of one shard."""

    default: DefaultProtocol
    others: Sequence[GroupProtocol] = ()
