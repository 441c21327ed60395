"""Which share-partitions of a group have state: requests of the broker around its calls of the share coordinator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from barnabas.coordinator.runtime.effects import Effects, nothing_to_undo
from barnabas.coordinator.share.group import ShareGroup, StatePartitions, joined
from barnabas.coordinator.share.records import STATE_PARTITIONS, of_group
from barnabas.coordinator.share.requests import (
    BeginDeletion,
    BeginOffsets,
    ReadStates,
    StateAbandoned,
    StateDeleted,
    StateInitialized,
)
from barnabas.model.ids import Uuid


class Finder(Protocol):
    """Finds share groups and writes their own record; it is the protocol of share groups."""

    def find(self, group_id: str) -> ShareGroup | None: ...

    def group(self, group_id: str) -> ShareGroup: ...

    def group_record(self, group: ShareGroup, epoch: int, names: set[str]) -> Any: ...


class ShareStates:
    def __init__(self, groups: Finder) -> None:
        self._groups = groups

    def handle(self, request_id: int, content: object) -> Effects:
        effects = Effects()
        effects.rescue = nothing_to_undo
        match content:
            case ReadStates():
                return effects.answer(request_id, self._groups.group(content.group_id).states)
            case StateInitialized():
                group = self._groups.group(content.group_id)
                self.write(group, group.states.finished(content.topics), effects)
            case StateAbandoned():
                group = self._groups.group(content.group_id)
                self.write(group, group.states.abandoned(content.topics), effects)
            case BeginOffsets():
                return effects.answer(request_id, self._begin_offsets(content, effects))
            case BeginDeletion():
                return self._begin_deletion(request_id, content, effects)
            case _:
                assert isinstance(content, StateDeleted)
                group = self._groups.group(content.group_id)
                self.write(group, group.states.forgotten(content.topics), effects)
        return effects.answer(request_id, None)

    def write(self, group: ShareGroup, states: StatePartitions, effects: Effects) -> None:
        if states != group.states:
            effects.records.append(of_group(STATE_PARTITIONS, group.group_id, states.value()))

    def _begin_offsets(self, content: BeginOffsets, effects: Effects) -> int:
        """A new epoch of the group is the state epoch: it fences leaders that still have the old state in memory."""
        group = self._groups.find(content.group_id) or ShareGroup(content.group_id)
        group.check_delete()  # the group must not have members
        epoch = group.epoch + 1
        effects.records.append(self._groups.group_record(group, epoch, set()))
        self.write(group, group.states.begun(content.topics), effects)
        return epoch

    def _begin_deletion(self, request_id: int, content: BeginDeletion, effects: Effects) -> Effects:
        group = self._groups.group(content.group_id)
        group.check_delete()
        known = joined(group.states.initialized, group.states.initializing)
        topics: Iterable[Uuid] = known if content.topics is None else content.topics
        to_delete = {topic: known[topic] for topic in topics if topic in known}
        self.write(group, group.states.begun_deleting(to_delete), effects)
        return effects.answer(request_id, to_delete)
