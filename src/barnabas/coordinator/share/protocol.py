"""Share groups (KIP-932) in the shard's table of protocols: heartbeats, descriptions, offsets, records and timers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

from barnabas.coordinator.consumer.groups import size_bytes
from barnabas.coordinator.consumer.member import JOIN_EPOCH, LEAVE_EPOCH, topic_names
from barnabas.coordinator.consumer.records import GroupKey, GroupMemberKey, RecordType, decode_key, decode_value
from barnabas.coordinator.consumer.step import KnownTopics
from barnabas.coordinator.consumer.subscriptions import metadata_hash
from barnabas.coordinator.groups.protocol import Commit, Group, GroupProtocol, Handler
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.coordinator.runtime.effects import Effects
from barnabas.coordinator.share import records
from barnabas.coordinator.share.describe import describe, not_found
from barnabas.coordinator.share.group import ShareGroup, ShareMember
from barnabas.coordinator.share.requests import HeartbeatResult
from barnabas.coordinator.share.settings import ShareGroupSettings
from barnabas.coordinator.share.states import ShareStates
from barnabas.coordinator.share.step import ShareStep
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.wire.message import Message
from barnabas.wire.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

SESSION: Final = "share-session"


class SessionTimer(NamedTuple):
    """When a member without heartbeats is removed."""

    kind: str
    group_id: str
    member_id: str


class ShareProtocol(GroupProtocol):
    group_type = ShareGroup.group_type
    record_types = records.RECORD_TYPES.keys()
    timer_kinds = (SESSION,)

    def __init__(
        self, shard: GroupShard, settings_of: Callable[[str], ShareGroupSettings], topics: KnownTopics
    ) -> None:
        self._table = shard.groups
        self._tally = shard.tally
        self._settings_of = settings_of
        self._topics = topics
        self._states = ShareStates(self)

    # --- requests -------------------------------------------------------------------------------------------------

    @property
    def requests(self) -> Mapping[type[Message], Handler]:
        return {ShareGroupHeartbeatRequest: self._heartbeat, ShareGroupDescribeRequest: self._describe}

    def handle(self, request_id: int, content: object, now_ms: int) -> Effects:
        return self._states.handle(request_id, content)

    def find(self, group_id: str) -> ShareGroup | None:
        """The share group; ApiError if the id belongs to a group of another type."""
        found = self._table.get(group_id)
        if found is not None and not isinstance(found, ShareGroup):
            raise ApiError(errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        return found

    def group(self, group_id: str) -> ShareGroup:
        found = self.find(group_id)
        if found is None:
            raise ApiError(errors.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return found

    def _describe(
        self, request_id: int, request: GroupRequest, message: ShareGroupDescribeRequest, now_ms: int
    ) -> Effects:
        described = []
        for group_id in message.group_ids:
            try:
                described.append(describe(self.group(group_id), self._topics.image))
            except ApiError as error:
                described.append(not_found(group_id, error))
        return Effects().answer(request_id, described)

    # --- heartbeats -----------------------------------------------------------------------------------------------

    def _heartbeat(
        self, request_id: int, request: GroupRequest, message: ShareGroupHeartbeatRequest, now_ms: int
    ) -> Effects:
        settings = self._settings_of(message.group_id)
        _check(message, subscription_bytes_max=settings.step_bytes_max)
        if message.member_epoch == LEAVE_EPOCH:
            return self._leave(request_id, message)
        is_joining = message.member_epoch == JOIN_EPOCH
        group = self.find(message.group_id) if is_joining else self.group(message.group_id)
        group = group or ShareGroup(message.group_id)
        member = group.members.get(message.member_id)
        if member is None and len(group.members) >= settings.size_max:
            raise ApiError(
                errors.GROUP_MAX_SIZE_REACHED,
                f"the group has {len(group.members)} members; {settings.size_max} are allowed",
            )
        if member is None:
            member = ShareMember(member_id=message.member_id) if is_joining else group.member(message.member_id)
        _check_epoch(member, message.member_epoch)
        step = ShareStep(group, member, topics=self._topics, settings=settings, now_ms=now_ms)
        names = message.subscribed_topic_names
        step.advance(
            replace(
                member,
                rack_id=member.rack_id if message.rack_id is None else message.rack_id,
                subscribed_topic_names=member.subscribed_topic_names if names is None else topic_names(names),
                client_id=request.client_id,
                client_host=request.client_host,
            )
        )
        if size_bytes(step.effects) > settings.step_bytes_max:
            raise ApiError(errors.UNKNOWN_SERVER_ERROR, "the records of this heartbeat do not fit into a batch")
        step.commit()
        self._table[group.group_id] = group  # a new group; if its records cannot be written, the shard is loaded again
        if step.epoch != group.epoch:
            self._tally.share_rebalances.mark()
        self._expect_heartbeat(message.group_id, message.member_id, now_ms, step.effects)
        response = ShareGroupHeartbeatResponse(
            member_id=message.member_id,
            member_epoch=step.updated.member_epoch,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
        )
        if is_joining or names is not None or step.updated.assigned != member.assigned:
            response.assignment = _assignment(step.updated)
        return step.effects.answer(request_id, HeartbeatResult(response, step.epoch, step.to_initialize))

    def _expect_heartbeat(self, group_id: str, member_id: str, now_ms: int, effects: Effects) -> None:
        timeout_ms = self._settings_of(group_id).session_timeout_ms
        effects.timer(SessionTimer(SESSION, group_id, member_id), now_ms + timeout_ms)

    def _leave(self, request_id: int, message: ShareGroupHeartbeatRequest) -> Effects:
        group = self.group(message.group_id)
        effects = self._remove(group, group.member(message.member_id))
        response = ShareGroupHeartbeatResponse(member_id=message.member_id, member_epoch=LEAVE_EPOCH)
        return effects.answer(request_id, HeartbeatResult(response, group.epoch, {}))

    def _remove(self, group: ShareGroup, member: ShareMember) -> Effects:
        effects = Effects().timer(SessionTimer(SESSION, group.group_id, member.member_id), None)
        for kind in (records.CURRENT_MEMBER, records.TARGET_MEMBER, records.MEMBER):
            effects.records.append(records.of_member(kind, group.group_id, member.member_id, None))
        rest = (each for each in group.members.values() if each.member_id != member.member_id)
        names = {name for each in rest for name in each.subscribed_topic_names}
        effects.records.append(self.group_record(group, group.epoch + 1, names))
        self._tally.share_rebalances.mark()
        return effects

    def group_record(self, group: ShareGroup, epoch: int, names: set[str]) -> Any:
        value = records.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash(names, self._topics.image))
        return records.of_group(records.GROUP, group.group_id, value)

    # --- records and time -----------------------------------------------------------------------------------------

    def replay(self, key: bytes, value: bytes | None) -> None:
        kind, about = decode_key(key, records.RECORD_TYPES)
        decoded = None if value is None else decode_value(kind, value)
        group_id = cast(GroupKey | GroupMemberKey, about).group_id
        group = self._table.get(group_id)
        if not isinstance(group, ShareGroup):
            if decoded is None:
                return  # compaction may leave the end of a group without its beginning
            group = self._table[group_id] = ShareGroup(group_id)
        if kind is records.GROUP and decoded is None:
            del self._table[group_id]
        else:
            _apply(group, kind, about, decoded)

    def loaded(self, now_ms: int) -> Effects:
        effects = Effects()
        for group in self._table.values():
            if isinstance(group, ShareGroup):
                for member_id in group.members:
                    self._expect_heartbeat(group.group_id, member_id, now_ms, effects)
        return effects

    def on_timer(self, key: Hashable, now_ms: int) -> Effects:
        assert isinstance(key, SessionTimer)
        group = self._table.get(key.group_id)
        if not isinstance(group, ShareGroup) or key.member_id not in group.members:
            return Effects()
        return self._remove(group, group.members[key.member_id])

    # --- groups ---------------------------------------------------------------------------------------------------

    def check_commit(self, group: Group, commit: Commit, now_ms: int, effects: Effects) -> None:
        raise ApiError(errors.GROUP_ID_NOT_FOUND, f"{group.group_id!r} is a share group")

    def add_tombstones(self, group: Group, effects: Effects) -> None:
        for kind in (records.STATE_PARTITIONS, records.TARGET, records.GROUP):
            effects.records.append(records.of_group(kind, group.group_id, None))

    def on_topics_deleted(self, names: frozenset[str], effects: Effects) -> None:
        """Forget the state of the topics. The share coordinator deletes it by itself."""
        by_id = self._topics.image.by_id
        for group in self._table.values():
            if isinstance(group, ShareGroup):
                states = group.states
                gone = {
                    topic
                    for topic in (*states.initializing, *states.initialized, *states.deleting)
                    if topic not in by_id
                }
                if gone:
                    self._states.write(group, states.forgotten(gone), effects)


def _check(message: ShareGroupHeartbeatRequest, *, subscription_bytes_max: int) -> None:
    """INVALID_REQUEST if the heartbeat is not well-formed."""
    names = message.subscribed_topic_names
    if not message.member_id.strip():
        raise ApiError(errors.INVALID_REQUEST, "MemberId can't be empty.")
    if not message.group_id.strip():
        raise ApiError(errors.INVALID_REQUEST, "GroupId can't be empty.")
    if message.rack_id is not None and not message.rack_id.strip():
        raise ApiError(errors.INVALID_REQUEST, "RackId can't be empty.")
    if message.member_epoch < LEAVE_EPOCH:
        raise ApiError(errors.INVALID_REQUEST, "MemberEpoch is invalid.")
    if message.member_epoch == JOIN_EPOCH and not names:
        raise ApiError(errors.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    if sum(len(name) + 1 for name in names or ()) > subscription_bytes_max:
        raise ApiError(errors.INVALID_REQUEST, "SubscribedTopicNames is longer than what can be kept")


def _check_epoch(member: ShareMember, epoch: int) -> None:
    if epoch > member.member_epoch:
        raise ApiError(
            errors.FENCED_MEMBER_EPOCH,
            f"member epoch {epoch} is larger than {member.member_epoch}, the one known by the group coordinator",
        )
    if epoch < member.member_epoch and epoch not in (JOIN_EPOCH, member.previous_member_epoch):
        raise ApiError(
            errors.FENCED_MEMBER_EPOCH,
            f"member epoch {epoch} is smaller than {member.member_epoch}, the one known by the group coordinator",
        )


def _assignment(member: ShareMember) -> ShareGroupHeartbeatResponse.Assignment:
    row = ShareGroupHeartbeatResponse.TopicPartitions
    return ShareGroupHeartbeatResponse.Assignment(
        topic_partitions=[
            row(topic_id=topic, partitions=sorted(member.assigned[topic])) for topic in sorted(member.assigned)
        ]
    )


def _apply(group: ShareGroup, kind: RecordType, about: Message, value: Any) -> None:
    match about:
        case GroupMemberKey() if kind is records.MEMBER:
            group.apply_member(about.member_id, value)
        case GroupMemberKey() if kind is records.TARGET_MEMBER:
            group.apply_target_member(about.member_id, value)
        case GroupMemberKey():
            group.apply_current(about.member_id, value)
        case _ if kind is records.GROUP:
            group.apply_group(value)
        case _ if kind is records.TARGET:
            group.apply_target(value)
        case _:
            group.apply_states(value)
