"""The assignors: everything is assigned once, to somebody who wants it, evenly, and stays where it can."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coordinator.consumer.assignors import ASSIGNORS, MemberSpec, Partitions, range_, uniform
from barnabas.model.ids import Uuid


def topic(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def member(name: str, topics: set[int], assigned: Mapping[int, set[int]] | None = None, instance: str | None = None):
    held = {topic(number): frozenset(partitions) for number, partitions in (assigned or {}).items()}
    return MemberSpec(name, instance, frozenset(topic(number) for number in topics), held)


def plain(result: Mapping[str, Partitions]) -> dict[str, dict[int, set[int]]]:
    return {
        name: {int.from_bytes(t, "big"): set(partitions) for t, partitions in assigned.items()}
        for name, assigned in result.items()
    }


def load(assigned: Partitions) -> int:
    return sum(map(len, assigned.values()))


COUNTS = st.dictionaries(st.integers(1, 6), st.integers(1, 12), min_size=1, max_size=6)


@st.composite
def groups(draw, *, same_topics: bool = False):
    counts = draw(COUNTS)
    names = draw(st.lists(st.text("abcdef", min_size=1, max_size=4), min_size=1, max_size=9, unique=True))
    some = st.sets(st.sampled_from(sorted(counts)))
    shared = draw(some)
    members = []
    for name in names:
        topics = shared if same_topics else draw(some)
        # What a member was to have may be of topics it no longer wants, and of partitions that others have too.
        had = draw(
            st.dictionaries(st.sampled_from(sorted(counts)), st.sets(st.integers(0, 14), max_size=5), max_size=3)
        )
        members.append(member(name, topics, had))
    return members, {topic(number): count for number, count in counts.items()}


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@settings(max_examples=40, deadline=None)
@given(group=groups())
def test_every_partition_that_somebody_wants_goes_to_one_who_wants_it(name, group):
    members, counts = group
    result = ASSIGNORS[name](members, counts)
    assert set(result) == {m.member_id for m in members}
    handed_out = [(t, p) for assigned in result.values() for t, partitions in assigned.items() for p in partitions]
    wanted = {t for m in members for t in m.topics}
    assert sorted(handed_out) == sorted((t, p) for t in wanted for p in range(counts[t]))
    for m in members:
        assert set(result[m.member_id]) <= m.topics


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@settings(max_examples=40, deadline=None)
@given(group=groups())
def test_the_order_of_the_members_does_not_matter(name, group):
    members, counts = group
    assert ASSIGNORS[name](members, counts) == ASSIGNORS[name](members[::-1], counts)


@settings(max_examples=40, deadline=None)
@given(group=groups(same_topics=True))
def test_members_who_want_the_same_get_the_same_number_give_or_take_one(group):
    members, counts = group
    loads = [load(assigned) for assigned in uniform(members, counts).values()]
    assert max(loads) - min(loads) <= 1


@settings(max_examples=40, deadline=None)
@given(group=groups())
def test_no_single_move_would_make_a_mixed_group_more_even(group):
    members, counts = group
    result = uniform(members, counts)
    for giver in members:
        for taker in members:
            if set(result[giver.member_id]) & taker.topics:
                assert load(result[giver.member_id]) - load(result[taker.member_id]) < 2


@settings(max_examples=40, deadline=None)
@given(group=groups())
def test_an_assignment_that_is_even_stays_as_it_is(group):
    members, counts = group
    first = uniform(members, counts)
    again = uniform([m._replace(assigned=first[m.member_id]) for m in members], counts)
    assert again == first


@settings(max_examples=40, deadline=None)
@given(group=groups(same_topics=True), leaver=st.integers(0, 8))
def test_when_a_member_leaves_the_others_keep_what_they_had(group, leaver):
    members, counts = group
    first = uniform(members, counts)
    rest = [m._replace(assigned=first[m.member_id]) for i, m in enumerate(members) if i != leaver % len(members)]
    if rest:
        after = uniform(rest, counts)
        for m in rest:
            for t, partitions in m.assigned.items():
                assert partitions <= after[m.member_id][t]


@settings(max_examples=40, deadline=None)
@given(group=groups(same_topics=True))
def test_when_a_member_joins_only_its_share_moves(group):
    members, counts = group
    first = uniform(members, counts)
    settled = [m._replace(assigned=first[m.member_id]) for m in members]
    after = uniform([*settled, member("zz", set())._replace(topics=members[0].topics)], counts)
    moved = sum(
        len(partitions - after[m.member_id].get(t, frozenset()))
        for m in settled
        for t, partitions in m.assigned.items()
    )
    assert moved == load(after["zz"])


def test_the_partitions_of_one_topic_are_spread():
    result = uniform([member("a", {1, 2}), member("b", {1, 2})], {topic(1): 2, topic(2): 2})
    assert plain(result) == {"a": {1: {0}, 2: {0}}, "b": {1: {1}, 2: {1}}}


def test_range_gives_neighbours_and_the_same_ones_of_every_topic():
    members = [member("c", {1, 2}), member("a", {1, 2}), member("b", {1, 2})]
    assert plain(range_(members, {topic(1): 7, topic(2): 7})) == {
        "a": {1: {0, 1, 2}, 2: {0, 1, 2}},
        "b": {1: {3, 4}, 2: {3, 4}},
        "c": {1: {5, 6}, 2: {5, 6}},
    }


def test_range_puts_static_members_first_by_their_instance():
    members = [member("a", {1}), member("z", {1}, instance="i1"), member("y", {1}, instance="i2")]
    assert plain(range_(members, {topic(1): 3})) == {"z": {1: {0}}, "y": {1: {1}}, "a": {1: {2}}}


def test_a_group_without_members_gets_nothing():
    assert uniform([], {}) == range_([], {}) == {}
