"""All groups of the consumer protocol in one shard: heartbeats, time-outs, and the lines replayed.

A member does everything with one request: it joins with epoch 0, stays with the epoch it was given, leaves with -1, or
with -2 if it is static and will be back. What a heartbeat leads to is in :mod:`barnabas.coordinator.consumer.step`,
what becomes of a group when it changes its protocol in :mod:`barnabas.coordinator.consumer.migration`. The group shard
calls this and owns the classic groups and the offsets beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import replace
from typing import Any, Final, cast

from barnabas.coordinator.consumer import records as lines
from barnabas.coordinator.consumer.group import ConsumerGroup
from barnabas.coordinator.consumer.heartbeat import (
    check,
    check_epoch,
    heartbeat_answer,
    is_full,
    left_answer,
    reported_in,
)
from barnabas.coordinator.consumer.lines import current_line, group_line, pattern_line, without_member
from barnabas.coordinator.consumer.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    NO_TIMEOUT,
    NOTHING_OWNED,
    STATIC_LEAVE_EPOCH,
    Member,
    MemberState,
    topic_names,
)
from barnabas.coordinator.consumer.reconciliation import Reported
from barnabas.coordinator.consumer.settings import ConsumerGroupSettings
from barnabas.coordinator.consumer.step import (
    DOWNGRADE,
    JOIN,
    MEMBER_TIMERS,
    REBALANCE,
    RESOLVE,
    SESSION,
    SYNC,
    ConsumerStep,
    GroupTimer,
    KnownTopics,
    MemberTimer,
)
from barnabas.coordinator.consumer.subscriptions import UNRESOLVED, Resolution, metadata_hash, subscribed_names
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.coordinator.groups.tally import GroupTally
from barnabas.coordinator.runtime.effects import Effects
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.observe.log import logger
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

RECORD_BYTES_SPARE: Final = 24  # around a key and a value in a batch, at most
log = logger("groups")

SettingsOf = Callable[[str], ConsumerGroupSettings]


Upgrade = Callable[[str, int, Effects], ConsumerGroup | None]


class ConsumerGroups:
    def __init__(
        self,
        settings_of: SettingsOf,
        topics: KnownTopics,
        table: dict[str, Any],
        tally: GroupTally,
        upgrade: Upgrade | None = None,
    ) -> None:
        """``table`` has the groups of all kinds by their id; ``upgrade`` makes one of this kind of a classic one."""
        self.settings_of = settings_of
        self.topics = topics
        self._table = table
        self._tally = tally
        self._upgrade = upgrade
        self._resolutions: dict[str, Resolution] = {}  # by group: of its patterns, under way

    # --- the log --------------------------------------------------------------------------------------------------

    def replay(self, key: bytes, value: bytes | None) -> None:
        """A line of one of the types in ``consumer_group_records``."""
        kind, about = lines.decode_key(key)
        decoded = None if value is None else lines.decode_value(kind, value)
        group_id: str = cast(lines.GroupKey, about).group_id
        group = self.find(group_id)
        if group is None:
            if decoded is None:
                return  # compaction may leave the end of a group without its beginning
            group = self._table[group_id] = ConsumerGroup(group_id)
        if kind is lines.GROUP and decoded is None:
            del self._table[group_id]
        else:
            apply(group, kind, about, decoded)

    def loaded(self, now_ms: int) -> Effects:
        """Everybody has as much time as after a heartbeat just now: none could be received meanwhile."""
        effects = Effects()
        for group in list(self._table.values()):
            if not isinstance(group, ConsumerGroup):
                continue
            self.downgrade_if_classic(group, group.members.values(), now_ms, effects)
            for member in group.members.values():
                self.expect_heartbeat(group, member, now_ms, effects)
                if member.state is MemberState.UNREVOKED_PARTITIONS and not member.uses_classic_protocol:
                    group.rebalance_epochs[member.member_id] = member.member_epoch
                    timer = MemberTimer(REBALANCE, group.group_id, member.member_id)
                    effects.timer(timer, now_ms + member.rebalance_timeout_ms)
        return effects

    # --- finding --------------------------------------------------------------------------------------------------

    def find(self, group_id: str) -> ConsumerGroup | None:
        found = self._table.get(group_id)
        return found if isinstance(found, ConsumerGroup) else None

    def group(self, group_id: str) -> ConsumerGroup:
        found = self.find(group_id)
        if found is None:
            raise ApiError(errors.GROUP_ID_NOT_FOUND, f"there is no consumer group {group_id!r}")
        return found

    def begin(
        self, group_id: str, now_ms: int, *, creates: bool, may_describe: Callable[[str], bool] | None = None
    ) -> ConsumerStep:
        """A step on a group; one that does not exist is made, or made of a classic one, if a member joins."""
        group = self.find(group_id)
        is_new = group is None
        effects = Effects()
        if group is None:
            if not creates:
                raise ApiError(errors.GROUP_ID_NOT_FOUND, f"there is no consumer group {group_id!r}")
            group = self._upgrade(group_id, now_ms, effects) if self._upgrade is not None else None
        step = ConsumerStep(
            group or ConsumerGroup(group_id),
            topics=self.topics,
            settings=self.settings_of(group_id),
            now_ms=now_ms,
            is_new=is_new,
            is_resolving=group_id in self._resolutions,
            may_describe=may_describe,
        )
        step.effects.extend(effects)
        return step

    def finish(self, step: ConsumerStep, reported: Reported) -> Member:
        updated = step.advance(reported)
        if size_bytes(step.effects) > self.settings_of(step.group.group_id).step_bytes_max:
            # It would not fit into a batch; and a write that fails costs all groups of the shard a reload.
            raise ApiError(errors.UNKNOWN_SERVER_ERROR, "what this heartbeat leads to is too large to be written")
        step.commit()
        if step.epoch != step.group.epoch:
            self._tally.consumer_rebalances.mark()
        if step.resolution is not None:
            self._resolutions[step.group.group_id] = step.resolution
        return updated

    def check_room(self, group: ConsumerGroup, member_id: str) -> None:
        size_max = self.settings_of(group.group_id).size_max
        if len(group.members) >= size_max and member_id not in group.members:
            raise ApiError(
                errors.GROUP_MAX_SIZE_REACHED,
                f"the group has {len(group.members)} members; {size_max} are allowed",
            )

    # --- heartbeats -----------------------------------------------------------------------------------------------

    def heartbeat(
        self, request_id: int, request: GroupRequest, message: ConsumerGroupHeartbeatRequest, now_ms: int
    ) -> Effects:
        settings = self.settings_of(message.group_id)
        check(message, request.version, settings.assignors, subscription_bytes_max=settings.step_bytes_max)
        if message.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(request_id, message, now_ms)
        is_joining = message.member_epoch == JOIN_EPOCH
        step = self.begin(message.group_id, now_ms, creates=is_joining, may_describe=request.may_describe)
        self.check_room(step.group, message.member_id)
        member = self._member(step, message, message.member_id or request.new_member_id)
        names = message.subscribed_topic_names
        step.begin(
            member,
            instance_id=_given(message.instance_id, member.instance_id),
            rack_id=_given(message.rack_id, member.rack_id),
            rebalance_timeout_ms=member.rebalance_timeout_ms
            if message.rebalance_timeout_ms == NO_TIMEOUT
            else message.rebalance_timeout_ms,
            server_assignor=_given(message.server_assignor, member.server_assignor),
            subscribed_topic_names=member.subscribed_topic_names if names is None else topic_names(names),
            subscribed_topic_regex=_given(message.subscribed_topic_regex, member.subscribed_topic_regex) or "",
            client_id=request.client_id,
            client_host=request.client_host,
            classic=None,
        )
        updated = self.finish(step, reported_in(message))
        self.expect_heartbeat(step.group, updated, now_ms, step.effects)
        if member.uses_classic_protocol:
            # It has changed its protocol, and with it what it is waited for.
            for kind in (JOIN, SYNC):
                step.effects.timer(MemberTimer(kind, message.group_id, updated.member_id), None)
        has_new_assignment = updated.assigned is not member.assigned and (
            {topic: owned.keys() for topic, owned in updated.assigned.items()}
            != {topic: owned.keys() for topic, owned in member.assigned.items()}
        )
        answer = heartbeat_answer(
            updated,
            interval_ms=settings.heartbeat_interval_ms,
            with_assignment=is_full(message) or has_new_assignment,
        )
        return step.effects.answer(request_id, answer)

    def _member(self, step: ConsumerStep, message: ConsumerGroupHeartbeatRequest, member_id: str) -> Member:
        """The member that the message is from, as it was until now."""
        group, instance_id = step.group, message.instance_id
        is_joining = message.member_epoch == JOIN_EPOCH
        known = group.members.get(member_id) if instance_id is None else group.static_member(instance_id)
        if known is None:
            if is_joining:
                return Member(member_id=member_id)
            if instance_id is None:
                return group.member(member_id)
            raise unknown_instance(instance_id)
        if known.member_id == member_id:
            check_epoch(known, message.member_epoch, reported_in(message))
            return known
        if not is_joining:
            raise fenced_instance(known, member_id)
        if not known.uses_classic_protocol and known.member_epoch != STATIC_LEAVE_EPOCH:
            raise ApiError(
                errors.UNRELEASED_INSTANCE_ID,
                f"the instance {instance_id!r} is member {known.member_id!r}, which must leave before {member_id!r} "
                "can take its place",
            )
        return step.replace_static(known, member_id)

    def expect_heartbeat(self, group: ConsumerGroup, member: Member, now_ms: int, effects: Effects) -> None:
        timeout_ms = (
            member.classic.session_timeout_ms
            if member.classic is not None
            else self.settings_of(group.group_id).session_timeout_ms
        )
        effects.timer(MemberTimer(SESSION, group.group_id, member.member_id), now_ms + timeout_ms)

    # --- leaving --------------------------------------------------------------------------------------------------

    def _leave(self, request_id: int, message: ConsumerGroupHeartbeatRequest, now_ms: int) -> Effects:
        group = self.group(message.group_id)
        if message.instance_id is None:
            member = group.member(message.member_id)
        else:
            found = group.static_member(message.instance_id)
            if found is None:
                raise unknown_instance(message.instance_id)
            if found.member_id != message.member_id:
                raise fenced_instance(found, message.member_id)
            member = found
        effects = Effects()
        if message.member_epoch == STATIC_LEAVE_EPOCH:
            # It keeps its place until its session ends; what it was to give up it has given up by going.
            away = replace(member, member_epoch=STATIC_LEAVE_EPOCH, pending_revocation=NOTHING_OWNED)
            effects.records.append(current_line(group.group_id, away))
        else:
            effects = self.remove(group, [member], now_ms)
        return effects.answer(request_id, left_answer(member.member_id, message.member_epoch))

    def remove(self, group: ConsumerGroup, gone: Collection[Member], now_ms: int) -> Effects:
        """Members leave or are thrown out; the rest gets a new epoch, or is a classic group from now on."""
        effects = Effects()
        for member in gone:
            group.rebalance_epochs.pop(member.member_id, None)
            group.awaited_joins.discard(member.member_id)
            for kind in MEMBER_TIMERS:
                effects.timer(MemberTimer(kind, group.group_id, member.member_id), None)
        gone_ids = {member.member_id for member in gone}
        for member_id in sorted(gone_ids):
            effects.records.extend(without_member(group.group_id, member_id))
        rest = [member for member_id, member in group.members.items() if member_id not in gone_ids]
        patterns = dict(group.patterns)
        for pattern in sorted(patterns.keys() - {member.subscribed_topic_regex for member in rest}):
            effects.records.append(pattern_line(group.group_id, pattern, None))
            del patterns[pattern]
        names = subscribed_names({member.subscription for member in rest}, patterns)
        new_hash = metadata_hash(names, self.topics.image)
        effects.records.append(group_line(group.group_id, group.epoch + 1, new_hash))
        self._tally.consumer_rebalances.mark()
        self.downgrade_if_classic(group, rest, now_ms, effects)
        return effects

    def downgrade_if_classic(
        self, group: ConsumerGroup, members: Collection[Member], now_ms: int, effects: Effects
    ) -> None:
        """If nobody is left who speaks the new protocol, the group becomes a classic one in a step of its own."""
        settings = self.settings_of(group.group_id)
        if (
            members
            and all(member.uses_classic_protocol for member in members)
            and settings.migration_policy.allows_downgrade
            and len(members) <= settings.classic_size_max
        ):
            effects.timer(GroupTimer(DOWNGRADE, group.group_id), now_ms)

    # --- time -----------------------------------------------------------------------------------------------------

    def on_timer(self, key: Hashable, now_ms: int) -> Effects:
        if isinstance(key, GroupTimer):
            assert key.kind == RESOLVE
            return self._resolve(key.group_id, now_ms)
        assert isinstance(key, MemberTimer)
        group = self.find(key.group_id)
        member = group.members.get(key.member_id) if group is not None else None
        if group is None or member is None:
            return Effects()
        if key.kind == REBALANCE and group.rebalance_epochs.pop(key.member_id, None) != member.member_epoch:
            return Effects()  # it has moved on
        return self.remove(group, [member], now_ms)

    def _resolve(self, group_id: str, now_ms: int) -> Effects:
        """The next slice of finding out what a group's patterns stand for; after the last one the group knows."""
        effects = Effects()
        if not self._resolutions[group_id].proceed():
            return effects.timer(GroupTimer(RESOLVE, group_id), now_ms)
        resolution = self._resolutions.pop(group_id)
        group = self.find(group_id)
        if group is None:
            return effects
        wanted = {member.subscribed_topic_regex for member in group.members.values()}
        patterns = dict(group.patterns)
        has_changed = False
        for pattern, resolved in resolution.result(now_ms).items():
            if pattern in wanted:
                has_changed |= patterns.get(pattern, UNRESOLVED).topics != resolved.topics
                patterns[pattern] = resolved
                effects.records.append(pattern_line(group.group_id, pattern, resolved))
        names = subscribed_names({member.subscription for member in group.members.values()}, patterns)
        new_hash = metadata_hash(names, self.topics.image)
        is_rebalance = has_changed or new_hash != group.metadata_hash
        if is_rebalance:
            effects.records.append(group_line(group.group_id, group.epoch + 1, new_hash))
        if size_bytes(effects) > self.settings_of(group_id).step_bytes_max:
            log.warning("group's patterns stand for too many topics", group=group_id, size_bytes=size_bytes(effects))
            return Effects()
        self._tally.consumer_rebalances.mark(int(is_rebalance))
        return effects


