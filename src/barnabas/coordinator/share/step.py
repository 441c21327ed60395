"""One heartbeat of a member of a share group: what changes for the member and the group, as records.

As with consumer groups: the member is written down, with a new epoch of the group if the subscriptions have changed; a
new target is computed if the group's epoch is ahead of it; the member gets its target at once, because partitions are
shared and nobody must give one up first. A step reads the group and writes records; replaying them changes the group.
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.coordinator.consumer.assignors import MemberSpec, Partitions
from barnabas.coordinator.consumer.step import KnownTopics
from barnabas.coordinator.consumer.subscriptions import metadata_hash
from barnabas.coordinator.runtime.effects import Effects
from barnabas.coordinator.share.assignor import simple
from barnabas.coordinator.share.group import ShareGroup, ShareMember, TopicState, TopicStates
from barnabas.coordinator.share.records import (
    CURRENT_MEMBER,
    GROUP,
    MEMBER,
    STATE_PARTITIONS,
    TARGET,
    TARGET_MEMBER,
    ShareGroupMetadataValue,
    ShareGroupTargetAssignmentMetadataValue,
    of_group,
    of_member,
    target_value,
)
from barnabas.coordinator.share.settings import ShareGroupSettings
from barnabas.model.ids import Uuid


class ShareStep:
    def __init__(
        self, group: ShareGroup, member: ShareMember, *, topics: KnownTopics, settings: ShareGroupSettings, now_ms: int
    ) -> None:
        """``member`` is the member as it was; a new one has no epoch yet."""
        self.group = group
        self.member = member
        self.updated = member
        self.epoch = group.epoch
        self.effects = Effects()
        self.to_initialize: TopicStates = {}
        self.topics_version = group.topics_version
        self._topics = topics
        self._settings = settings
        self._now_ms = now_ms

    def advance(self, updated: ShareMember) -> None:
        group_id = self.group.group_id
        self.updated = updated
        is_new = updated.member_id not in self.group.members
        if is_new or updated != self.member:
            self.effects.records.append(of_member(MEMBER, group_id, updated.member_id, updated.metadata_value()))
        has_new_subscription = updated.subscribed_topic_names != self.member.subscribed_topic_names
        members = [*(each for each in self.group.members.values() if each.member_id != updated.member_id), updated]
        self._follow_subscriptions(members, is_due=is_new or has_new_subscription)
        epoch, target = self._follow_target(members)
        self._reconcile(epoch, target, has_new_subscription=has_new_subscription)
        self._initialize(members)

    def _follow_subscriptions(self, members: list[ShareMember], *, is_due: bool) -> None:
        """A new epoch of the group if its members, its topics or the share-partitions with state have changed."""
        group = self.group
        names = {name for member in members for name in member.subscribed_topic_names}
        if group.assignment_epoch >= group.epoch and not is_due:
            is_due = self._is_assignment_pending(names)
        if not is_due and group.topics_version == self._topics.version:
            return
        new_hash = metadata_hash(names, self._topics.image)
        self.topics_version = self._topics.version
        if is_due or new_hash != group.metadata_hash:
            self.epoch += 1
            value = ShareGroupMetadataValue(epoch=self.epoch, metadata_hash=new_hash)
            self.effects.records.append(of_group(GROUP, group.group_id, value))

    def _is_assignment_pending(self, names: set[str]) -> bool:
        """Whether a subscribed topic has share-partitions with state that no member was assigned."""
        assigned: dict[Uuid, set[int]] = {}
        for target in self.group.targets.values():
            for topic, partitions in target.items():
                assigned.setdefault(topic, set()).update(partitions)
        return any(
            state.name in names and assigned.get(topic, set()) != state.partitions
            for topic, state in self._assignable().items()
        )

    def _assignable(self) -> TopicStates:
        """The share-partitions with state, of topics that exist."""
        image = self._topics.image
        return {topic: state for topic, state in self.group.states.initialized.items() if topic in image.by_id}

    def _follow_target(self, members: list[ShareMember]) -> tuple[int, Partitions]:
        group, member_id = self.group, self.updated.member_id
        last_ms, interval_ms = group.assignment_timestamp_ms, self._settings.assignment_interval_ms
        is_early = last_ms != 0 and last_ms <= self._now_ms < last_ms + interval_ms
        if self.epoch <= group.assignment_epoch or is_early:
            return group.assignment_epoch, group.targets.get(member_id, {})
        by_name = self._topics.image.by_name
        assignable = {topic: state.partitions for topic, state in self._assignable().items()}
        wanted = [
            MemberSpec(
                member.member_id,
                None,
                frozenset(by_name[name].id for name in member.subscribed_topic_names if name in by_name),
                group.targets.get(member.member_id, {}),
            )
            for member in members
        ]
        targets = simple(wanted, assignable)
        for each in sorted(targets):
            if group.targets.get(each) != targets[each]:
                self.effects.records.append(of_member(TARGET_MEMBER, group.group_id, each, target_value(targets[each])))
        # Without partitions to assign there was no assignment that the next one would have to keep a distance from.
        has_partitions = any(assignable.get(topic) for member in wanted for topic in member.topics)
        value = ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=self.epoch, assignment_timestamp=self._now_ms if has_partitions else 0
        )
        self.effects.records.append(of_group(TARGET, group.group_id, value))
        return self.epoch, targets[member_id]

    def _reconcile(self, epoch: int, target: Partitions, *, has_new_subscription: bool) -> None:
        before = self.updated
        if before.member_epoch == epoch and not has_new_subscription:
            return
        by_id = self._topics.image.by_id
        assigned = {
            topic: partitions
            for topic, partitions in target.items()
            if partitions and topic in by_id and by_id[topic].name in before.subscribed_topic_names
        }
        self.updated = replace(
            before,
            assigned=assigned,
            member_epoch=epoch,
            previous_member_epoch=before.previous_member_epoch if before.member_epoch == epoch else before.member_epoch,
        )
        if self.updated != before:
            self.effects.records.append(
                of_member(CURRENT_MEMBER, self.group.group_id, before.member_id, self.updated.current_value())
            )

    def _initialize(self, members: list[ShareMember]) -> None:
        """Find subscribed partitions without state. An attempt to create it that takes too long is repeated."""
        group, by_name = self.group, self._topics.image.by_name
        retry_ms = self._now_ms - self._settings.initialize_retry_interval_ms
        found: dict[Uuid, TopicState] = {}
        for name in sorted({name for member in members for name in member.subscribed_topic_names}):
            topic = by_name.get(name)
            if topic is None:
                continue
            known: set[int] = set()
            if topic.id in group.states.initialized:
                known |= group.states.initialized[topic.id].partitions
            if topic.id in group.states.initializing and group.initializing_since_ms.get(topic.id, 0) > retry_ms:
                known |= group.states.initializing[topic.id].partitions
            missing = frozenset(range(len(topic.partitions))) - known
            if missing:
                found[topic.id] = TopicState(name, missing)
        if found:
            self.to_initialize = found
            states = group.states.begun(found)
            self.effects.records.append(of_group(STATE_PARTITIONS, group.group_id, states.value()))

    def commit(self) -> None:
        """Remember what is not in the log. Until here a step may be refused without a trace."""
        self.group.topics_version = self.topics_version
        for topic in self.to_initialize:
            self.group.initializing_since_ms[topic] = self._now_ms
