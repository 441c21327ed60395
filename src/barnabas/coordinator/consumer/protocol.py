"""The groups of the consumer protocol as the group shard sees them: which request, timer or line goes to which part.

Heartbeats of the protocol go to :mod:`barnabas.coordinator.consumer.groups`, those of classic members in such a group
to :mod:`barnabas.coordinator.consumer.classic_members`; what turns one kind of group into the other is called from
here.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from barnabas.coordinator.classic.group import ClassicGroup
from barnabas.coordinator.consumer.classic_members import ClassicMembers
from barnabas.coordinator.consumer.describe import describe, not_found
from barnabas.coordinator.consumer.group import ConsumerGroup
from barnabas.coordinator.consumer.groups import ConsumerGroups, SettingsOf, size_bytes
from barnabas.coordinator.consumer.lines import without_group
from barnabas.coordinator.consumer.migration import DOWNGRADED, downgrade, upgrade
from barnabas.coordinator.consumer.records import RECORD_TYPES
from barnabas.coordinator.consumer.step import DOWNGRADE, GroupTimer, KnownTopics
from barnabas.coordinator.groups.records import key_type
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.coordinator.groups.shard import GroupShard, ModernGroup
from barnabas.coordinator.runtime.effects import Effects
from barnabas.model.errors import ApiError
from barnabas.observe.log import logger
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest

log = logger("groups")

_OWN: Final = (ConsumerGroupHeartbeatRequest, ConsumerGroupDescribeRequest)


class ConsumerProtocolGroups:
    """What ``GroupShard`` calls its ``ModernGroups``."""

    def __init__(self, shard: GroupShard, settings_of: SettingsOf, topics: KnownTopics) -> None:
        self._shard = shard
        self._topics = topics
        self.consumer = ConsumerGroups(settings_of, topics, shard.groups, shard.tally, self._upgrade)
        self.classic = ClassicMembers(self.consumer)

    # --- requests -------------------------------------------------------------------------------------------------

    def is_concerned(self, request: Any) -> bool:
        return isinstance(request, GroupRequest) and isinstance(request.message, _OWN)

    def handle(self, request_id: int, request: Any, now_ms: int) -> Effects:
        assert isinstance(request, GroupRequest)
        match request.message:
            case ConsumerGroupHeartbeatRequest():
                return self.consumer.heartbeat(request_id, request, now_ms)
            case ConsumerGroupDescribeRequest() as message:
                return Effects().answer(request_id, self._describe(message))
            case JoinGroupRequest() as message:
                return self._join(request_id, request, message, now_ms)
            case SyncGroupRequest() as message:
                return self.classic.sync(request_id, message, now_ms)
            case HeartbeatRequest() as message:
                return self.classic.heartbeat(request_id, message, now_ms)
            case LeaveGroupRequest() as message:
                return self.classic.leave(request_id, message, request.version, now_ms)
        raise AssertionError(f"{type(request.message).__name__} is not for consumer groups")

    def _join(self, request_id: int, request: GroupRequest, message: JoinGroupRequest, now_ms: int) -> Effects:
        group = self.consumer.group(message.group_id)
        if group.members:
            return self.classic.join(request_id, request, message, now_ms)
        # Nobody is left to whom it matters which protocol the group was of: the first one to come decides.
        effects = Effects()
        effects.records.extend(without_group(group))
        del self._shard.groups[message.group_id]
        return effects.extend(self._shard.handle(request_id, request, now_ms))

    def _describe(self, message: ConsumerGroupDescribeRequest) -> list[Any]:
        described = []
        for group_id in message.group_ids:
            try:
                group = self.consumer.group(group_id)
                settings = self.consumer.settings_of(group_id)
                described.append(describe(group, self._topics.image, default_assignor=settings.assignors[0]))
            except ApiError as error:
                described.append(not_found(group_id, error))
        return described

    # --- the log and time -----------------------------------------------------------------------------------------

    def replay(self, key: bytes, value: bytes | None) -> None:
        # Lines of share and streams groups may be in a log that Kafka wrote; they are not ours.
        if key_type(key) in RECORD_TYPES:
            self.consumer.replay(key, value)

    def loaded(self, now_ms: int) -> Effects:
        return self.consumer.loaded(now_ms)

    def on_timer(self, key: Hashable, now_ms: int) -> Effects:
        if isinstance(key, GroupTimer) and key.kind == DOWNGRADE:
            return self._downgrade(key.group_id, now_ms)
        if isinstance(key, GroupTimer) and key.kind == DOWNGRADED:
            return self._rebalance(key.group_id, now_ms)
        return self.consumer.on_timer(key, now_ms)

    def add_tombstones(self, group: ModernGroup, effects: Effects) -> None:
        assert isinstance(group, ConsumerGroup)
        effects.records.extend(without_group(group))

    # --- from one protocol to the other ---------------------------------------------------------------------------

    def _upgrade(self, group_id: str, now_ms: int, effects: Effects) -> ConsumerGroup | None:
        classic = self._shard.groups.get(group_id)
        if not isinstance(classic, ClassicGroup):
            return None
        return upgrade(classic, self.consumer.settings_of(group_id), self._topics.image, now_ms, effects)

    def _downgrade(self, group_id: str, now_ms: int) -> Effects:
        effects = Effects()
        group = self.consumer.find(group_id)
        # Somebody may have joined with the new protocol since it was decided.
        if group is not None and group.is_all_classic:
            downgrade(group, self._topics.image, now_ms, effects)
        if size_bytes(effects) > self.consumer.settings_of(group_id).step_bytes_max:
            # A classic group is one line. This one stays what it is, with classic members.
            log.warning("group is too large to be a classic one", group=group_id, size_bytes=size_bytes(effects))
            return Effects()
        return effects

    def _rebalance(self, group_id: str, now_ms: int) -> Effects:
        """The group is in the shard's table as a classic one by now: its members are to join it as that."""
        effects = Effects()
        group = self._shard.groups.get(group_id)
        if isinstance(group, ClassicGroup) and group.members:
            self._shard.watch(group, now_ms, effects)
            rebalance = self._shard.classic.rebalance
            rebalance.prepare_or_complete(group, now_ms, effects, "the group has become a classic one")
        return effects