def apply(group: ConsumerGroup, kind: lines.RecordType, about: object, value: object) -> None:
    """What a line does to its group."""
    match about, value:
        case lines.GroupKey(), lines.ConsumerGroupMetadataValue():
            group.apply_group(value)
        case lines.GroupKey(), lines.ConsumerGroupTargetAssignmentMetadataValue():
            group.apply_target(value)
        case lines.GroupKey(), None if kind is lines.TARGET:
            group.apply_target(None)
        case lines.GroupMemberKey(), _ if kind is lines.MEMBER:
            group.apply_member(about.member_id, cast(lines.ConsumerGroupMemberMetadataValue | None, value))
        case lines.GroupMemberKey(), _ if kind is lines.TARGET_MEMBER:
            target = cast(lines.ConsumerGroupTargetAssignmentMemberValue | None, value)
            group.apply_target_member(about.member_id, target)
        case lines.GroupMemberKey(), _ if kind is lines.CURRENT_MEMBER:
            current = cast(lines.ConsumerGroupCurrentMemberAssignmentValue | None, value)
            group.apply_current(about.member_id, current)
        case lines.GroupPatternKey(), _:
            resolved = cast(lines.ConsumerGroupRegularExpressionValue | None, value)
            group.apply_pattern(about.regular_expression, resolved)
        case _:
            assert kind is lines.PARTITION_METADATA  # of older brokers; the hash in the group's line replaced it


def size_bytes(effects: Effects) -> int:
    """About what the lines of a step take in the log."""
    return sum(RECORD_BYTES_SPARE + len(key) + len(value or b"") for key, value in effects.records)


def _given(new: str | None, old: str | None) -> str | None:
    return old if new is None else new


def unknown_instance(instance_id: str) -> ApiError:
    return ApiError(errors.UNKNOWN_MEMBER_ID, f"the group has no instance {instance_id!r}")


def fenced_instance(member: Member, member_id: str) -> ApiError:
    return ApiError(
        errors.FENCED_INSTANCE_ID,
        f"the instance {member.instance_id!r} is member {member.member_id!r} now, and no longer {member_id!r}",
    )
