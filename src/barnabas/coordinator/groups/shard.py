"""All groups of one partition of ``__consumer_offsets``: which machine answers what, and what a line of the log means.

Classic groups are in ``classic_*``, offsets in ``group_offsets``; groups of the consumer protocol come in through
:class:`ModernGroups`. The runtime runs this shard; nothing here waits or knows a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sized
from typing import Any, Protocol

from barnabas.coordinator.classic.group import ClassicGroup, GroupState
from barnabas.coordinator.classic.protocol import ClassicProtocol
from barnabas.coordinator.classic.rebalance import JOIN, SESSION, SYNC, join_refused, session_key
from barnabas.coordinator.groups.listing import delete_groups, describe_groups, list_groups
from barnabas.coordinator.groups.offset_access import EXPIRY, GroupOffsets
from barnabas.coordinator.groups.offset_protocol import FetchOffsets, OffsetProtocol
from barnabas.coordinator.groups.offsets import Offsets
from barnabas.coordinator.groups.records import (
    CLASSIC_GROUP,
    LEGACY_OFFSET,
    OFFSET,
    classic_group_key,
    decode_classic_group_key,
    decode_classic_group_value,
    decode_offset_key,
    decode_offset_value,
    key_type,
)
from barnabas.coordinator.groups.requests import GroupRequest, TopicsDeleted
from barnabas.coordinator.groups.settings import GROUPS_MAX, GroupSettings
from barnabas.coordinator.groups.tally import GroupTally
from barnabas.coordinator.runtime.effects import Answer, Effects, ProducerIdEpoch, nothing_to_undo
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest


class ModernGroup(Protocol):
    """A group of a newer protocol, as far as offsets, lists and deletion need to know it."""

    group_id: str

    @property
    def members(self) -> Sized: ...

    @property
    def is_empty(self) -> bool: ...

    @property
    def state(self) -> str: ...

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        member_epoch: int,
        partitions: Any,
        *,
        is_transactional: bool,
        version: int,
    ) -> None: ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def check_delete(self) -> None: ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def offsets_unused_since_ms(self, commit_timestamp_ms: int) -> int | None: ...


Group = ClassicGroup | ModernGroup


class ModernGroups(Protocol):
    """The protocols whose groups are not classic. They keep their groups in the shard's table of groups."""

    def handle(self, request_id: int, request: Any, now_ms: int) -> Effects:
        """A request of their own, a classic one to one of their groups, or news that concerns them."""

    def is_concerned(self, request: Any) -> bool:
        """Whether a request or news is (also) for them, whichever group it names."""

    def replay(self, key: bytes, value: bytes | None) -> None: ...

    def loaded(self, now_ms: int) -> Effects: ...

    def on_timer(self, key: Hashable, now_ms: int) -> Effects: ...

    def add_tombstones(self, group: ModernGroup, effects: Effects) -> None:
        """The lines that end a group without members."""


