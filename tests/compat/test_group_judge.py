"""The judge of groups sees what was lost and what was read again, and lets pass what may be."""

from __future__ import annotations

from group_judge import missing, read_again
from group_members import COMMITTED, GIVEN, LEFT, READ, Event, Member

TOPIC = ("nowhere", "group", "topic")


class Played(Member):
    name = "played"


def member(*events: tuple[float, str, list]) -> Member:
    played = Played(*TOPIC)
    for at, kind, rows in events:
        played.take(Event(at, kind, rows))
    return played


def record(partition: int, offset: int) -> tuple[int, int, bytes]:
    return partition, offset, b"%d" % (10 * partition + offset)


def test_what_nobody_read_is_missing():
    assert missing([member((1, READ, [record(0, 0), record(0, 2)]))], 3) == {1}


def test_what_was_committed_is_not_to_be_read_again():
    first = member((0, GIVEN, [0]), (1, READ, [record(0, 0)]), (2, COMMITTED, [(0, 1)]), (3, LEFT, []))
    second = member((4, GIVEN, [0]), (5, READ, [record(0, 0)]))
    assert read_again([first, second]) == ["0 was read and committed by played 0, and read again by played 1"]
    assert read_again([second, first]) == ["0 was read and committed by played 1, and read again by played 0"]


def test_two_that_have_a_partition_at_once_are_found():
    one = member((0, GIVEN, [0]), (1, READ, [record(0, 0)]), (4, COMMITTED, [(0, 1)]))
    two = member((0, GIVEN, [0]), (2, READ, [record(0, 0)]), (3, COMMITTED, [(0, 1)]))
    assert read_again([one, two]) == ["0 was read and committed by played 0, and read again by played 1"]


def test_who_died_before_it_committed_may_be_followed():
    dead = member(
        (0, GIVEN, [0]), (1, READ, [record(0, 0)]), (2, COMMITTED, [(0, 1)]), (3, READ, [record(0, 1), record(0, 2)])
    )
    heir = member((8, GIVEN, [0]), (9, READ, [record(0, 1), record(0, 2)]), (10, COMMITTED, [(0, 3)]))
    assert read_again([dead, heir]) == []
    assert missing([dead, heir], 3) == set()


def test_what_is_committed_after_the_partition_was_lost_and_came_back_counts_for_the_second_time_only():
    one = member(
        (0, GIVEN, [0, 1]),
        (1, READ, [record(0, 0)]),  # its commit was refused
        (2, LEFT, [1]),
        (6, GIVEN, [0, 1]),
        (7, READ, [record(0, 1)]),
        (8, COMMITTED, [(0, 2)]),
    )
    two = member((3, GIVEN, [0]), (4, READ, [record(0, 0)]), (5, COMMITTED, [(0, 1)]))
    assert read_again([one, two]) == []


def test_a_member_that_reads_again_what_it_committed_itself_is_found():
    one = member(
        (0, GIVEN, [0]), (1, READ, [record(0, 0)]), (2, COMMITTED, [(0, 1)]), (3, LEFT, []), (4, GIVEN, [0]),
        (5, READ, [record(0, 0)]),
    )  # fmt: skip
    assert read_again([one]) == ["0 was read and committed by played 0, and read again by played 0"]
