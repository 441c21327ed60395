"""Leader epochs of what was read, and what a cursor makes of a leader's answer."""

from __future__ import annotations

from barnabas.client.fetch.cursor import UNVALIDATED, Chunk, Cursor
from barnabas.client.fetch.epochs import STARTS_MAX, EpochStart, EpochTrail
from barnabas.client.fetch.isolation import Visibility
from barnabas.client.fetch.request import request_of
from barnabas.client.fetch.truncation import EpochEnd
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.ids import NO_LEADER_EPOCH, TopicPartition, Uuid
from barnabas.wire.fetch_session import Wanted, sessionless
from barnabas.wire.records import encode_batch

PLACE = TopicPartition("t", 0)
ID, OTHER = Uuid(b"1" * 16), Uuid(b"2" * 16)


def read_to(*batches: tuple[int, int, int], start: int = 0, epoch: int = NO_LEADER_EPOCH) -> Cursor:
    """A cursor that fetched batches of (base offset, count, epoch) and has handed out nothing yet."""
    cursor = Cursor(PLACE, ConsumerSettings())
    cursor.seek(start, epoch)
    for base_offset, count, batch_epoch in batches:
        content = bytes(encode_batch([(0, None, b"v", ())] * count, base_offset=base_offset))
        cursor.add(
            Chunk(content, Visibility()),
            next_offset=base_offset + count,
            epochs=[EpochStart(base_offset, batch_epoch)],
        )
    return cursor


def test_the_epoch_before_an_offset_is_that_of_the_record_there() -> None:
    cursor = read_to((10, 5, 3), (15, 5, 3), (20, 1, 7), start=10, epoch=2)
    assert [cursor.epoch_before(offset) for offset in (9, 10, 11, 15, 20, 21, 22)] == [-1, 2, 3, 3, 3, 7, -1]


def test_a_start_without_an_epoch_has_none_until_something_is_read() -> None:
    cursor = read_to((10, 5, 3), start=10)
    assert [cursor.epoch_before(offset) for offset in (10, 11)] == [-1, 3]


def test_a_trail_does_not_grow_without_end() -> None:
    trail = EpochTrail()
    trail.begin(0, 0)
    for number in range(1, 10_000):
        trail.extend([EpochStart(number, number)])
    assert trail.before(10_000) == 9_999
    assert len(trail._starts) == STARTS_MAX
    assert trail.before(5) == NO_LEADER_EPOCH


def test_a_position_is_in_doubt_when_another_leader_leads_and_its_epoch_is_known() -> None:
    cursor = read_to(start=10, epoch=4)
    assert not cursor.is_valid_in(4)
    cursor.confirm(4, EpochEnd(4, 12))
    assert cursor.is_valid_in(4)
    assert not cursor.is_valid_in(5)
    cursor.seek(20)
    assert cursor.valid_epoch == UNVALIDATED
    assert cursor.is_valid_in(5)  # nothing to compare
    assert cursor.is_valid_in(-1)  # a broker that has no epochs


def test_what_was_only_fetched_ahead_is_fetched_again_if_the_leader_lacks_it() -> None:
    cursor = read_to((0, 5, 3), (5, 5, 4))
    assert len(cursor.take(3)) == 3
    seeks = cursor.seeks
    cursor.confirm(6, EpochEnd(3, 5))
    assert (cursor.position, cursor.fetch_offset, cursor.buffered_bytes) == (3, 3, 0)
    assert cursor.seeks > seeks  # answers that are under way are for another position
    assert cursor.epoch_before(3) == 3
    assert cursor.is_valid_in(6)


def test_a_leader_that_skipped_an_epoch_is_not_asked_for_it_again() -> None:
    cursor = read_to((0, 5, 3), (5, 5, 4))
    cursor.confirm(6, EpochEnd(3, 20))
    assert cursor.epoch_before(cursor.fetch_offset) == 3
    assert cursor.fetch_offset == 10


def test_epochs_of_a_topic_that_was_made_anew_are_not_compared() -> None:
    cursor = read_to((0, 5, 3))
    cursor.is_of(ID)
    assert cursor.epoch_before(5) == 3
    cursor.is_of(ID)
    assert cursor.epoch_before(5) == 3
    cursor.is_of(OTHER)
    assert cursor.epoch_before(5) == NO_LEADER_EPOCH


def test_a_rewind_keeps_what_is_known() -> None:
    cursor = read_to((0, 5, 3), (5, 5, 4))
    cursor.valid_epoch = 4
    cursor.rewind(5)
    assert (cursor.position, cursor.epoch_before(5), cursor.valid_epoch) == (5, 3, 4)


def test_a_fetch_tells_both_epochs_where_the_broker_compares_them() -> None:
    plan = sessionless({(PLACE.topic, ID, PLACE.partition): Wanted(10, 7, 1000, 4)})
    new, old = (
        request_of(plan, ConsumerSettings(), version, wait_ms=0).topics[0].partitions[0] for version in (12, 11)
    )
    assert (new.fetch_offset, new.current_leader_epoch, new.last_fetched_epoch) == (10, 7, 4)
    assert (old.fetch_offset, old.current_leader_epoch, old.last_fetched_epoch) == (10, 7, -1)
