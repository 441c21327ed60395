"""How a member moves towards what its group has in mind for it: it gives up first, and only then gets more.

A pure step from what a member has to what it may have next, taken at each of its heartbeats::

    STABLE                 → (nothing new)                   → STABLE
    STABLE                 → (has to give up partitions)     → UNREVOKED_PARTITIONS, in its old epoch
    UNREVOKED_PARTITIONS   → (still reports one of them)     → UNREVOKED_PARTITIONS
    any                    → (nothing to give up)            → STABLE, in the target's epoch, with what is free
    any                    → (others still have partitions)  → UNRELEASED_PARTITIONS, in the target's epoch

A partition passes to a member only when no other has it: the member that gives it up has said so. The group's own
state is in :mod:`barnabas.coordinator.consumer.group`; nobody but the steps of a group calls this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from barnabas.coordinator.consumer.assignors import Partitions
from barnabas.coordinator.consumer.member import NOTHING_OWNED, Member, MemberState, Owned
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid

Reported = Mapping[Uuid, AbstractSet[int]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    epoch: int
    partitions: Partitions


def reconcile(
    member: Member,
    target: Target,
    *,
    subscribed: AbstractSet[Uuid],
    reported: Reported,
    is_taken: Callable[[Uuid, int], bool],
    has_new_subscription: bool,
) -> Member:
    """The member after its next step, or the same one if it cannot move.

    ``reported`` is what the member says it has, None if it says nothing; ``subscribed`` the topics it wants now;
    ``is_taken`` tells whether anybody, itself included, has a partition.
    """
    match member.state:
        case MemberState.STABLE if member.member_epoch == target.epoch:
            return _without_unsubscribed(member, subscribed, reported) if has_new_subscription else member
        case MemberState.UNREVOKED_PARTITIONS if _has_any(reported, member.pending_revocation):
            return _without_unsubscribed(member, subscribed, reported) if has_new_subscription else member
        case MemberState.UNKNOWN if reported is None or any(reported.values()):
            # Written by a newer version: the member starts again with nothing.
            raise ApiError(
                errors.FENCED_MEMBER_EPOCH,
                "the state of the member means nothing here: it gives up its partitions and joins again",
            )
    return _next(member, target, subscribed, reported, is_taken)


def _next(
    member: Member,
    target: Target,
    subscribed: AbstractSet[Uuid],
    reported: Reported,
    is_taken: Callable[[Uuid, int], bool],
) -> Member:
    kept: dict[Uuid, dict[int, int]] = {}
    revoked: dict[Uuid, dict[int, int]] = {}
    added: dict[Uuid, list[int]] = {}
    is_waiting = False
    for topic in sorted({*target.partitions, *member.assigned}):
        # A member that has just unsubscribed from a topic gives it up without waiting for the next target.
        wanted: AbstractSet[int] = target.partitions.get(topic, frozenset()) if topic in subscribed else frozenset()
        has = member.assigned.get(topic, {})
        leaving = member.pending_revocation.get(topic, {})
        if mine := {partition: epoch for partition, epoch in has.items() if partition in wanted}:
            kept[topic] = mine
        if gone := {partition: epoch for partition, epoch in has.items() if partition not in wanted}:
            revoked[topic] = gone
        for partition in sorted(wanted - has.keys()):
            # What the member itself was to give up and now gets back is not in anybody else's hands.
            if is_taken(topic, partition) and partition not in leaving:
                is_waiting = True
            else:
                added.setdefault(topic, []).append(partition)
    if revoked and _has_any(reported, revoked):
        return member.in_epoch(
            member.member_epoch,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=kept,
            pending_revocation=revoked,
        )
    for topic, partitions in added.items():
        kept.setdefault(topic, {}).update(dict.fromkeys(partitions, target.epoch))
    return member.in_epoch(
        target.epoch,
        state=MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE,
        assigned=kept,
        pending_revocation=NOTHING_OWNED,
    )


def _without_unsubscribed(member: Member, subscribed: AbstractSet[Uuid], reported: Reported) -> Member:
    """Take away what the member no longer wants, within its epoch."""
    kept = {topic: partitions for topic, partitions in member.assigned.items() if topic in subscribed}
    if len(kept) == len(member.assigned):
        return member
    revoked = {topic: dict(partitions) for topic, partitions in member.pending_revocation.items()}
    for topic, partitions in member.assigned.items():
        if topic not in subscribed:
            revoked.setdefault(topic, {}).update(partitions)
    if _has_any(reported, revoked):
        return member.in_epoch(
            member.member_epoch,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=kept,
            pending_revocation=revoked,
        )
    return replace(member, assigned=kept, previous_member_epoch=member.member_epoch)


def _has_any(reported: Reported, revoked: Owned) -> bool:
    """Whether the member still has a partition that it is to give up; one that does not say so has all of them."""
    if reported is None:
        return True
    return any(not reported.get(topic, frozenset()).isdisjoint(partitions) for topic, partitions in revoked.items())
