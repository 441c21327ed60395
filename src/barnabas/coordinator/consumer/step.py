"""One step of a consumer group on behalf of one member: what it wants, what the group makes of it, what it gets.

Three things happen in this order, each only as far as it is needed: the member is written down, with a new epoch of the
group if what the members want has changed; a new target is computed if the epoch is ahead of the last one; the member
moves towards it. A step reads the group as it was and only writes lines: the group changes when they are replayed.
Heartbeats of both protocols are such steps; :mod:`barnabas.coordinator.consumer.groups` begins and ends them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from barnabas.coordinator.consumer.group import ConsumerGroup
from barnabas.coordinator.consumer.lines import (
    current_line,
    group_line,
    member_line,
    pattern_line,
    target_member_line,
    without_member,
)
from barnabas.coordinator.consumer.member import Member, MemberState
from barnabas.coordinator.consumer.reconciliation import Reported, Target, reconcile
from barnabas.coordinator.consumer.settings import ConsumerGroupSettings
from barnabas.coordinator.consumer.subscriptions import (
    UNRESOLVED,
    Resolution,
    ResolvedPattern,
    compiled,
    metadata_hash,
    subscribed_names,
)
from barnabas.coordinator.consumer.target_assignment import assign, is_due
from barnabas.coordinator.runtime.effects import Effects
from barnabas.metadata.topics_image import TopicsImage

# Kafka waits 10 s between two looks at all topics; in slices it disturbs nobody, so new topics are found sooner.
PATTERN_REFRESH_INTERVAL_MIN_MS: Final = 1000


class KnownTopics:
    """The topics of the cluster as its coordinators know them; one for all of them, kept up to date by the broker."""

    def __init__(self) -> None:
        self.image = TopicsImage()
        self.version = 0
        self.newest_version = 0  # in which a topic was made that patterns may stand for

    def update(self, image: TopicsImage, *, version: int, has_new: bool) -> None:
        """Topics came, went or grew: each group looks at its own at its next heartbeat."""
        self.image = image
        self.version = version
        if has_new:
            self.newest_version = version


class MemberTimer(NamedTuple):
    """When a member is removed: no heartbeat, partitions not given up, or not joined or synced in the classic way."""

    kind: str
    group_id: str
    member_id: str


SESSION: Final = "consumer-session"
REBALANCE: Final = "consumer-rebalance"
JOIN: Final = "consumer-join"
SYNC: Final = "consumer-sync"
MEMBER_TIMERS: Final = (SESSION, REBALANCE, JOIN, SYNC)


class GroupTimer(NamedTuple):
    """The next step of something that a group does by itself."""

    kind: str
    group_id: str


RESOLVE: Final = "consumer-resolve"  # a slice of finding out what patterns stand for
DOWNGRADE: Final = "consumer-downgrade"  # all members speak the classic protocol: so does the group


class ConsumerStep:
    def __init__(
        self,
        group: ConsumerGroup,
        *,
        topics: KnownTopics,
        settings: ConsumerGroupSettings,
        now_ms: int,
        is_new: bool,
        is_resolving: bool,
        may_describe: Callable[[str], bool] | None = None,
    ) -> None:
        self.group = group
        self.effects = Effects()
        self._topics = topics
        self._settings = settings
        self._now_ms = now_ms
        self.member = Member(member_id="")  # as it was
        self.updated = self.member  # as it is to be
        self.patterns: dict[str, ResolvedPattern] = dict(group.patterns)
        self.resolution: Resolution | None = None  # left to be done in slices
        self.epoch = group.epoch
        self._topics_version = group.topics_version
        self._is_new_group = is_new
        self._is_resolving = is_resolving
        self._may_describe = may_describe

    # --- who it is about ------------------------------------------------------------------------------------------

    def replace_static(self, predecessor: Member, member_id: str) -> Member:
        """A static member is back under a new id: it gets what its predecessor had and was to have."""
        successor = replace(predecessor, member_id=member_id, member_epoch=0, previous_member_epoch=0)
        group_id = self.group.group_id
        self.effects.records.extend(without_member(group_id, predecessor.member_id))
        self.effects.records.append(member_line(group_id, successor))
        target = self.group.targets.get(predecessor.member_id, {})
        self.effects.records.append(target_member_line(group_id, member_id, target))
        self.effects.records.append(current_line(group_id, successor))
        for kind in MEMBER_TIMERS:
            self.effects.timer(MemberTimer(kind, group_id, predecessor.member_id), None)
        return successor

    def begin(self, member: Member, **changes: Any) -> None:
        self.member = member
        self.updated = replace(member, **changes)
        if self.updated.subscribed_topic_regex and self.updated.subscribed_topic_regex not in self.patterns:
            compiled(self.updated.subscribed_topic_regex)

    # --- the three parts ------------------------------------------------------------------------------------------

    def advance(self, reported: Reported) -> Member:
        if self._is_quiet():
            target = Target(epoch=self.group.assignment_epoch, partitions=self.group.target_of(self.updated))
            return self._reconcile(target, reported)
        if self.updated != self.member or self.updated.member_id not in self.group.members:
            self.effects.records.append(member_line(self.group.group_id, self.updated))
        members = [*self.group.others(self.updated), self.updated]
        has_new_topics = self._follow_patterns(members)
        self._follow_subscriptions(members, has_new_topics)
        target = self._follow_target(members)
        return self._reconcile(target, reported)

    def _is_quiet(self) -> bool:
        """Whether nothing is new but, perhaps, what the member has: most heartbeats, so nothing else is looked at."""
        group, pattern = self.group, self.updated.subscribed_topic_regex
        return (
            self.epoch == group.assignment_epoch
            and group.topics_version == self._topics.version
            and group.members.get(self.updated.member_id) == self.updated
            and (not pattern or pattern in self.patterns)
            and (not self.patterns or not self._are_patterns_stale())
        )

    def _follow_patterns(self, members: list[Member]) -> bool:
        """Look up what patterns stand for, if that is not known or may have changed; whether it has."""
        wanted = {member.subscribed_topic_regex for member in members if member.subscribed_topic_regex}
        for pattern in sorted(self.patterns.keys() - wanted):
            self.effects.records.append(pattern_line(self.group.group_id, pattern, None))
            del self.patterns[pattern]
        if not wanted or self._is_resolving:
            return False
        wanted = wanted if self._are_patterns_stale() else wanted - self.patterns.keys()
        if not wanted:
            return False
        resolution = Resolution(
            wanted, self._topics.image, version=self._topics.version, may_describe=self._may_describe
        )
        if not resolution.proceed():
            self.resolution = resolution
            self.effects.timer(GroupTimer(RESOLVE, self.group.group_id), self._now_ms)
            return False
        has_changed = False
        for pattern, resolved in resolution.result(self._now_ms).items():
            has_changed |= self.patterns.get(pattern, UNRESOLVED).topics != resolved.topics
            self.patterns[pattern] = resolved
            self.effects.records.append(pattern_line(self.group.group_id, pattern, resolved))
        return has_changed

    def _are_patterns_stale(self) -> bool:
        if not self.patterns:
            return True
        age_ms = self._now_ms - max(resolved.timestamp_ms for resolved in self.patterns.values())
        is_behind = min(resolved.version for resolved in self.patterns.values()) < self._topics.newest_version
        return (is_behind and age_ms >= PATTERN_REFRESH_INTERVAL_MIN_MS) or (
            age_ms >= self._settings.regex_refresh_interval_ms
        )

    def _follow_subscriptions(self, members: list[Member], has_new_topics: bool) -> None:
        """A new epoch of the group, if what the members want is not what it was, or the topics are not."""
        new, old = self.updated, self.member
        pattern = new.subscribed_topic_regex
        # For a pattern that is yet to be resolved the epoch moves when it is.
        has_new_pattern = pattern != old.subscribed_topic_regex and (not pattern or pattern in self.patterns)
        is_due = (
            self._is_new_group
            or self.epoch == 0
            or has_new_topics
            or has_new_pattern
            or new.subscribed_topic_names != old.subscribed_topic_names
        )
        if not is_due and self.group.topics_version == self._topics.version:
            return
        names = subscribed_names({member.subscription for member in members}, self.patterns)
        new_hash = metadata_hash(names, self._topics.image)
        self._topics_version = self._topics.version
        if is_due or new_hash != self.group.metadata_hash:
            self.epoch += 1
            self.effects.records.append(group_line(self.group.group_id, self.epoch, new_hash))

    def _follow_target(self, members: list[Member]) -> Target:
        group, settings = self.group, self._settings
        if self.epoch <= group.assignment_epoch or not is_due(
            group, interval_ms=settings.assignment_interval_ms, now_ms=self._now_ms
        ):
            return Target(epoch=group.assignment_epoch, partitions=group.target_of(self.updated))
        wish = group.preferred_assignor(members)
        targets, lines = assign(
            group,
            members,
            self.patterns,
            self._topics.image,
            assignor=wish if wish in settings.assignors else settings.assignors[0],
            epoch=self.epoch,
            now_ms=self._now_ms,
        )
        self.effects.records.extend(lines)
        return Target(epoch=self.epoch, partitions=targets[self.updated.member_id])

    def _reconcile(self, target: Target, reported: Reported) -> Member:
        before = self.updated
        has_new_subscription = before.subscription != self.member.subscription
        if has_new_subscription or not before.is_reconciled_to(target.epoch):
            names = subscribed_names((before.subscription,), self.patterns)
            by_name = self._topics.image.by_name
            self.updated = reconcile(
                before,
                target,
                subscribed=frozenset(by_name[name].id for name in names if name in by_name),
                reported=reported,
                is_taken=self.group.is_taken,
                has_new_subscription=has_new_subscription,
            )
        if self.updated != before:
            self.effects.records.append(current_line(self.group.group_id, self.updated))
            if not self.updated.uses_classic_protocol:
                self._time_revocation()
        return self.updated

    def _time_revocation(self) -> None:
        """A member that is to give up partitions has as long for it as it said it needs."""
        member = self.updated
        timer = MemberTimer(REBALANCE, self.group.group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self.effects.timer(timer, self._now_ms + member.rebalance_timeout_ms)
        elif member.member_id in self.group.rebalance_epochs:
            self.effects.timer(timer, None)

    def commit(self) -> None:
        """What the group remembers without writing it down. Until here a step may be refused without a trace."""
        self.group.topics_version = self._topics_version
        if self.updated.state is MemberState.UNREVOKED_PARTITIONS:
            self.group.rebalance_epochs[self.updated.member_id] = self.updated.member_epoch
        else:
            self.group.rebalance_epochs.pop(self.updated.member_id, None)
