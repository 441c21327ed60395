"""The machine of a share-partition, by example and against a model that keeps every record by itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.broker.share.records import Acknowledge, Acknowledgement, Limits, LogBatch, RecordState
from barnabas.broker.share.share_partition import Change, SharePartition
from barnabas.coordinator.share_state.batches import StateBatch
from barnabas.model import errors
from barnabas.model.errors import ApiError

LIMITS = Limits(lock_ms=1000, deliveries_max=5, locks_max=200)
ACCEPT, RELEASE, REJECT, RENEW, GAP = (
    Acknowledge.ACCEPT,
    Acknowledge.RELEASE,
    Acknowledge.REJECT,
    Acknowledge.RENEW,
    Acknowledge.GAP,
)


def acquire(
    machine: SharePartition, member: str, batches: list[LogBatch], *, records: int = 500, now: int = 0, **more: Any
) -> list[tuple[int, int, int]]:
    given: dict[str, Any] = {"batch_size": 1000, "is_record_limit": False, "limits": LIMITS, **more}
    offset = machine.next_offset(now)
    return [
        tuple(row) for row in machine.acquire(member, batches, offset=offset, records_max=records, now_ms=now, **given)
    ]


def acknowledge(machine: SharePartition, member: str, *rows: tuple[int, int, Any], now: int = 0) -> Change:
    found = [Acknowledgement(first, last, kinds if isinstance(kinds, list) else [kinds]) for first, last, kinds in rows]
    return machine.acknowledge(member, found, now_ms=now, limits=LIMITS)


def settle(machine: SharePartition, change: Change, *, is_written: bool = True, now: int = 0) -> None:
    machine.complete(change, is_written=is_written, now_ms=now, limits=LIMITS)


def refusal(machine: SharePartition, member: str, *rows: tuple[int, int, Any]) -> errors.WireError:
    before = repr(machine.ranges)
    with pytest.raises(ApiError) as refused:
        acknowledge(machine, member, *rows)
    assert repr(machine.ranges) == before, "a refused acknowledgement changes nothing"
    return refused.value.error


def test_whole_batches_are_acquired_until_there_is_enough() -> None:
    machine = SharePartition(0)
    log = [LogBatch(0, 9), LogBatch(10, 19), LogBatch(20, 29)]
    assert acquire(machine, "a", log, records=12) == [(0, 19, 1)]
    assert acquire(machine, "b", log[2:], records=500) == [(20, 29, 1)]
    assert acquire(machine, "b", [], records=500) == []


def test_a_record_limit_is_exact_and_the_rest_of_the_batch_stays_available() -> None:
    machine = SharePartition(0)
    log = [LogBatch(0, 9), LogBatch(10, 19)]
    assert acquire(machine, "a", log, records=3, is_record_limit=True) == [(0, 2, 1)]
    assert machine.next_offset(0) == 3
    assert acquire(machine, "b", log, records=9, is_record_limit=True) == [(3, 11, 1)]


def test_large_rows_are_cut_at_batches() -> None:
    machine = SharePartition(0)
    log = [LogBatch(first, first + 9) for first in range(0, 50, 10)]
    assert acquire(machine, "a", log, batch_size=15) == [(0, 19, 1), (20, 39, 1), (40, 49, 1)]


def test_the_window_is_bounded_by_the_locks() -> None:
    machine = SharePartition(0)
    log = [LogBatch(first, first + 9) for first in range(0, 400, 10)]
    assert acquire(machine, "a", log, records=1000) == [(0, 199, 1)]
    assert not machine.can_acquire(0, LIMITS, 400)
    assert acquire(machine, "b", log[20:], records=10) == []
    settle(machine, acknowledge(machine, "a", (0, 9, ACCEPT)))
    assert machine.can_acquire(0, LIMITS, 400)
    assert acquire(machine, "b", log[20:], records=100) == [(200, 209, 1)]


def test_acknowledged_records_move_the_start_once_they_are_written() -> None:
    machine = SharePartition(0)
    acquire(machine, "a", [LogBatch(0, 9)])
    change = acknowledge(machine, "a", (0, 4, ACCEPT), (5, 5, REJECT))
    assert change.batches() == (StateBatch(0, 4, 2, 1), StateBatch(5, 5, 4, 1))
    assert (machine.start_offset, machine.complete_count) == (0, 6)
    settle(machine, change)
    assert (machine.start_offset, machine.complete_count, machine.in_flight_count) == (6, 0, 4)


def test_what_cannot_be_written_is_still_acquired() -> None:
    machine = SharePartition(0)
    acquire(machine, "a", [LogBatch(0, 9)])
    settle(machine, acknowledge(machine, "a", (0, 9, ACCEPT)), is_written=False)
    assert (machine.start_offset, machine.complete_count) == (0, 0)
    settle(machine, acknowledge(machine, "a", (0, 9, ACCEPT)))
    assert machine.start_offset == 10


def test_a_lock_that_expires_while_a_change_fails_to_be_written_releases_the_records() -> None:
    machine = SharePartition(0)
    acquire(machine, "a", [LogBatch(0, 9)])
    change = acknowledge(machine, "a", (0, 9, ACCEPT))
    assert machine.expire(2000, LIMITS) == ()
    expired = machine.complete(change, is_written=False, now_ms=2000, limits=LIMITS)
    assert expired == (StateBatch(0, 9, 0, 1),)
    assert machine.next_offset(2000) == 0


def test_acknowledge_types_may_differ_for_each_offset() -> None:
    machine = SharePartition(0)
    acquire(machine, "a", [LogBatch(0, 4)])
    change = acknowledge(machine, "a", (0, 4, [ACCEPT, ACCEPT, RELEASE, GAP, REJECT]))
    assert change.batches() == (
        StateBatch(0, 1, 2, 1),
        StateBatch(2, 2, 0, 1),
        StateBatch(3, 3, 4, 1),
        StateBatch(4, 4, 4, 1),
    )
    settle(machine, change)
    assert (machine.start_offset, machine.next_offset(0)) == (2, 2)
    assert acquire(machine, "b", [LogBatch(0, 4)]) == [(2, 2, 2)]


def test_only_the_owner_of_a_lock_may_acknowledge() -> None:
    machine = SharePartition(0)
    acquire(machine, "a", [LogBatch(0, 9)])
    assert refusal(machine, "b", (0, 9, ACCEPT)) is errors.INVALID_RECORD_STATE
    assert refusal(machine, "a", (5, 12, ACCEPT)) is errors.INVALID_REQUEST
    change = acknowledge(machine, "a", (0, 3, ACCEPT))
    assert refusal(machine, "a", (3, 5, ACCEPT)) is errors.INVALID_RECORD_STATE, "it is being written"
    settle(machine, change)
    settle(machine, acknowledge(machine, "a", (0, 5, ACCEPT)))  # what is below the start is passed over
    assert machine.start_offset == 6


def test_a_renewed_lock_begins_anew() -> None:
    machine = SharePartition(0)
    acquire(machine, "a", [LogBatch(0, 9)], now=0)
    assert acknowledge(machine, "a", (0, 4, RENEW), now=900).batches() == ()
    assert machine.expire(1000, LIMITS) == (StateBatch(5, 9, 0, 1),)
    assert machine.next_due_ms() == 1900
    with pytest.raises(ApiError):
        machine.acknowledge(
            "a", [Acknowledgement(0, 4, [RENEW])], now_ms=1000, limits=LIMITS._replace(is_renewable=False)
        )


def test_a_record_that_is_delivered_too_often_is_archived() -> None:
    machine = SharePartition(0)
    counts = []
    for turn in range(5):
        counts += acquire(machine, "a", [LogBatch(0, 0)], now=turn * 2000)
        machine.expire(turn * 2000 + 1000, LIMITS)
    assert counts == [(0, 0, count) for count in (1, 2, 3, 4, 5)]
    assert (machine.start_offset, machine.in_flight_count) == (1, 0)


def test_records_that_fail_again_and_again_come_in_ever_smaller_portions() -> None:
    machine = SharePartition(0)
    log, portions = [LogBatch(0, 63)], []
    for turn in range(5):
        rows = acquire(machine, "a", log, now=turn * 2000)
        portions.append(sum(last - first + 1 for first, last, _ in rows))
        machine.expire(turn * 2000 + 1000, LIMITS)
    assert portions == [64, 64, 64, 32, 1]


def test_gaps_and_batches_that_are_not_delivered_are_archived() -> None:
    machine = SharePartition(0)
    log = [LogBatch(5, 9), LogBatch(10, 10, is_delivered=False), LogBatch(20, 24)]
    assert acquire(machine, "a", log) == [(5, 9, 1), (20, 24, 1)]
    assert machine.start_offset == 5
    settle(machine, acknowledge(machine, "a", (5, 9, ACCEPT), (20, 24, ACCEPT)))
    assert machine.start_offset == 25


def test_written_state_is_loaded_and_what_is_between_its_batches_is_available() -> None:
    machine = SharePartition(10, [StateBatch(12, 14, 2, 1), StateBatch(20, 24, 0, 3), StateBatch(25, 29, 4, 5)])
    assert (machine.start_offset, machine.end_offset, machine.complete_count) == (10, 30, 8)
    log = [LogBatch(10, 19), LogBatch(20, 29), LogBatch(30, 39)]
    assert acquire(machine, "a", log) == [(10, 11, 1), (15, 19, 1)], "the rest has been delivered three times"
    assert acquire(machine, "a", log) == [(20, 21, 4)]


def test_offsets_that_compaction_has_removed_since_are_archived() -> None:
    machine = SharePartition(0, [StateBatch(50, 59, 2, 1)])
    assert acquire(machine, "a", [LogBatch(20, 29), LogBatch(50, 59), LogBatch(60, 60)]) == [(20, 29, 1), (60, 60, 1)]
    assert machine.start_offset == 20


def test_a_log_that_starts_later_takes_its_records_along() -> None:
    machine = SharePartition(0)
    acquire(machine, "a", [LogBatch(0, 9)])
    change = acknowledge(machine, "a", (0, 9, ACCEPT))
    machine.trim(5)
    assert (machine.start_offset, machine.complete_count) == (5, 5)
    settle(machine, change)
    assert (machine.start_offset, machine.complete_count, machine.in_flight_count) == (10, 0, 0)
    machine.trim(50)
    assert (machine.start_offset, machine.end_offset) == (50, 50)


def test_a_member_that_leaves_releases_its_records() -> None:
    machine = SharePartition(0)
    acquire(machine, "a", [LogBatch(0, 4)])
    acquire(machine, "b", [LogBatch(5, 9)])
    settle(machine, machine.release("a", LIMITS))
    assert (machine.next_offset(0), machine.available_count, machine.acquired_count("b")) == (0, 5, 5)


def test_released_records_may_come_back_later() -> None:
    machine = SharePartition(0)
    acquire(machine, "a", [LogBatch(0, 4)])
    change = acknowledge(machine, "a", (0, 4, RELEASE))
    machine.complete(change, is_written=True, now_ms=0, limits=LIMITS, redeliver_ms=700)
    assert (machine.next_offset(699), machine.next_due_ms()) == (5, 700)
    assert machine.next_offset(700) == 0


class AgainstRecords(RuleBasedStateMachine):
    """The machine beside a dictionary with a state for every record."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = SharePartition(0)
        self.now = 0
        self.log: list[LogBatch] = []
        self.model: dict[int, list[Any]] = {}  # state, count, member, due
        self.pending: list[tuple[Change, dict[int, RecordState]]] = []

    @rule(sizes=st.lists(st.integers(1, 8), min_size=1, max_size=4), gap=st.integers(0, 3), control=st.booleans())
    def append(self, sizes: list[int], gap: int, control: bool) -> None:
        first = self.log[-1].last + 1 + gap if self.log else 0
        for size in sizes:
            self.log.append(LogBatch(first, first + size - 1, not (control and size == 1)))
            first += size

    @rule(member=st.sampled_from("abc"), records=st.integers(1, 30), limit=st.booleans())
    def fetch(self, member: str, records: int, limit: bool) -> None:
        offset = self.machine.next_offset(self.now)
        log = [batch for batch in self.log if batch.last >= offset][:10]
        for first, last, count in acquire(
            self.machine, member, log, records=records, now=self.now, is_record_limit=limit
        ):
            for each in range(first, last + 1):
                state, known, _, _ = self.model.get(each, [RecordState.AVAILABLE, 0, "", 0])
                assert state is RecordState.AVAILABLE, f"{each} was delivered although it is {state.name}"
                assert count == known + 1
                assert any(batch.first <= each <= batch.last and batch.is_delivered for batch in log)
                self.model[each] = [RecordState.ACQUIRED, count, member, self.now + LIMITS.lock_ms]

    @precondition(lambda self: any(row[0] is RecordState.ACQUIRED for row in self.model.values()))
    @rule(data=st.data(), kind=st.sampled_from([ACCEPT, RELEASE, REJECT, GAP]))
    def acknowledge(self, data: st.DataObject, kind: Acknowledge) -> None:
        busy = {each for _, ranges in self.pending for each in ranges}
        owned = [each for each, row in self.model.items() if row[0] is RecordState.ACQUIRED and each not in busy]
        if not owned:
            return
        first = data.draw(st.sampled_from(sorted(owned)))
        member = self.model[first][2]
        last = first
        while last + 1 in owned and self.model[last + 1][2] == member and data.draw(st.booleans()):
            last += 1
        change = acknowledge(self.machine, member, (first, last, kind), now=self.now)
        after = {}
        for each in range(first, last + 1):
            state = {ACCEPT: RecordState.ACKNOWLEDGED, RELEASE: RecordState.AVAILABLE}.get(kind, RecordState.ARCHIVED)
            if state is RecordState.AVAILABLE and self.model[each][1] >= LIMITS.deliveries_max:
                state = RecordState.ARCHIVED
            after[each] = state
        self.pending.append((change, after))

    @precondition(lambda self: self.pending)
    @rule(is_written=st.booleans())
    def settle(self, is_written: bool) -> None:
        change, after = self.pending.pop(0)
        settle(self.machine, change, is_written=is_written, now=self.now)
        if is_written:
            for each, state in after.items():
                self.model[each] = [state, self.model[each][1], "", 0]
        else:
            self._expire()

    @rule(passed=st.integers(1, 900))
    def wait(self, passed: int) -> None:
        self.now += passed
        self.machine.expire(self.now, LIMITS)
        self._expire()

    def _expire(self) -> None:
        busy = {each for _, ranges in self.pending for each in ranges}
        for each, row in self.model.items():
            if row[0] is RecordState.ACQUIRED and row[3] <= self.now and each not in busy:
                is_over = row[1] >= LIMITS.deliveries_max
                self.model[each] = [RecordState.ARCHIVED if is_over else RecordState.AVAILABLE, row[1], "", 0]

    @invariant()
    def the_window_agrees(self) -> None:
        ranges = self.machine.ranges
        assert [each.first for each in ranges[1:]] == [each.last + 1 for each in ranges[:-1]]
        if ranges:
            assert (ranges[0].first, ranges[-1].last + 1) == (self.machine.start_offset, self.machine.end_offset)
        available = complete = 0
        for each in ranges:
            pending = each.pending is not None and each.pending.is_terminal
            available += len(each) if each.state is RecordState.AVAILABLE else 0
            complete += len(each) if each.state.is_terminal or pending else 0
            for offset in range(each.first, each.last + 1):
                if offset in self.model:
                    assert self.model[offset][0] is each.state, offset
                    assert self.model[offset][1] == each.delivery_count, offset
        assert (available, complete) == (self.machine.available_count, self.machine.complete_count)
        for offset, row in self.model.items():
            if offset < self.machine.start_offset:
                assert row[0].is_terminal, f"{offset} is below the start and {row[0].name}"


TestAgainstRecords = AgainstRecords.TestCase
TestAgainstRecords.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
