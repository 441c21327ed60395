"""How a classic group gets from one generation to the next: who is waited for, how long, and who is told what.

Everything is decided from the group and the time, and added to the effects of the step. Requests come in through
:mod:`barnabas.coordinator.classic.requests`; what a group is, is in :mod:`barnabas.coordinator.classic.group`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from barnabas.coordinator.classic.group import COMPLETING, EMPTY, PREPARING, STABLE, ClassicGroup
from barnabas.coordinator.classic.member import ClassicMember
from barnabas.coordinator.groups.records import classic_group_key, classic_group_value
from barnabas.coordinator.groups.settings import GroupSettings
from barnabas.coordinator.groups.tally import GroupTally
from barnabas.coordinator.runtime.effects import Effects, nothing_to_undo
from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.observe.log import logger
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupResponse

log = logger("groups")

JOIN: Final = "classic-join"
SYNC: Final = "classic-sync"
SESSION: Final = "classic-session"


def session_key(group: ClassicGroup, member_id: str) -> Hashable:
    return SESSION, group.group_id, member_id


class ClassicRebalance:
    def __init__(self, settings: Callable[[], GroupSettings], tally: GroupTally) -> None:
        self._settings = settings
        self._tally = tally

    # --- beginning ------------------------------------------------------------------------------------------------

    def prepare_or_complete(self, group: ClassicGroup, now_ms: int, effects: Effects, reason: str) -> None:
        """Something has changed: begin a rebalance, or see whether this ends the one under way."""
        if group.state is PREPARING:
            self.complete_if_all_joined(group, now_ms, effects)
        else:
            self.prepare(group, now_ms, effects, reason)

    def prepare(self, group: ClassicGroup, now_ms: int, effects: Effects, reason: str) -> None:
        if group.state is COMPLETING:
            for member in group.members.values():
                member.assignment = b""
            self.propagate(group, errors.REBALANCE_IN_PROGRESS, now_ms, effects)
        group.pending_syncs.clear()
        effects.timer((SYNC, group.group_id), None)
        is_first = group.state is EMPTY
        group.move(PREPARING, now_ms=now_ms)
        log.info("group rebalances", group=group.group_id, generation=group.generation, reason=reason)
        if is_first:
            # Others are likely to come at the same time: give them a moment, so that one rebalance does for all.
            delay_ms = self._settings().initial_rebalance_delay_ms
            group.has_new_member = False
            group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            if delay_ms == 0:
                self.complete(group, now_ms, effects)
            else:
                effects.timer((JOIN, group.group_id), now_ms + delay_ms)
        elif group.have_all_joined:
            self.complete(group, now_ms, effects)
        else:
            effects.timer((JOIN, group.group_id), now_ms + group.rebalance_timeout_ms)

    def complete_if_all_joined(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        # During the initial delay nobody knows who "all" are; its timer ends it.
        if group.state is PREPARING and group.previous_state is not EMPTY and group.have_all_joined:
            self.complete(group, now_ms, effects)

    def on_join_timer(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        if group.state is not PREPARING:
            return
        if group.previous_state is EMPTY and group.has_new_member and group.initial_remaining_ms > 0:
            delay_ms = min(self._settings().initial_rebalance_delay_ms, group.initial_remaining_ms)
            group.has_new_member = False
            group.initial_remaining_ms = max(group.initial_remaining_ms - delay_ms, 0)
            effects.timer((JOIN, group.group_id), now_ms + delay_ms)
        else:
            self.complete(group, now_ms, effects)

    # --- the join ends --------------------------------------------------------------------------------------------

    def complete(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        """Begin the generation with those who have joined; static members may be late, the others are dropped."""
        effects.timer((JOIN, group.group_id), None)
        for member in list(group.members.values()):
            if member.join_request is None and not member.is_static:
                group.remove(member.member_id)
                effects.timer(session_key(group, member.member_id), None)
        if not group.elect_joined_leader() and group.members:
            # Only static members are left, and none is here: their sessions will end one by one.
            effects.timer((JOIN, group.group_id), now_ms + group.rebalance_timeout_ms)
            return
        group.begin_generation(now_ms=now_ms)
        if group.state is EMPTY:
            log.info("group is empty", group=group.group_id, generation=group.generation)
            effects.record(classic_group_key(group.group_id), classic_group_value(group.as_record()))
            # If that is not kept, members of before come back with the log, and their sessions end as they did.
            effects.rescue = nothing_to_undo
            return
        log.info("generation begins", group=group.group_id, generation=group.generation, members=len(group.members))
        for member in group.members.values():
            self.answer_join(group, member, effects)
            effects.timer(session_key(group, member.member_id), now_ms + member.session_timeout_ms)
            member.is_new = False
            group.pending_syncs[member.member_id] = None
        effects.timer((SYNC, group.group_id), now_ms + group.rebalance_timeout_ms)

    def answer_join(self, group: ClassicGroup, member: ClassicMember, effects: Effects) -> None:
        if member.join_request is not None:
            effects.answer(member.join_request, joined(group, member))
            group.note_join(member, None)

    def refuse_join(
        self, group: ClassicGroup, member: ClassicMember, error: WireError, effects: Effects, *, member_id: str = ""
    ) -> None:
        if member.join_request is not None:
            effects.answer(member.join_request, join_refused(member_id, error))
            group.note_join(member, None)

    # --- the assignment -------------------------------------------------------------------------------------------

    def assign(self, group: ClassicGroup, assignments: dict[str, bytes], now_ms: int, effects: Effects) -> None:
        """The leader has decided: keep it, and tell everybody."""
        value = classic_group_value(group.as_record(assignments))
        if len(value) > self._settings().record_bytes_max:
            log.warning("group's assignment is too large", group=group.group_id, size_bytes=len(value))
            for member in group.members.values():
                member.assignment = b""
            self.propagate(group, errors.UNKNOWN_SERVER_ERROR, now_ms, effects)
            self.prepare(group, now_ms, effects, "the assignment is too large to be kept")
            return
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        self.propagate(group, errors.NONE, now_ms, effects)
        group.move(STABLE, now_ms=now_ms)
        self._tally.classic_rebalances.mark()
        effects.record(classic_group_key(group.group_id), value)
        effects.rescue = lambda: self._assign_again(group, now_ms)

    def _assign_again(self, group: ClassicGroup, now_ms: int) -> Effects:
        """The assignment could not be kept, and everybody who waited for it has heard so."""
        effects = Effects()
        for member in group.members.values():
            member.assignment = b""
        self.prepare(group, now_ms, effects, "the assignment could not be kept")
        return effects

    def propagate(self, group: ClassicGroup, error: WireError, now_ms: int, effects: Effects) -> None:
        for member in group.members.values():
            if member.sync_request is not None:
                effects.answer(member.sync_request, synced(group, member, error))
                member.sync_request = None
                effects.timer(session_key(group, member.member_id), now_ms + member.session_timeout_ms)

    def note_sync(self, group: ClassicGroup, member_id: str, effects: Effects) -> None:
        group.pending_syncs.pop(member_id, None)
        if not group.pending_syncs:
            effects.timer((SYNC, group.group_id), None)

    def on_sync_timer(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        """Who has the generation but never asked for its part is dropped."""
        if group.state not in (COMPLETING, STABLE) or not group.pending_syncs:
            return
        for member_id in list(group.pending_syncs):
            group.remove(member_id)
            effects.timer(session_key(group, member_id), None)
        self.prepare(group, now_ms, effects, "members did not ask for their assignment")

    # --- going ----------------------------------------------------------------------------------------------------

    def on_session_timer(self, group: ClassicGroup, member_id: str, now_ms: int, effects: Effects) -> None:
        if member_id in group.pending_members:
            group.remove(member_id)
            self._someone_less_to_wait_for(group, now_ms, effects)
            return
        member = group.members.get(member_id)
        if member is None or member.is_known_alive:
            return
        self.remove(group, member, effects)
        self.after_removal(group, now_ms, effects, f"the session of {member_id} has ended")

    def remove(self, group: ClassicGroup, member: ClassicMember, effects: Effects) -> None:
        # Should the client still be there, this answer makes it join anew.
        self.refuse_join(group, member, errors.UNKNOWN_MEMBER_ID, effects)
        if member.sync_request is not None:
            effects.answer(member.sync_request, SyncGroupResponse(error_code=errors.UNKNOWN_MEMBER_ID.code))
            member.sync_request = None
        group.remove(member.member_id)
        effects.timer(session_key(group, member.member_id), None)

    def after_removal(self, group: ClassicGroup, now_ms: int, effects: Effects, reason: str) -> None:
        if group.state in (STABLE, COMPLETING):
            self.prepare(group, now_ms, effects, reason)
        else:
            self._someone_less_to_wait_for(group, now_ms, effects)

    def _someone_less_to_wait_for(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        if group.state is PREPARING and group.have_all_joined:
            self.complete(group, now_ms, effects)


def joined(group: ClassicGroup, member: ClassicMember, *, skips_assignment: bool = False) -> JoinGroupResponse:
    """What a member hears of its generation; only the leader hears of the others."""
    members = []
    if group.leader_id == member.member_id:
        protocol = group.protocol or ""
        members = [
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=other.member_id, group_instance_id=other.instance_id, metadata=other.metadata(protocol)
            )
            for other in group.members.values()
        ]
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader_id or "",
        skip_assignment=skips_assignment,
        member_id=member.member_id,
        members=members,
    )


def join_refused(member_id: str, error: WireError) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error.code, member_id=member_id, protocol_name=None)


def synced(group: ClassicGroup, member: ClassicMember, error: WireError = errors.NONE) -> SyncGroupResponse:
    if error is not errors.NONE:
        return SyncGroupResponse(error_code=error.code)
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
    )
