"""What every assignor promises, for any group, and the bytes that Java's members expect."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from barnabas.client.partitions.assignors import ASSIGNORS, Assignment, Candidate
from barnabas.client.partitions.protocol import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.model.ids import TopicPartition

TOPICS = ("a", "b", "c", "d")
counts = some.dictionaries(some.sampled_from(TOPICS), some.integers(1, 9))
subscriptions = some.lists(some.sets(some.sampled_from(TOPICS)), min_size=1, max_size=6)
names = some.sampled_from(sorted(ASSIGNORS))


def members_of(wanted: list[set[str]], *, instances: bool = False) -> list[Candidate]:
    return [
        Candidate(f"m{index}", Subscription(tuple(sorted(topics))), f"i{9 - index}" if instances else None)
        for index, topics in enumerate(wanted)
    ]


def after(name: str, assignment: Assignment, members: list[Candidate], generation: int) -> list[Candidate]:
    """The members as they join again, having had this."""
    assignor = ASSIGNORS[name]
    return [
        member._replace(
            subscription=member.subscription._replace(
                owned=tuple(assignment[member.member_id]) if assignor.is_cooperative else (),
                generation=generation,
                user_data=assignor.user_data(assignment[member.member_id], generation),
            )
        )
        for member in members
    ]


def settled(name: str, sizes: dict[str, int], members: list[Candidate], generation: int = 1) -> Assignment:
    """Rounds until nothing moves: a cooperative group needs two."""
    assignor = ASSIGNORS[name]
    assignment = assignor.assign(sizes, members)
    for turn in range(3):
        again = assignor.assign(sizes, after(name, assignment, members, generation + turn))
        if again == assignment:
            return assignment
        assignment = again
    raise AssertionError("the group does not come to rest")


@given(names, counts, subscriptions, some.booleans())
def test_every_partition_goes_to_one_member_who_wants_it(
    name: str, sizes: dict[str, int], wanted: list[set[str]], instances: bool
) -> None:
    members = members_of(wanted, instances=instances)
    assignment = ASSIGNORS[name].assign(sizes, members)
    assert set(assignment) == {member.member_id for member in members}
    given_away = [place for places in assignment.values() for place in places]
    expected = {
        TopicPartition(topic, number)
        for topic, size in sizes.items()
        if any(topic in topics for topics in wanted)
        for number in range(size)
    }
    assert len(given_away) == len(set(given_away))
    assert set(given_away) == expected
    for member in members:
        assert {place.topic for place in assignment[member.member_id]} <= set(member.subscription.topics)


@given(some.sampled_from(["roundrobin", "sticky", "cooperative-sticky"]), counts, some.integers(1, 6))
def test_equal_members_get_equal_shares(name: str, sizes: dict[str, int], count: int) -> None:
    assignment = ASSIGNORS[name].assign(sizes, members_of([set(TOPICS)] * count))
    loads = [len(places) for places in assignment.values()]
    assert max(loads) - min(loads) <= 1


@given(some.sampled_from(["sticky", "cooperative-sticky"]), counts, some.integers(1, 5))
def test_a_newcomer_takes_only_what_it_needs(name: str, sizes: dict[str, int], count: int) -> None:
    members = members_of([set(TOPICS)] * count)
    before = settled(name, sizes, members)
    grown = [*after(name, before, members, 5), members_of([set(TOPICS)] * (count + 1))[-1]]
    now = ASSIGNORS[name].assign(sizes, grown)
    total = sum(sizes.values())
    moved = sum(len(set(before[member_id]) - set(now[member_id])) for member_id in before)
    assert moved <= total // (count + 1) + 1
    for member_id, places in before.items():
        assert set(now[member_id]) <= set(places), "nothing moves between those who were there"


@given(counts, some.integers(2, 5))
def test_one_who_leaves_disturbs_nobody(sizes: dict[str, int], count: int) -> None:
    for name in ("sticky", "cooperative-sticky"):
        members = members_of([set(TOPICS)] * count)
        before = settled(name, sizes, members)
        now = ASSIGNORS[name].assign(sizes, after(name, before, members, 5)[:-1])
        for member_id, places in now.items():
            assert set(before[member_id]) <= set(places)


@given(counts, subscriptions, subscriptions)
def test_a_cooperative_round_gives_nothing_to_two(
    sizes: dict[str, int], wanted: list[set[str]], then: list[set[str]]
) -> None:
    assignor = ASSIGNORS["cooperative-sticky"]
    members = members_of(wanted)
    before = settled("cooperative-sticky", sizes, members)
    again = [
        member._replace(subscription=member.subscription._replace(topics=tuple(sorted(topics))))
        for member, topics in zip(after("cooperative-sticky", before, members, 3), then, strict=False)
    ]
    now = assignor.assign(sizes, again)
    for member in again:
        for other in again:
            if other is not member:
                assert not set(now[member.member_id]) & set(other.subscription.owned)


def test_two_who_claim_the_same_of_one_generation_are_both_wrong() -> None:
    both = Subscription(("a",), owned=(TopicPartition("a", 0),), generation=4)
    old = Subscription(("a",), owned=(TopicPartition("a", 1),), generation=3)
    new = Subscription(("a",), owned=(TopicPartition("a", 1),), generation=4)
    members = [Candidate("x", both), Candidate("y", both), Candidate("z", old), Candidate("w", new)]
    claims = ASSIGNORS["cooperative-sticky"].assign({"a": 2}, members)
    assert claims["z"] == []  # the one with the newer generation has it, and may keep it when the older lets go
    assert sum(map(len, claims.values())) == 0


def test_ranges_and_turns_are_those_of_java() -> None:
    members = members_of([{"a", "b"}, {"a", "b"}])
    assert ASSIGNORS["range"].assign({"a": 3, "b": 3}, members) == {
        "m0": [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0), TopicPartition("b", 1)],
        "m1": [TopicPartition("a", 2), TopicPartition("b", 2)],
    }
    assert ASSIGNORS["roundrobin"].assign({"a": 3, "b": 3}, members) == {
        "m0": [TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1)],
        "m1": [TopicPartition("a", 1), TopicPartition("b", 0), TopicPartition("b", 2)],
    }


def test_static_members_come_first_by_their_names() -> None:
    first, second = members_of([{"a"}, {"a"}])
    order = ASSIGNORS["range"].assign({"a": 3}, [first, second._replace(instance_id="z")])
    assert [len(order["m0"]), len(order["m1"])] == [1, 2]


def test_user_data_has_the_bytes_of_java() -> None:
    owned = [TopicPartition("t", 1), TopicPartition("t", 0)]
    assert ASSIGNORS["sticky"].user_data(owned, 7) == bytes.fromhex(
        "00000001 0001 74 00000002 00000000 00000001 00000007".replace(" ", "")
    )
    assert ASSIGNORS["cooperative-sticky"].user_data(owned, 7) == b"\0\0\0\7"
    assert ASSIGNORS["range"].user_data(owned, 7) is None


@given(some.binary(max_size=40))
def test_rubbish_from_one_member_does_not_stop_the_group(data: bytes) -> None:
    members = [Candidate("x", Subscription(("a",), user_data=data)), Candidate("y", Subscription(("a",)))]
    for name in ("sticky", "cooperative-sticky"):
        assert sum(map(len, ASSIGNORS[name].assign({"a": 5}, members).values())) == 5


@given(subscriptions, some.integers(-1, 9))
def test_subscriptions_and_assignments_round_trip(wanted: list[set[str]], generation: int) -> None:
    for topics in wanted:
        owned = tuple(TopicPartition(topic, 2) for topic in sorted(topics))
        subscription = Subscription(tuple(sorted(topics)), b"x", owned, generation, "rack")
        assert decode_subscription(encode_subscription(subscription)) == subscription
        assert decode_assignment(encode_assignment(owned)) == owned
    assert decode_assignment(b"") == ()
