"""Members that speak the classic protocol in a group of the new one: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

To such a member its epoch is the generation: it joins to catch up with the group, syncs to hear what it has, and is
told to join again (REBALANCE_IN_PROGRESS) when there is something to give up or to get. Nobody leads: the group does
the assigning. The group shard sends these requests here when they name a consumer group.
"""

from __future__ import annotations

from typing import Final

from barnabas.coordinator.classic.embedded_protocol import owned_in, read_subscription, version_of, write_assignment
from barnabas.coordinator.consumer.group import PROTOCOL_TYPE, ConsumerGroup
from barnabas.coordinator.consumer.groups import ConsumerGroups, fenced_instance, unknown_instance
from barnabas.coordinator.consumer.member import ClassicMembership, Member, MemberState, topic_names
from barnabas.coordinator.consumer.settings import MigrationPolicy
from barnabas.coordinator.consumer.step import JOIN, SYNC, ConsumerStep, MemberTimer
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.coordinator.runtime.effects import Effects
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

KNOWN_ID_SINCE: Final = 4  # version of JoinGroup in which a member without an id gets one and must join again with it
MEMBERS_SINCE: Final = 3  # version of LeaveGroup that names several members


class ClassicMembers:
    def __init__(self, groups: ConsumerGroups) -> None:
        self._groups = groups

    # --- JoinGroup ------------------------------------------------------------------------------------------------

    def join(self, request_id: int, asked: GroupRequest, message: JoinGroupRequest, now_ms: int) -> Effects:
        member_id = message.member_id or asked.new_member_id
        step = self._groups.begin(message.group_id, now_ms, creates=False, may_describe=asked.may_describe)
        subscription = self._check_join(step.group, member_id, message)
        if asked.version >= KNOWN_ID_SINCE and not message.member_id and message.group_instance_id is None:
            answer = JoinGroupResponse(error_code=errors.MEMBER_ID_REQUIRED.code, member_id=member_id)
            return step.effects.answer(request_id, answer)
        member = self._joining(step, message, member_id)
        rebalance_timeout_ms = message.rebalance_timeout_ms if asked.version >= 1 else message.session_timeout_ms
        protocols = tuple((protocol.name, bytes(protocol.metadata)) for protocol in message.protocols)
        step.begin(
            member,
            instance_id=message.group_instance_id if message.group_instance_id is not None else member.instance_id,
            rack_id=subscription.rack_id or member.rack_id,
            rebalance_timeout_ms=rebalance_timeout_ms,
            subscribed_topic_names=topic_names(subscription.topics),
            subscribed_topic_regex="",
            client_id=asked.client_id,
            client_host=asked.client_host,
            classic=ClassicMembership(message.session_timeout_ms, protocols),
        )
        updated = self._groups.finish(step, owned_in(subscription, self._groups.topics.image))
        group, effects = step.group, step.effects
        group.awaited_joins.discard(updated.member_id)
        effects.timer(MemberTimer(JOIN, group.group_id, updated.member_id), None)
        effects.timer(MemberTimer(SYNC, group.group_id, updated.member_id), now_ms + rebalance_timeout_ms)
        self._groups.expect_heartbeat(group, updated, now_ms, effects)
        self._groups.downgrade_if_classic(group, [*group.others(updated), updated], now_ms, effects)
        return effects.answer(
            request_id,
            JoinGroupResponse(
                member_id=updated.member_id,
                generation_id=updated.member_epoch,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=protocols[0][0],
            ),
        )

    def _check_join(
        self, group: ConsumerGroup, member_id: str, message: JoinGroupRequest
    ) -> ConsumerProtocolSubscription:
        if self._groups.settings_of(group.group_id).migration_policy is MigrationPolicy.DISABLED:
            raise ApiError(
                errors.INCONSISTENT_GROUP_PROTOCOL,
                f"group {group.group_id!r} takes no members of the classic protocol: group.consumer.migration.policy "
                "is disabled",
            )
        self._groups.check_room(group, member_id)
        names = [protocol.name for protocol in message.protocols]
        if not group.supports_protocols(message.protocol_type, names):
            raise ApiError(
                errors.INCONSISTENT_GROUP_PROTOCOL, f"member {member_id!r} and the group have no protocol in common"
            )
        try:
            return read_subscription(bytes(message.protocols[0].metadata))
        except Malformed as error:
            raise ApiError(
                errors.INCONSISTENT_GROUP_PROTOCOL, f"the member's subscription cannot be read: {error}"
            ) from error

    def _joining(self, step: ConsumerStep, message: JoinGroupRequest, member_id: str) -> Member:
        """The member that joins, as it was; an instance without a member id takes its own place, whoever holds it."""
        group, instance_id = step.group, message.group_instance_id
        if instance_id is None:
            return group.members.get(member_id) or Member(member_id=member_id)
        known = group.static_member(instance_id)
        if message.member_id:
            return self._known(group, member_id, instance_id)
        return Member(member_id=member_id) if known is None else step.replace_static(known, member_id)

    # --- SyncGroup, Heartbeat -------------------------------------------------------------------------------------

    def sync(self, request_id: int, asked: GroupRequest, message: SyncGroupRequest, now_ms: int) -> Effects:
        group = self._groups.group(message.group_id)
        member, classic = self._current(group, message.member_id, message.group_instance_id, message.generation_id)
        protocol, metadata = classic.protocols[0]
        if message.protocol_type not in (None, PROTOCOL_TYPE) or message.protocol_name not in (None, protocol):
            raise ApiError(errors.INCONSISTENT_GROUP_PROTOCOL)
        effects = Effects()
        if group.assignment_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._await_join(group, member, now_ms, effects)
            return effects.answer(request_id, SyncGroupResponse(error_code=errors.REBALANCE_IN_PROGRESS.code))
        effects.timer(MemberTimer(SYNC, group.group_id, member.member_id), None)
        self._groups.expect_heartbeat(group, member, now_ms, effects)
        assignment = write_assignment(member.assigned, version_of(metadata), self._groups.topics.image)
        answer = SyncGroupResponse(
            protocol_type=message.protocol_type, protocol_name=message.protocol_name, assignment=assignment
        )
        return effects.answer(request_id, answer)

    def heartbeat(self, request_id: int, asked: GroupRequest, message: HeartbeatRequest, now_ms: int) -> Effects:
        group = self._groups.group(message.group_id)
        member, _ = self._current(group, message.member_id, message.group_instance_id, message.generation_id)
        effects = Effects()
        self._groups.expect_heartbeat(group, member, now_ms, effects)
        is_behind = (
            member.member_epoch < group.assignment_epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member))
        )
        if is_behind:
            self._await_join(group, member, now_ms, effects)
        error = errors.REBALANCE_IN_PROGRESS if is_behind else errors.NONE
        return effects.answer(request_id, HeartbeatResponse(error_code=error.code))

    def _await_join(self, group: ConsumerGroup, member: Member, now_ms: int, effects: Effects) -> None:
        """It has been told to join again: the time that it has for it runs from the first time."""
        if member.member_id not in group.awaited_joins:
            group.awaited_joins.add(member.member_id)
            timer = MemberTimer(JOIN, group.group_id, member.member_id)
            effects.timer(timer, now_ms + member.rebalance_timeout_ms)

    def _current(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> tuple[Member, ClassicMembership]:
        member = self._known(group, member_id, instance_id)
        if member.classic is None:
            raise _not_classic(member)
        if generation != member.member_epoch:
            raise ApiError(
                errors.ILLEGAL_GENERATION,
                f"member {member.member_id!r} is in generation {member.member_epoch}, not {generation}",
            )
        return member, member.classic

    def _known(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member:
        if instance_id is None:
            return group.member(member_id)
        member = group.static_member(instance_id)
        if member is None:
            raise unknown_instance(instance_id)
        if member_id != member.member_id:
            raise fenced_instance(member, member_id)
        return member

    # --- LeaveGroup -----------------------------------------------------------------------------------------------

    def leave(self, request_id: int, asked: GroupRequest, message: LeaveGroupRequest, now_ms: int) -> Effects:
        group = self._groups.group(message.group_id)
        if asked.version < MEMBERS_SINCE:
            member = self._leaving(group, message.member_id, None)
            return self._groups.remove(group, [member], now_ms).answer(request_id, LeaveGroupResponse())
        gone: dict[str, Member] = {}
        response = LeaveGroupResponse()
        for identity in message.members:
            row = LeaveGroupResponse.MemberResponse(
                member_id=identity.member_id, group_instance_id=identity.group_instance_id
            )
            try:
                member = self._leaving(group, identity.member_id, identity.group_instance_id)
                row.member_id = member.member_id
                gone[member.member_id] = member
            except ApiError as error:
                row.error_code = error.error.code
            response.members.append(row)
        effects = self._groups.remove(group, list(gone.values()), now_ms) if gone else Effects()
        return effects.answer(request_id, response)

    def _leaving(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member:
        """Who is to go; an administrator names an instance without knowing its member id."""
        if instance_id is not None and not member_id:
            member = group.static_member(instance_id)
            if member is None:
                raise unknown_instance(instance_id)
        else:
            member = self._known(group, member_id, instance_id)
        if not member.uses_classic_protocol:
            raise _not_classic(member)
        return member


def _not_classic(member: Member) -> ApiError:
    return ApiError(errors.UNKNOWN_MEMBER_ID, f"member {member.member_id!r} is none of the classic protocol")
