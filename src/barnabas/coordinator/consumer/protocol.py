"""Consumer groups (KIP-848) in the shard's table of protocols: their requests, records and timers.

:mod:`barnabas.coordinator.consumer.groups` answers the heartbeats of the protocol, and
:mod:`barnabas.coordinator.consumer.classic_members` the requests of classic members in a consumer group. This module
also converts a classic group into a consumer group and back.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from barnabas.coordinator.classic.group import ClassicGroup
from barnabas.coordinator.classic.protocol import ClassicProtocol
from barnabas.coordinator.classic.rebalance import join_refused
from barnabas.coordinator.consumer.classic_members import ClassicMembers
from barnabas.coordinator.consumer.describe import describe, not_found
from barnabas.coordinator.consumer.group import ConsumerGroup
from barnabas.coordinator.consumer.groups import ConsumerGroups, SettingsOf, size_bytes
from barnabas.coordinator.consumer.lines import without_group
from barnabas.coordinator.consumer.migration import DOWNGRADED, downgrade, upgrade
from barnabas.coordinator.consumer.records import RECORD_TYPES
from barnabas.coordinator.consumer.step import DOWNGRADE, MEMBER_TIMERS, RESOLVE, GroupTimer, KnownTopics
from barnabas.coordinator.groups.protocol import Commit, Group, GroupProtocol, Handler
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.coordinator.runtime.effects import Effects
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.observe.log import logger
from barnabas.wire.message import Message
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

log = logger("groups")


class ConsumerProtocol(GroupProtocol):
    group_type = ConsumerGroup.group_type
    record_types = RECORD_TYPES.keys()
    timer_kinds = (*MEMBER_TIMERS, RESOLVE, DOWNGRADE, DOWNGRADED)

    def __init__(
        self, shard: GroupShard, classic: ClassicProtocol, settings_of: SettingsOf, topics: KnownTopics
    ) -> None:
        """``classic`` is the protocol that a group changes to when its last member of this protocol has left."""
        self._table = shard.groups
        self._classic_groups = classic
        self._topics = topics
        self.consumer = ConsumerGroups(settings_of, topics, shard.groups, shard.tally, self._upgrade)
        self.classic = ClassicMembers(self.consumer)

    # --- requests -------------------------------------------------------------------------------------------------

    @property
    def requests(self) -> Mapping[type[Message], Handler]:
        return {
            ConsumerGroupHeartbeatRequest: self.consumer.heartbeat,
            ConsumerGroupDescribeRequest: self._describe,
            JoinGroupRequest: self._join,
            SyncGroupRequest: self._sync,
            HeartbeatRequest: self.classic.heartbeat,
            LeaveGroupRequest: self.classic.leave,
        }

    def _join(self, request_id: int, request: GroupRequest, message: JoinGroupRequest, now_ms: int) -> Effects:
        refused = self._classic_groups.refused_join(message)
        if refused is not None:
            return Effects().answer(request_id, join_refused(message.member_id, refused))
        group = self.consumer.group(message.group_id)
        if group.members:
            return self.classic.join(request_id, request, message, now_ms)
        # The group has no members, so the first member to join chooses the protocol of the group.
        effects = Effects()
        effects.records.extend(without_group(group))
        del self._table[message.group_id]
        return effects.extend(self._classic_groups.join(request_id, request, message, now_ms))

    def _sync(self, request_id: int, request: GroupRequest, message: SyncGroupRequest, now_ms: int) -> Effects:
        if not self.consumer.group(message.group_id).members:
            return Effects().answer(request_id, SyncGroupResponse(error_code=errors.UNKNOWN_MEMBER_ID.code))
        return self.classic.sync(request_id, request, message, now_ms)

    def _describe(
        self, request_id: int, request: GroupRequest, message: ConsumerGroupDescribeRequest, now_ms: int
    ) -> Effects:
        described = []
        for group_id in message.group_ids:
            try:
                group = self.consumer.group(group_id)
                settings = self.consumer.settings_of(group_id)
                described.append(describe(group, self._topics.image, default_assignor=settings.assignors[0]))
            except ApiError as error:
                described.append(not_found(group_id, error))
        return Effects().answer(request_id, described)

    # --- records and time -----------------------------------------------------------------------------------------

    def replay(self, key: bytes, value: bytes | None) -> None:
        self.consumer.replay(key, value)

    def loaded(self, now_ms: int) -> Effects:
        return self.consumer.loaded(now_ms)

    def on_timer(self, key: Hashable, now_ms: int) -> Effects:
        if isinstance(key, GroupTimer) and key.kind == DOWNGRADE:
            return self._downgrade(key.group_id, now_ms)
        if isinstance(key, GroupTimer) and key.kind == DOWNGRADED:
            return self._rebalance(key.group_id, now_ms)
        return self.consumer.on_timer(key, now_ms)

    # --- groups ---------------------------------------------------------------------------------------------------

    def check_commit(self, group: Group, commit: Commit, now_ms: int, effects: Effects) -> None:
        assert isinstance(group, ConsumerGroup)
        asked, message = commit.asked, commit.message
        group.check_commit(
            message.member_id,
            message.group_instance_id,
            commit.epoch,
            [
                (asked.topic_ids[topic.name], each.partition_index)
                for topic in message.topics
                if topic.name in asked.topic_ids
                for each in topic.partitions
            ],
            is_transactional=commit.is_transactional,
            version=asked.version,
        )

    def add_tombstones(self, group: Group, effects: Effects) -> None:
        assert isinstance(group, ConsumerGroup)
        effects.records.extend(without_group(group))

    # --- from one protocol to the other ---------------------------------------------------------------------------

    def _upgrade(self, group_id: str, now_ms: int, effects: Effects) -> ConsumerGroup | None:
        group = self._table.get(group_id)
        if group is None:
            return None
        if not isinstance(group, ClassicGroup):
            raise ApiError(errors.GROUP_ID_NOT_FOUND, f"{group_id!r} is a {group.group_type} group")
        return upgrade(group, self.consumer.settings_of(group_id), self._topics.image, now_ms, effects)

    def _downgrade(self, group_id: str, now_ms: int) -> Effects:
        effects = Effects()
        group = self.consumer.find(group_id)
        # A member of the consumer protocol may have joined since the downgrade was decided.
        if group is not None and group.is_all_classic:
            downgrade(group, self._topics.image, now_ms, effects)
        if size_bytes(effects) > self.consumer.settings_of(group_id).step_bytes_max:
            # A classic group is one record. This group stays a consumer group with classic members.
            log.warning("group is too large to be a classic one", group=group_id, size_bytes=size_bytes(effects))
            return Effects()
        return effects

    def _rebalance(self, group_id: str, now_ms: int) -> Effects:
        """The shard's table has the group as a classic one now: its members must join it again."""
        effects = Effects()
        group = self._table.get(group_id)
        if isinstance(group, ClassicGroup) and group.members:
            self._classic_groups.watch(group, now_ms, effects)
            rebalance = self._classic_groups.rebalance
            rebalance.prepare_or_complete(group, now_ms, effects, "the group has become a classic one")
        return effects
