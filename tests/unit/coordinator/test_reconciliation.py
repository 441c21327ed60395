"""One member's way to what it is to have, as a table: where it is, what it says, where it goes."""

from __future__ import annotations

import pytest

from barnabas.coordinator.consumer.member import Member, MemberState
from barnabas.coordinator.consumer.reconciliation import Target, reconcile
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid

T = Uuid(b"t".ljust(16, b"\0"))
U = Uuid(b"u".ljust(16, b"\0"))
STABLE, UNREVOKED, UNRELEASED, UNKNOWN = MemberState

# (state, epoch, has, is to give up), (target epoch, target), reported, taken by others, (state, epoch, has, gives up)
WAYS = {
    "nothing is new": ((STABLE, 5, {1, 2}, {}), (5, {1, 2}), None, {}, (STABLE, 5, {1, 2}, {})),
    "a new epoch that changes nothing": ((STABLE, 5, {1, 2}, {}), (6, {1, 2}), None, {}, (STABLE, 6, {1, 2}, {})),
    "free partitions are taken at once": ((STABLE, 5, {1}, {}), (6, {1, 2}), None, {}, (STABLE, 6, {1, 2}, {})),
    "those of others are waited for": ((STABLE, 5, {1}, {}), (6, {1, 2, 3}), None, {2}, (UNRELEASED, 6, {1, 3}, {})),
    "and taken when they are free": ((UNRELEASED, 6, {1, 3}, {}), (6, {1, 2, 3}), None, {}, (STABLE, 6, {1, 2, 3}, {})),
    "and waited for still": ((UNRELEASED, 6, {1}, {}), (6, {1, 2}), None, {2}, (UNRELEASED, 6, {1}, {})),
    "what is to go is asked for first": ((STABLE, 5, {1, 2}, {}), (6, {1, 3}), {1, 2}, {}, (UNREVOKED, 5, {1}, {2})),
    "silence gives up nothing": ((STABLE, 5, {1, 2}, {}), (6, {1}), None, {}, (UNREVOKED, 5, {1}, {2})),
    "what is gone already need not be asked for": (
        (STABLE, 5, {1, 2}, {}),
        (6, {1, 3}),
        {1},
        {},
        (STABLE, 6, {1, 3}, {}),
    ),
    "it takes its time": ((UNREVOKED, 5, {1}, {2}), (6, {1, 3}), {1, 2}, {}, (UNREVOKED, 5, {1}, {2})),
    "and says nothing": ((UNREVOKED, 5, {1}, {2}), (6, {1, 3}), None, {}, (UNREVOKED, 5, {1}, {2})),
    "then it moves on": ((UNREVOKED, 5, {1}, {2}), (6, {1, 3}), {1}, {}, (STABLE, 6, {1, 3}, {})),
    "or has more to give up": ((UNREVOKED, 5, {1, 4}, {2}), (7, {1}), {1, 4}, {}, (UNREVOKED, 5, {1}, {4})),
    "or gets it back": ((UNREVOKED, 5, {1}, {2}), (7, {1, 2}), {1}, {2}, (STABLE, 7, {1, 2}, {})),
}


def owned(partitions, epoch: int = 1):
    return {T: dict.fromkeys(sorted(partitions), epoch)} if partitions else {}


@pytest.mark.parametrize("name", WAYS)
def test_a_member_moves_as_the_table_says(name):
    (state, epoch, has, gives_up), (target_epoch, target), reported, taken, expected = WAYS[name]
    member = Member(
        member_id="m", state=state, member_epoch=epoch, assigned=owned(has), pending_revocation=owned(gives_up)
    )
    after = reconcile(
        member,
        Target(epoch=target_epoch, partitions={T: frozenset(target)}),
        subscribed=frozenset({T}),
        reported=None if reported is None else {T: reported},
        is_taken=lambda _, partition: partition in taken or partition in gives_up,
        has_new_subscription=False,
    )
    assert (after.state, after.member_epoch) == expected[:2]
    assert set(after.assigned.get(T, {})) == expected[2]
    assert set(after.pending_revocation.get(T, {})) == set(expected[3])
    # What it had it has had since then; what is new is of the target's epoch.
    assert after.assigned.get(T, {}) == {p: 1 if p in has else target_epoch for p in expected[2]}


@pytest.mark.parametrize(
    ("reported", "state", "pending"),
    [(None, UNREVOKED, {U}), ({T: {1}, U: {1}}, UNREVOKED, {U}), ({T: {1}}, STABLE, set())],
)
def test_who_unsubscribes_gives_up_before_the_next_target(reported, state, pending):
    member = Member(member_id="m", member_epoch=5, assigned={T: {1: 1}, U: {1: 1}})
    after = reconcile(
        member,
        Target(epoch=5, partitions={T: frozenset({1}), U: frozenset({1})}),
        subscribed=frozenset({T}),
        reported=reported,
        is_taken=lambda *_: True,
        has_new_subscription=True,
    )
    assert (after.state, after.member_epoch, after.assigned) == (state, 5, {T: {1: 1}})
    assert set(after.pending_revocation) == pending


@pytest.mark.parametrize(("reported", "is_fenced"), [(None, True), ({T: {1}}, True), ({}, False)])
def test_a_member_in_a_state_from_the_future_starts_again(reported, is_fenced):
    member = Member(member_id="m", member_epoch=5, state=UNKNOWN, assigned=owned({1}))
    target = Target(epoch=6, partitions={T: frozenset({1})})

    def step() -> Member:
        return reconcile(
            member,
            target,
            subscribed=frozenset({T}),
            reported=reported,
            is_taken=lambda *_: False,
            has_new_subscription=False,
        )

    if is_fenced:
        with pytest.raises(ApiError, match="FENCED_MEMBER_EPOCH"):
            step()
    else:
        assert step().is_reconciled_to(6)
