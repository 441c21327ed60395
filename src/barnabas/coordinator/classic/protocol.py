"""Classic groups in the shard's table of protocols: their requests, records and timers.

How a request is answered is in :mod:`barnabas.coordinator.classic.requests`, how a group gets from one generation to
the next in :mod:`barnabas.coordinator.classic.rebalance`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from barnabas.coordinator.classic.describe import describe_groups
from barnabas.coordinator.classic.group import ClassicGroup, GroupState
from barnabas.coordinator.classic.rebalance import JOIN, SESSION, SYNC, join_refused, session_key
from barnabas.coordinator.classic.requests import ClassicRequests
from barnabas.coordinator.groups.protocol import Commit, DefaultProtocol, Group, Handler
from barnabas.coordinator.groups.records import (
    CLASSIC_GROUP,
    classic_group_key,
    decode_classic_group_key,
    decode_classic_group_value,
)
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.coordinator.groups.settings import GROUPS_MAX
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.coordinator.runtime.effects import Effects
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.wire.message import Message
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class ClassicProtocol(DefaultProtocol):
    group_type = ClassicGroup.group_type
    record_types = (CLASSIC_GROUP,)
    timer_kinds = (JOIN, SYNC, SESSION)

    def __init__(self, shard: GroupShard) -> None:
        self._table = shard.groups
        self._offsets = shard.offsets
        self._settings = shard.settings
        self._answers = ClassicRequests(shard.settings, shard.tally)
        self.rebalance = self._answers.rebalance
        self._is_loaded = False

    @property
    def requests(self) -> Mapping[type[Message], Handler]:
        return {
            JoinGroupRequest: self.join,
            SyncGroupRequest: self._sync,
            HeartbeatRequest: self._heartbeat,
            LeaveGroupRequest: self._leave,
            DescribeGroupsRequest: self._describe,
        }

    # --- requests -------------------------------------------------------------------------------------------------

    def join(self, request_id: int, asked: GroupRequest, message: JoinGroupRequest, now_ms: int) -> Effects:
        refused = self.refused_join(message)
        if refused is not None:
            return Effects().answer(request_id, join_refused(message.member_id, refused))
        group = self._table.get(message.group_id)
        if group is None:
            if message.member_id:
                return Effects().answer(request_id, join_refused(message.member_id, errors.UNKNOWN_MEMBER_ID))
            group = self.create(message.group_id, now_ms)
        if not isinstance(group, ClassicGroup):
            return Effects().answer(request_id, join_refused(message.member_id, errors.INCONSISTENT_GROUP_PROTOCOL))
        effects = Effects()
        self._answers.join(group, request_id, asked, now_ms, effects)
        self.forget_if_unused(group)
        return effects

    def refused_join(self, message: JoinGroupRequest) -> errors.WireError | None:
        """The error for a session timeout that is not allowed, for a JoinGroup to a group of any protocol."""
        settings = self._settings()
        if settings.session_timeout_ms_min <= message.session_timeout_ms <= settings.session_timeout_ms_max:
            return None
        return errors.INVALID_SESSION_TIMEOUT

    def _sync(self, request_id: int, asked: GroupRequest, message: SyncGroupRequest, now_ms: int) -> Effects:
        group = self._table.get(message.group_id)
        effects = Effects()
        if not isinstance(group, ClassicGroup) or group.is_empty:
            return effects.answer(request_id, SyncGroupResponse(error_code=errors.UNKNOWN_MEMBER_ID.code))
        self._answers.sync(group, request_id, message, now_ms, effects)
        return effects

    def _heartbeat(self, request_id: int, asked: GroupRequest, message: HeartbeatRequest, now_ms: int) -> Effects:
        effects = Effects()
        self._answers.heartbeat(self._known(message.group_id), request_id, message, now_ms, effects)
        return effects

    def _leave(self, request_id: int, asked: GroupRequest, message: LeaveGroupRequest, now_ms: int) -> Effects:
        group = self._known(message.group_id)
        effects = Effects()
        self._answers.leave(group, request_id, message, now_ms, effects)
        self.forget_if_unused(group)
        return effects

    def _describe(self, request_id: int, asked: GroupRequest, message: DescribeGroupsRequest, now_ms: int) -> Effects:
        return Effects().answer(request_id, describe_groups(self._table, message, asked.version))

    # --- records and time -----------------------------------------------------------------------------------------

    def replay(self, key: bytes, value: bytes | None) -> None:
        group_id = decode_classic_group_key(key).group
        known = self._table.get(group_id)
        if value is None:
            if isinstance(known, ClassicGroup):
                del self._table[group_id]
        elif not (self._is_loaded and isinstance(known, ClassicGroup)):
            # A loaded group wrote this record itself and may be further on: waiting joins and syncs are in no record.
            self._table[group_id] = ClassicGroup.of_record(group_id, decode_classic_group_value(value))

    def replay_offset(self, group_id: str, timestamp_ms: int) -> None:
        """A group that has offsets and no record of its own is a client that assigns partitions itself."""
        if group_id not in self._table:
            self._table[group_id] = ClassicGroup(group_id, now_ms=timestamp_ms)

    def loaded(self, now_ms: int) -> Effects:
        """Every member has a whole session for its next heartbeat."""
        self._is_loaded = True
        effects = Effects()
        for group in list(self._table.values()):
            if isinstance(group, ClassicGroup):
                self.watch(group, now_ms, effects)
        return effects

    def watch(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        """Start the sessions of a group that was replayed, or that had another protocol until now."""
        for member in group.members.values():
            effects.timer(session_key(group, member.member_id), now_ms + member.session_timeout_ms)
        if len(group.members) > self._settings().members_max:
            self.rebalance.prepare(group, now_ms, effects, "the group is larger than it may be")

    def on_timer(self, key: Hashable, now_ms: int) -> Effects:
        assert isinstance(key, tuple)
        effects = Effects()
        group = self._table.get(key[1])
        if not isinstance(group, ClassicGroup):
            return effects
        if key[0] == JOIN:
            self.rebalance.on_join_timer(group, now_ms, effects)
        elif key[0] == SYNC:
            self.rebalance.on_sync_timer(group, now_ms, effects)
        else:
            self.rebalance.on_session_timer(group, key[2], now_ms, effects)
            self.forget_if_unused(group)
        return effects

    # --- groups ---------------------------------------------------------------------------------------------------

    def create(self, group_id: str, now_ms: int) -> ClassicGroup:
        if len(self._table) >= GROUPS_MAX:
            raise ApiError(errors.COORDINATOR_NOT_AVAILABLE, "this coordinator has as many groups as it can have")
        group = self._table[group_id] = ClassicGroup(group_id, now_ms=now_ms)
        return group

    def _known(self, group_id: str) -> ClassicGroup:
        group = self._table.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise ApiError(errors.UNKNOWN_MEMBER_ID, f"there is no group {group_id!r}")
        return group

    def check_commit(self, group: Group, commit: Commit, now_ms: int, effects: Effects) -> None:
        assert isinstance(group, ClassicGroup)
        message = commit.message
        member = group.check_commit(
            message.member_id, message.group_instance_id, commit.epoch, is_transactional=commit.is_transactional
        )
        if member is not None and not commit.is_transactional:
            self._answers.extend_session(group, member, now_ms, effects)  # a commit proves that the member is alive

    def add_tombstones(self, group: Group, effects: Effects) -> None:
        effects.record(classic_group_key(group.group_id), None)

    def forget_if_unused(self, group: Group) -> None:
        """A group that never had a member and has no offsets needs no record."""
        assert isinstance(group, ClassicGroup)
        is_used: Any = group.generation or group.members or group.pending_members
        if is_used or group.state is not GroupState.EMPTY or any(self._offsets.places(group.group_id)):
            return
        self._table.pop(group.group_id, None)
