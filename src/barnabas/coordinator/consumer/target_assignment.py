"""What every member of a group is to have: when it is computed anew, by which assignor, and the lines that say so.

How members get there is in :mod:`barnabas.coordinator.consumer.reconciliation`. A step of a consumer group calls this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.coordinator.consumer.assignors import ASSIGNORS, MemberSpec, Partitions
from barnabas.coordinator.consumer.group import ConsumerGroup
from barnabas.coordinator.consumer.lines import target_line, target_member_line
from barnabas.coordinator.consumer.member import Member
from barnabas.coordinator.consumer.subscriptions import ResolvedPattern, subscribed_names
from barnabas.coordinator.runtime.effects import Record
from barnabas.metadata.topics_image import TopicsImage
from barnabas.model.ids import Uuid


def is_due(group: ConsumerGroup, *, interval_ms: int, now_ms: int) -> bool:
    """Whether the group may be assigned again: joins that come in quick succession are answered by one assignment."""
    last_ms = group.assignment_timestamp_ms
    # A time that is yet to come was written by another broker, whose clock is ahead of ours.
    return last_ms == 0 or interval_ms == 0 or not last_ms <= now_ms < last_ms + interval_ms


def assign(
    group: ConsumerGroup,
    members: Sequence[Member],
    patterns: Mapping[str, ResolvedPattern],
    topics: TopicsImage,
    *,
    assignor: str,
    epoch: int,
    now_ms: int,
) -> tuple[dict[str, Partitions], list[Record]]:
    """What each of these members is to have from now on, and the lines for those for whom that is new."""
    wanted: dict[tuple[tuple[str, ...], str], frozenset[Uuid]] = {}
    for member in members:
        if member.subscription not in wanted:
            names = subscribed_names((member.subscription,), patterns)
            wanted[member.subscription] = frozenset(topics.by_name[name].id for name in names if name in topics)
    counts = {topic: len(topics.by_id[topic].partitions) for topic in frozenset().union(*wanted.values())}
    targets = ASSIGNORS[assignor](
        [
            MemberSpec(member.member_id, member.instance_id, wanted[member.subscription], group.target_of(member))
            for member in members
        ],
        counts,
    )
    lines = [
        target_member_line(group.group_id, member_id, targets[member_id])
        for member_id in sorted(targets)
        if group.targets.get(member_id) != targets[member_id]
    ]
    lines.append(target_line(group.group_id, epoch, now_ms))
    return targets, lines
