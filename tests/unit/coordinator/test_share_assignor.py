"""The assignor of share groups: every partition has a member, and members share partitions evenly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordinator.consumer.assignors import MemberSpec, Partitions
from barnabas.coordinator.share.assignor import simple
from barnabas.model.ids import Uuid

TOPICS = [Uuid(bytes([number]) * 16) for number in range(3)]


def members(count: int, targets: dict[str, Partitions] | None = None, topics: int = 1) -> list[MemberSpec]:
    names = [f"m{number:02}" for number in range(count)]
    return [MemberSpec(name, None, frozenset(TOPICS[:topics]), (targets or {}).get(name, {})) for name in names]


def sizes(targets: dict[str, Partitions]) -> list[int]:
    return [sum(len(indexes) for indexes in target.values()) for target in targets.values()]


@given(count=st.integers(1, 12), partitions=st.integers(1, 12), topics=st.integers(1, 3), before=st.integers(0, 12))
def test_everything_is_assigned_and_balanced_whatever_was_before(
    count: int, partitions: int, topics: int, before: int
) -> None:
    assignable = {topic: frozenset(range(partitions)) for topic in TOPICS[:topics]}
    targets = simple(members(before, topics=topics), assignable)
    targets = simple(members(count, targets, topics), assignable)
    held = {(topic, index) for target in targets.values() for topic, indexes in target.items() for index in indexes}
    assert len(held) == partitions * topics
    assert min(sizes(targets)) >= 1
    assert max(sizes(targets)) - min(sizes(targets)) <= 2


def test_members_keep_their_partitions() -> None:
    assignable = {TOPICS[0]: frozenset(range(6))}
    first = simple(members(2), assignable)
    second = simple(members(3, first), assignable)
    for name in first:
        assert second[name][TOPICS[0]] <= first[name][TOPICS[0]]


def test_more_members_than_partitions_share_them() -> None:
    targets = simple(members(5), {TOPICS[0]: frozenset((0, 1))})
    assert sizes(targets) == [2, 1, 1, 1, 1]


def test_with_different_subscriptions_each_topic_is_balanced() -> None:
    both = MemberSpec("both", None, frozenset(TOPICS[:2]), {})
    one, other = (MemberSpec(name, None, frozenset((topic,)), {}) for name, topic in zip("ab", TOPICS, strict=False))
    targets = simple([both, one, other], {topic: frozenset(range(4)) for topic in TOPICS[:2]})
    assert {name: {t: len(p) for t, p in target.items()} for name, target in targets.items()} == {
        "both": {TOPICS[0]: 2, TOPICS[1]: 2},
        "a": {TOPICS[0]: 2},
        "b": {TOPICS[1]: 2},
    }


def test_without_partitions_members_have_nothing() -> None:
    assert simple(members(2), {}) == {"m00": {}, "m01": {}}
    assert simple([], {TOPICS[0]: frozenset((0,))}) == {}
