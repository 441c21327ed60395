"""All groups of one partition of ``__consumer_offsets``: routes requests, records and timers to the group protocols.

The protocols are a table, see :mod:`barnabas.coordinator.groups.protocol`. Offsets, lists and deletions are shared by
all of them. The runtime runs this shard; nothing here waits or reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from barnabas.coordinator.groups.listing import delete_groups, list_groups
from barnabas.coordinator.groups.offset_access import EXPIRY, GroupOffsets
from barnabas.coordinator.groups.offset_protocol import FetchOffsets, OffsetProtocol
from barnabas.coordinator.groups.offsets import Offsets
from barnabas.coordinator.groups.protocol import Group, GroupProtocol, Handler, Protocols
from barnabas.coordinator.groups.records import (
    LEGACY_OFFSET,
    OFFSET,
    decode_offset_key,
    decode_offset_value,
    key_type,
)
from barnabas.coordinator.groups.requests import GroupRequest, ProtocolRequest, TopicsDeleted
from barnabas.coordinator.groups.settings import GroupSettings
from barnabas.coordinator.groups.tally import GroupTally
from barnabas.coordinator.runtime.effects import Answer, Effects, ProducerIdEpoch, nothing_to_undo
from barnabas.wire.message import Message
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest


class GroupShard:
    def __init__(
        self,
        settings: Callable[[], GroupSettings],
        make_protocols: Callable[[GroupShard], Protocols],
        *,
        tally: GroupTally,
    ) -> None:
        self.settings = settings
        self.tally = tally
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.offset_protocol = OffsetProtocol(self.offsets, settings, tally)
        self.default, others = make_protocols(self)
        made = (self.default, *others)
        self.protocols: dict[str, GroupProtocol] = {each.group_type: each for each in made}
        self.group_offsets = GroupOffsets(self.groups, self.protocols, self.default, self.offset_protocol, settings)
        self._replayers = {number: each.replay for each in made for number in each.record_types}
        self._timers = {kind: each.on_timer for each in made for kind in each.timer_kinds}
        self._handlers: dict[type[Message], Handler] = {
            OffsetCommitRequest: self.group_offsets.commit,
            TxnOffsetCommitRequest: self.group_offsets.commit_in_transaction,
            OffsetDeleteRequest: self.group_offsets.delete,
            ListGroupsRequest: self._list,
            DeleteGroupsRequest: self._delete,
        }
        self._owners: dict[type[Message], dict[str, Handler]] = {}  # requests of protocols, by type of the named group
        for each in made:
            for request, handler in each.requests.items():
                self._handlers.setdefault(request, handler)
                self._owners.setdefault(request, {})[each.group_type] = handler

    # --- what the runtime calls -----------------------------------------------------------------------------------

    def handle(self, request_id: int, request: Any, now_ms: int) -> Effects:
        if isinstance(request, GroupRequest):
            return self._handler_of(request.message)(request_id, request, request.message, now_ms)
        if isinstance(request, FetchOffsets):
            return Effects().answer(request_id, self.group_offsets.fetch(request))
        if isinstance(request, ProtocolRequest):
            return self.protocols[request.group_type].handle(request_id, request.content, now_ms)
        assert isinstance(request, TopicsDeleted)
        effects = Effects()
        self.offset_protocol.delete_topics(request.names, effects)
        effects.rescue = nothing_to_undo
        for protocol in self.protocols.values():
            protocol.on_topics_deleted(request.names, effects)
        return effects

    def _handler_of(self, message: Any) -> Handler:
        """That of the protocol which owns the group, if several protocols answer the request; else the first one."""
        owners = self._owners.get(type(message))
        if owners is not None and len(owners) > 1:
            group = self.groups.get(message.group_id)
            if group is not None and group.group_type in owners:
                return owners[group.group_type]
        return self._handlers[type(message)]

    def on_timer(self, key: Hashable, now_ms: int) -> Effects:
        assert isinstance(key, tuple)
        if key[0] == EXPIRY:
            effects = Effects()
            self.group_offsets.expire(now_ms, effects)
            return effects
        return self._timers[key[0]](key, now_ms)

    def loaded(self, now_ms: int) -> Effects:
        """Start the timers of the groups and of the retention of offsets."""
        effects = Effects().timer((EXPIRY,), now_ms + self.settings().retention_check_ms)
        for protocol in self.protocols.values():
            effects.extend(protocol.loaded(now_ms))
        return effects

    def unloaded(self) -> list[Answer]:
        """The runtime answers the waiting requests with NOT_COORDINATOR, which is all that they need."""
        return []

    # --- records --------------------------------------------------------------------------------------------------

    def replay(
        self, key: bytes, value: bytes | None, *, offset: int, producer: ProducerIdEpoch | None, timestamp_ms: int
    ) -> None:
        kind = key_type(key)
        if kind in (OFFSET, LEGACY_OFFSET):
            line = decode_offset_key(key)
            committed = None if value is None else decode_offset_value(value)
            if committed is not None:
                self.default.replay_offset(line.group, timestamp_ms)
            producer_id = -1 if producer is None else producer.producer_id
            self.offsets.replay(line, committed, offset=offset, producer_id=producer_id)
            return
        replayer = self._replayers.get(kind)
        if replayer is not None:
            replayer(key, value)
        # Else it is a record of a protocol that this broker does not have: another broker wrote it.

    def replay_marker(self, producer_id: int, producer_epoch: int, *, is_commit: bool) -> None:
        self.offsets.replay_marker(producer_id, is_commit=is_commit)

    # --- groups ---------------------------------------------------------------------------------------------------

    def _add_tombstones(self, group: Group, effects: Effects) -> None:
        """The records that delete a group and all its offsets."""
        self.offset_protocol.delete_all(group.group_id, effects)
        self.protocols[group.group_type].add_tombstones(group, effects)

    def _list(self, request_id: int, asked: GroupRequest, message: ListGroupsRequest, now_ms: int) -> Effects:
        return Effects().answer(request_id, list_groups(self.groups.values(), message))

    def _delete(self, request_id: int, asked: GroupRequest, message: DeleteGroupsRequest, now_ms: int) -> Effects:
        effects = Effects()
        effects.rescue = nothing_to_undo
        return effects.answer(request_id, delete_groups(self.groups, message, self._add_tombstones, effects))