class GroupShard:
    def __init__(
        self,
        settings: Callable[[], GroupSettings],
        make_modern: Callable[[GroupShard], ModernGroups] | None = None,
        *,
        tally: GroupTally,
    ) -> None:
        self.settings = settings
        self.tally = tally
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.classic = ClassicProtocol(settings, tally)
        self.offset_protocol = OffsetProtocol(self.offsets, settings, tally)
        self.group_offsets = GroupOffsets(self)
        self.modern = make_modern(self) if make_modern is not None else None
        self._is_loaded = False
        self._handlers: dict[type, Callable[[int, GroupRequest, Any, int], Effects]] = {
            JoinGroupRequest: self._join,
            SyncGroupRequest: self._sync,
            HeartbeatRequest: self._heartbeat,
            LeaveGroupRequest: self._leave,
            OffsetCommitRequest: self.group_offsets.commit,
            TxnOffsetCommitRequest: self.group_offsets.commit_in_transaction,
            OffsetDeleteRequest: self.group_offsets.delete,
            ListGroupsRequest: self._list,
            DescribeGroupsRequest: self._describe,
            DeleteGroupsRequest: self._delete,
        }

    # --- what the runtime calls -----------------------------------------------------------------------------------

    def handle(self, request_id: int, request: Any, now_ms: int) -> Effects:
        if isinstance(request, GroupRequest):
            handler = self._handlers.get(type(request.message))
            if handler is not None:
                return handler(request_id, request, request.message, now_ms)
        elif isinstance(request, FetchOffsets):
            return Effects().answer(request_id, self.group_offsets.fetch(request))
        effects = Effects()
        if isinstance(request, TopicsDeleted):
            self.offset_protocol.delete_topics(request.names, effects)
            effects.rescue = nothing_to_undo
        if self.modern is not None and self.modern.is_concerned(request):
            effects.extend(self.modern.handle(request_id, request, now_ms))
        return effects

    def on_timer(self, key: Hashable, now_ms: int) -> Effects:
        assert isinstance(key, tuple)
        effects = Effects()
        kind = key[0]
        if kind == EXPIRY:
            self.group_offsets.expire(now_ms, effects)
        elif kind in (JOIN, SYNC, SESSION):
            group = self.groups.get(key[1])
            if isinstance(group, ClassicGroup):
                self._on_classic_timer(key, group, now_ms, effects)
        elif self.modern is not None:
            return self.modern.on_timer(key, now_ms)
        return effects

    def _on_classic_timer(self, key: tuple[Any, ...], group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        rebalance = self.classic.rebalance
        if key[0] == JOIN:
            rebalance.on_join_timer(group, now_ms, effects)
        elif key[0] == SYNC:
            rebalance.on_sync_timer(group, now_ms, effects)
        else:
            rebalance.on_session_timer(group, key[2], now_ms, effects)
            self.forget_if_unused(group)

    def loaded(self, now_ms: int) -> Effects:
        """Members get a whole session to be heard of; the retention of offsets begins to be watched."""
        self._is_loaded = True
        effects = Effects().timer((EXPIRY,), now_ms + self.settings().retention_check_ms)
        for group in list(self.groups.values()):
            if isinstance(group, ClassicGroup):
                self.watch(group, now_ms, effects)
        if self.modern is not None:
            effects.extend(self.modern.loaded(now_ms))
        return effects

    def watch(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        """Begin the sessions of a group that came from the log, or from another protocol."""
        for member in group.members.values():
            effects.timer(session_key(group, member.member_id), now_ms + member.session_timeout_ms)
        if len(group.members) > self.settings().members_max:
            self.classic.rebalance.prepare(group, now_ms, effects, "the group is larger than it may be")

    def unloaded(self) -> list[Answer]:
        """Whoever waits is told NOT_COORDINATOR by the runtime: nobody needs to hear more."""
        return []

    # --- lines of the log -----------------------------------------------------------------------------------------

    def replay(
        self, key: bytes, value: bytes | None, *, offset: int, producer: ProducerIdEpoch | None, timestamp_ms: int
    ) -> None:
        kind = key_type(key)
        if kind in (OFFSET, LEGACY_OFFSET):
            line = decode_offset_key(key)
            committed = None if value is None else decode_offset_value(value)
            if committed is not None and line.group not in self.groups:
                # Offsets without a group: someone commits and manages its partitions itself.
                self.groups[line.group] = ClassicGroup(line.group, now_ms=timestamp_ms)
            producer_id = -1 if producer is None else producer.producer_id
            self.offsets.replay(line, committed, offset=offset, producer_id=producer_id)
        elif kind == CLASSIC_GROUP:
            self._replay_classic(decode_classic_group_key(key).group, value)
        elif self.modern is not None:
            self.modern.replay(key, value)
        # A line of a kind that a newer broker writes is not ours to judge.

    def _replay_classic(self, group_id: str, value: bytes | None) -> None:
        known = self.groups.get(group_id)
        if value is None:
            if isinstance(known, ClassicGroup):
                del self.groups[group_id]
        elif not (self._is_loaded and isinstance(known, ClassicGroup)):
            # A group that is here already wrote this line itself, and may be further on: joins and syncs that wait
            # are in no line.
            self.groups[group_id] = ClassicGroup.of_record(group_id, decode_classic_group_value(value))

    def replay_marker(self, producer_id: int, producer_epoch: int, *, is_commit: bool) -> None:
        self.offsets.replay_marker(producer_id, is_commit=is_commit)

    # --- groups ---------------------------------------------------------------------------------------------------

    def create_classic(self, group_id: str, now_ms: int) -> ClassicGroup:
        if len(self.groups) >= GROUPS_MAX:
            raise ApiError(errors.COORDINATOR_NOT_AVAILABLE, "this coordinator has as many groups as it can have")
        group = self.groups[group_id] = ClassicGroup(group_id, now_ms=now_ms)
        return group

    def known(self, group_id: str, error: errors.WireError = errors.GROUP_ID_NOT_FOUND) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise ApiError(error, f"there is no group {group_id!r}")
        return group

    def forget_if_unused(self, group: ClassicGroup) -> None:
        """A group that never had a member leaves no trace."""
        is_used = group.generation or group.members or group.pending_members or group.state is not GroupState.EMPTY
        if not is_used and not any(self.offsets.places(group.group_id)):
            self.groups.pop(group.group_id, None)

    def add_tombstones(self, group: Group, effects: Effects) -> None:
        """The lines that end a group and all that it committed."""
        self.offset_protocol.delete_all(group.group_id, effects)
        self.add_group_tombstones(group, effects)

    def add_group_tombstones(self, group: Group, effects: Effects) -> None:
        if isinstance(group, ClassicGroup):
            effects.record(classic_group_key(group.group_id), None)
        elif self.modern is not None:
            self.modern.add_tombstones(group, effects)

    # --- the classic protocol -------------------------------------------------------------------------------------

    def _join(self, request_id: int, asked: GroupRequest, message: JoinGroupRequest, now_ms: int) -> Effects:
        settings = self.settings()
        if not settings.session_timeout_ms_min <= message.session_timeout_ms <= settings.session_timeout_ms_max:
            return Effects().answer(request_id, join_refused(message.member_id, errors.INVALID_SESSION_TIMEOUT))
        group = self.groups.get(message.group_id)
        if group is not None and not isinstance(group, ClassicGroup):
            assert self.modern is not None
            return self.modern.handle(request_id, asked, now_ms)
        if group is None:
            if message.member_id:
                return Effects().answer(request_id, join_refused(message.member_id, errors.UNKNOWN_MEMBER_ID))
            group = self.create_classic(message.group_id, now_ms)
        effects = Effects()
        self.classic.join(group, request_id, asked, now_ms, effects)
        self.forget_if_unused(group)
        return effects

    def _sync(self, request_id: int, asked: GroupRequest, message: SyncGroupRequest, now_ms: int) -> Effects:
        group = self.groups.get(message.group_id)
        effects = Effects()
        if group is None or group.is_empty:
            return effects.answer(request_id, SyncGroupResponse(error_code=errors.UNKNOWN_MEMBER_ID.code))
        if not isinstance(group, ClassicGroup):
            assert self.modern is not None
            return self.modern.handle(request_id, asked, now_ms)
        self.classic.sync(group, request_id, message, now_ms, effects)
        return effects

    def _heartbeat(self, request_id: int, asked: GroupRequest, message: HeartbeatRequest, now_ms: int) -> Effects:
        group = self.known(message.group_id, errors.UNKNOWN_MEMBER_ID)
        if not isinstance(group, ClassicGroup):
            assert self.modern is not None
            return self.modern.handle(request_id, asked, now_ms)
        effects = Effects()
        self.classic.heartbeat(group, request_id, message, now_ms, effects)
        return effects

    def _leave(self, request_id: int, asked: GroupRequest, message: LeaveGroupRequest, now_ms: int) -> Effects:
        group = self.known(message.group_id, errors.UNKNOWN_MEMBER_ID)
        if not isinstance(group, ClassicGroup):
            assert self.modern is not None
            return self.modern.handle(request_id, asked, now_ms)
        effects = Effects()
        self.classic.leave(group, request_id, message, now_ms, effects)
        self.forget_if_unused(group)
        return effects

    # --- tools ----------------------------------------------------------------------------------------------------

    def _list(self, request_id: int, asked: GroupRequest, message: ListGroupsRequest, now_ms: int) -> Effects:
        return Effects().answer(request_id, list_groups(self.groups.values(), message))

    def _describe(self, request_id: int, asked: GroupRequest, message: DescribeGroupsRequest, now_ms: int) -> Effects:
        return Effects().answer(request_id, describe_groups(self.groups, message, asked.version))

    def _delete(self, request_id: int, asked: GroupRequest, message: DeleteGroupsRequest, now_ms: int) -> Effects:
        effects = Effects()
        effects.rescue = nothing_to_undo
        return effects.answer(request_id, delete_groups(self.groups, message, self.add_tombstones, effects))
