"""Offsets, asked of the groups of one shard: whether the group lets this one commit, read or delete, and what expires.

What is written and how answers look is in :mod:`barnabas.coordinator.groups.offset_protocol`. A commit changes
nothing but by its lines, so one that cannot be written harms nobody else. The group shard sends the requests here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.coordinator.groups.offset_protocol import FetchOffsets, OffsetProtocol
from barnabas.coordinator.groups.protocol import Commit, DefaultProtocol, Group, GroupProtocol
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.coordinator.groups.settings import EXPIRED_PER_STEP_MAX, GroupSettings
from barnabas.coordinator.runtime.effects import Effects, nothing_to_undo
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchResponse
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

EXPIRY: Final = "offsets-expiry"
GROUP_ID_NOT_FOUND_SINCE: Final = 9  # version of OffsetCommit; older clients do not know the error


class GroupOffsets:
    def __init__(
        self,
        groups: Mapping[str, Group],
        protocols: Mapping[str, GroupProtocol],
        default: DefaultProtocol,
        offset_protocol: OffsetProtocol,
        settings: Callable[[], GroupSettings],
    ) -> None:
        """``groups`` are those of the shard by group id, ``protocols`` by the type of their groups."""
        self._groups = groups
        self._protocols = protocols
        self._default = default
        self._offset_protocol = offset_protocol
        self._settings = settings

    def commit(self, request_id: int, asked: GroupRequest, message: OffsetCommitRequest, now_ms: int) -> Effects:
        effects = Effects()
        epoch = message.generation_id_or_member_epoch
        if message.group_id not in self._groups and epoch >= 0:
            is_known_error = asked.version >= GROUP_ID_NOT_FOUND_SINCE
            raise ApiError(errors.GROUP_ID_NOT_FOUND if is_known_error else errors.ILLEGAL_GENERATION)
        self._check_commit(asked, message, epoch, now_ms, effects, is_transactional=False)
        response = self._offset_protocol.commit(asked, message, now_ms, effects)
        self._be_ready_to_forget(message.group_id, effects)
        return effects.answer(request_id, response)

    def commit_in_transaction(
        self, request_id: int, asked: GroupRequest, message: TxnOffsetCommitRequest, now_ms: int
    ) -> Effects:
        effects = Effects()
        if message.group_id not in self._groups and message.generation_id >= 0:
            raise ApiError(errors.ILLEGAL_GENERATION)
        try:
            self._check_commit(asked, message, message.generation_id, now_ms, effects, is_transactional=True)
        except ApiError as error:
            if error.error is errors.STALE_MEMBER_EPOCH:
                raise ApiError(errors.ILLEGAL_GENERATION, error.message) from error
            raise
        response = self._offset_protocol.commit_in_transaction(asked, message, now_ms, effects)
        self._be_ready_to_forget(message.group_id, effects)
        return effects.answer(request_id, response)

    def _check_commit(
        self,
        asked: GroupRequest,
        message: OffsetCommitRequest | TxnOffsetCommitRequest,
        epoch: int,
        now_ms: int,
        effects: Effects,
        *,
        is_transactional: bool,
    ) -> None:
        group = self._groups.get(message.group_id)
        if group is None:
            group = self._default.create(message.group_id, now_ms)
        commit = Commit(asked, message, epoch, is_transactional)
        self._protocols[group.group_type].check_commit(group, commit, now_ms, effects)

    def fetch(self, request: FetchOffsets) -> OffsetFetchResponse.OffsetFetchResponseGroup:
        group = self._groups.get(request.group.group_id)
        if group is not None:
            group.check_fetch(request.group.member_id, request.group.member_epoch)
        return OffsetFetchResponse.OffsetFetchResponseGroup(
            group_id=request.group.group_id, topics=self._offset_protocol.fetch(request)
        )

    def delete(self, request_id: int, _: GroupRequest, message: OffsetDeleteRequest, now_ms: int) -> Effects:
        group = self._groups.get(message.group_id)
        if group is None:
            raise ApiError(errors.GROUP_ID_NOT_FOUND, f"there is no group {message.group_id!r}")
        group.check_delete_offsets()
        effects = Effects()
        effects.rescue = nothing_to_undo
        return effects.answer(request_id, self._offset_protocol.delete(group, message, effects))

    def expire(self, now_ms: int, effects: Effects) -> None:
        """Delete expired offsets and groups without offsets and members; what exceeds one step follows in the next."""
        effects.timer((EXPIRY,), now_ms + self._settings().retention_check_ms)
        effects.rescue = nothing_to_undo  # expired offsets are deleted on the next tick
        for group in list(self._groups.values()):
            is_nothing_left = self._offset_protocol.expire(group.group_id, group, now_ms, effects)
            if is_nothing_left and group.may_expire:
                self._protocols[group.group_type].add_tombstones(group, effects)
            if len(effects.records) >= EXPIRED_PER_STEP_MAX:
                effects.timer((EXPIRY,), now_ms + 1)
                return

    def _be_ready_to_forget(self, group_id: str, effects: Effects) -> None:
        """Remove the group that a commit created, if none of the offsets of the commit is written."""
        effects.rescue = lambda: self._forget_unused(group_id)
        if not effects.records:
            self._forget_unused(group_id)

    def _forget_unused(self, group_id: str) -> Effects:
        group = self._groups.get(group_id)
        if group is not None:
            self._protocols[group.group_type].forget_if_unused(group)
        return Effects()
