"""The requests of the classic group protocol, answered: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Each method takes a group, the request and the time and adds what follows to the effects. Waiting and time-outs are in
:mod:`barnabas.coordinator.classic.rebalance`; :mod:`barnabas.coordinator.classic.protocol` finds the group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.coordinator.classic.group import COMPLETING, EMPTY, PREPARING, STABLE, ClassicGroup
from barnabas.coordinator.classic.member import ClassicMember, Protocols, largest_metadata_bytes
from barnabas.coordinator.classic.rebalance import (
    ClassicRebalance,
    join_refused,
    joined,
    session_key,
    synced,
)
from barnabas.coordinator.groups.records import classic_group_key, classic_group_value
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.coordinator.groups.settings import (
    NEW_MEMBER_JOIN_MS_MAX,
    PENDING_MEMBERS_MAX,
    PROTOCOLS_PER_MEMBER_MAX,
    GroupSettings,
)
from barnabas.coordinator.groups.tally import GroupTally
from barnabas.coordinator.runtime.effects import Effects
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

KNOWN_ID_SINCE: Final = 4  # JoinGroup: who has no id gets one and must come back with it
SKIPS_ASSIGNMENT_SINCE: Final = 9


class ClassicRequests:
    def __init__(self, settings: Callable[[], GroupSettings], tally: GroupTally) -> None:
        self._settings = settings
        self.rebalance = ClassicRebalance(settings, tally)

    # --- JoinGroup ------------------------------------------------------------------------------------------------

    def join(self, group: ClassicGroup, request_id: int, asked: GroupRequest, now_ms: int, effects: Effects) -> None:
        message = asked.message
        assert isinstance(message, JoinGroupRequest)
        protocols = protocols_of(message)
        if not self._has_room(group, message.member_id):
            group.remove(message.member_id)
            effects.answer(request_id, join_refused("", errors.GROUP_MAX_SIZE_REACHED))
        elif not group.can_speak(message.protocol_type, protocols):
            effects.answer(request_id, join_refused(message.member_id, errors.INCONSISTENT_GROUP_PROTOCOL))
        elif sum(len(metadata) for _, metadata in protocols) > self._settings().record_bytes_max:
            effects.answer(request_id, join_refused(message.member_id, errors.MESSAGE_TOO_LARGE))
        elif not self._can_keep(group, message.member_id, protocols):
            effects.answer(request_id, join_refused("", errors.GROUP_MAX_SIZE_REACHED))
        elif message.member_id:
            self._join_known(group, request_id, message, asked, now_ms, effects)
        elif message.group_instance_id is not None:
            self._join_static(group, request_id, message, asked, now_ms, effects)
        elif asked.version >= KNOWN_ID_SINCE:
            self._hand_out_id(group, request_id, message, asked.new_member_id, now_ms, effects)
        else:
            self._add(group, request_id, message, asked, asked.new_member_id, now_ms, effects)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        limit = self._settings().members_max
        member = group.members.get(member_id)
        if group.state is EMPTY:
            return True
        if group.state is PREPARING:
            # Who waits already is in; so the last ones to come are left out if the limit was lowered.
            return (member is not None and member.join_request is not None) or group.joined_count < limit
        return member is not None or len(group.members) < limit

    def _can_keep(self, group: ClassicGroup, member_id: str, protocols: Protocols) -> bool:
        """Whether the group fits into its line with this member: one who says too much must not end it for all."""
        if len(protocols) > PROTOCOLS_PER_MEMBER_MAX:
            return False
        member = group.members.get(member_id)
        others_bytes = group.metadata_bytes - (largest_metadata_bytes(member.protocols) if member else 0)
        return others_bytes + largest_metadata_bytes(protocols) <= self._settings().record_bytes_max

    def _hand_out_id(
        self,
        group: ClassicGroup,
        request_id: int,
        message: JoinGroupRequest,
        member_id: str,
        now_ms: int,
        effects: Effects,
    ) -> None:
        if len(group.pending_members) >= PENDING_MEMBERS_MAX:
            effects.answer(request_id, join_refused("", errors.GROUP_MAX_SIZE_REACHED))
            return
        group.pending_members[member_id] = None
        effects.timer(session_key(group, member_id), now_ms + message.session_timeout_ms)
        effects.answer(request_id, join_refused(member_id, errors.MEMBER_ID_REQUIRED))

    def _add(
        self,
        group: ClassicGroup,
        request_id: int,
        message: JoinGroupRequest,
        asked: GroupRequest,
        member_id: str,
        now_ms: int,
        effects: Effects,
    ) -> None:
        member = ClassicMember(
            member_id=member_id,
            instance_id=message.group_instance_id,
            client_id=asked.client_id,
            client_host=asked.client_host,
            rebalance_timeout_ms=rebalance_timeout_ms(message),
            session_timeout_ms=message.session_timeout_ms,
            protocol_type=message.protocol_type,
            protocols=protocols_of(message),
            join_request=request_id,
            is_new=True,
        )
        if group.state is PREPARING and group.previous_state is EMPTY:
            group.has_new_member = True
        group.add(member)
        effects.timer(session_key(group, member_id), now_ms + NEW_MEMBER_JOIN_MS_MAX)
        self.rebalance.prepare_or_complete(group, now_ms, effects, f"{member_id} joins")

    def _join_known(
        self,
        group: ClassicGroup,
        request_id: int,
        message: JoinGroupRequest,
        asked: GroupRequest,
        now_ms: int,
        effects: Effects,
    ) -> None:
        if message.member_id in group.pending_members and message.group_instance_id is None:
            self._add(group, request_id, message, asked, message.member_id, now_ms, effects)
            return
        try:
            member = group.check_member(message.member_id, message.group_instance_id)
        except ApiError as error:
            effects.answer(request_id, join_refused(message.member_id, error.error))
            return
        is_unchanged = member.protocols == protocols_of(message)
        is_leader = group.leader_id == member.member_id
        if is_unchanged and (group.state is COMPLETING or (group.state is STABLE and not is_leader)):
            # It may have missed the answer to its join. A leader that joins again in a stable group wants a rebalance.
            effects.answer(request_id, joined(group, member))
            return
        self._update(group, member, request_id, message)
        self.rebalance.prepare_or_complete(group, now_ms, effects, f"{member.member_id} joins again")

    def _update(self, group: ClassicGroup, member: ClassicMember, request_id: int, message: JoinGroupRequest) -> None:
        group.change_protocols(member, protocols_of(message))
        member.rebalance_timeout_ms = rebalance_timeout_ms(message)
        member.session_timeout_ms = message.session_timeout_ms
        group.note_join(member, request_id)

    def _join_static(
        self,
        group: ClassicGroup,
        request_id: int,
        message: JoinGroupRequest,
        asked: GroupRequest,
        now_ms: int,
        effects: Effects,
    ) -> None:
        """An instance comes for the first time, or comes back: then it takes its own place, without a rebalance."""
        known_id = group.static_members.get(message.group_instance_id or "")
        if known_id is None:
            self._add(group, request_id, message, asked, asked.new_member_id, now_ms, effects)
            return
        member = group.members[known_id]
        protocols = member.protocols
        self._fence(group, member, effects)
        former_leader = group.leader_id
        group.rename(member, asked.new_member_id)
        self._update(group, member, request_id, message)
        effects.timer(session_key(group, member.member_id), now_ms + member.session_timeout_ms)
        if group.state is STABLE and group.choose_protocol() == group.protocol:
            group.note_join(member, None)
            is_leader = group.leader_id == member.member_id
            answer = joined(group, member, skips_assignment=is_leader)
            if asked.version < SKIPS_ASSIGNMENT_SINCE:
                # An older client that is told it leads would assign anew, which nobody is waiting for.
                answer.leader, answer.members, answer.skip_assignment = former_leader or "", [], False
            effects.answer(request_id, answer)
            effects.record(classic_group_key(group.group_id), classic_group_value(group.as_record()))
            effects.rescue = lambda: self._take_back(group, member, known_id, protocols, now_ms)
        else:
            self.rebalance.prepare_or_complete(
                group, now_ms, effects, f"instance {member.instance_id} joins with other protocols or while syncing"
            )

    def _take_back(
        self, group: ClassicGroup, member: ClassicMember, former_id: str, protocols: Protocols, now_ms: int
    ) -> Effects:
        """An instance's new id could not be kept, so it has its former one."""
        effects = Effects().timer(session_key(group, member.member_id), None)
        group.rename(member, former_id)
        group.change_protocols(member, protocols)
        self.extend_session(group, member, now_ms, effects)
        return effects

    def _fence(self, group: ClassicGroup, member: ClassicMember, effects: Effects) -> None:
        """Whoever used the instance's place until now is told so, if it waits for something."""
        self.rebalance.refuse_join(group, member, errors.FENCED_INSTANCE_ID, effects, member_id=member.member_id)
        if member.sync_request is not None:
            effects.answer(member.sync_request, synced(group, member, errors.FENCED_INSTANCE_ID))
            member.sync_request = None
        effects.timer(session_key(group, member.member_id), None)
        group.pending_syncs.pop(member.member_id, None)

    # --- SyncGroup ------------------------------------------------------------------------------------------------

    def sync(
        self, group: ClassicGroup, request_id: int, message: SyncGroupRequest, now_ms: int, effects: Effects
    ) -> None:
        try:
            member = self._check_sync(group, message)
        except ApiError as error:
            effects.answer(request_id, SyncGroupResponse(error_code=error.error.code))
            return
        self.rebalance.note_sync(group, member.member_id, effects)
        if group.state is STABLE:
            effects.answer(request_id, synced(group, member))
            return
        member.sync_request = request_id
        if group.leader_id == member.member_id:
            assignments = {each.member_id: bytes(each.assignment) for each in message.assignments}
            self.rebalance.assign(group, assignments, now_ms, effects)

    def _check_sync(self, group: ClassicGroup, message: SyncGroupRequest) -> ClassicMember:
        if group.state is EMPTY:
            raise ApiError(errors.UNKNOWN_MEMBER_ID)
        member = group.check_member(message.member_id, message.group_instance_id)
        if message.generation_id != group.generation:
            raise ApiError(errors.ILLEGAL_GENERATION)
        if message.protocol_type not in (None, group.protocol_type) or message.protocol_name not in (
            None,
            group.protocol,
        ):
            raise ApiError(errors.INCONSISTENT_GROUP_PROTOCOL)
        if group.state is PREPARING:
            raise ApiError(errors.REBALANCE_IN_PROGRESS)
        return member

    # --- Heartbeat ------------------------------------------------------------------------------------------------

    def heartbeat(
        self, group: ClassicGroup, request_id: int, message: HeartbeatRequest, now_ms: int, effects: Effects
    ) -> None:
        member = group.check_member(message.member_id, message.group_instance_id)
        if message.generation_id != group.generation:
            raise ApiError(errors.ILLEGAL_GENERATION)
        self.extend_session(group, member, now_ms, effects)
        error = errors.REBALANCE_IN_PROGRESS if group.state is PREPARING else errors.NONE
        effects.answer(request_id, HeartbeatResponse(error_code=error.code))

    def extend_session(self, group: ClassicGroup, member: ClassicMember, now_ms: int, effects: Effects) -> None:
        effects.timer(session_key(group, member.member_id), now_ms + member.session_timeout_ms)

    # --- LeaveGroup -----------------------------------------------------------------------------------------------

    def leave(
        self, group: ClassicGroup, request_id: int, message: LeaveGroupRequest, now_ms: int, effects: Effects
    ) -> None:
        results = [self._leave_one(group, identity, effects) for identity in message.members]
        gone = [result.member_id for result in results if result.error_code == errors.NONE.code]
        if gone:
            if group.state in (STABLE, COMPLETING):
                self.rebalance.prepare(group, now_ms, effects, f"{', '.join(gone)} left")
            else:
                self.rebalance.complete_if_all_joined(group, now_ms, effects)
        effects.answer(request_id, LeaveGroupResponse(members=results))

    def _leave_one(
        self, group: ClassicGroup, identity: LeaveGroupRequest.MemberIdentity, effects: Effects
    ) -> LeaveGroupResponse.MemberResponse:
        member_id, instance_id = identity.member_id, identity.group_instance_id
        result = LeaveGroupResponse.MemberResponse(member_id=member_id, group_instance_id=instance_id)
        if not member_id and instance_id is not None:
            member_id = group.static_members.get(instance_id, "")  # an administrator removes an instance by its name
        try:
            if member_id in group.pending_members:
                group.remove(member_id)
                effects.timer(session_key(group, member_id), None)
            else:
                self.rebalance.remove(group, group.check_member(member_id, instance_id), effects)
        except ApiError as error:
            result.error_code = error.error.code
        return result


def protocols_of(message: JoinGroupRequest) -> Protocols:
    return tuple((protocol.name, bytes(protocol.metadata)) for protocol in message.protocols)


def rebalance_timeout_ms(message: JoinGroupRequest) -> int:
    """Version 0 has none: then the session's counts."""
    return message.rebalance_timeout_ms if message.rebalance_timeout_ms >= 0 else message.session_timeout_ms
