"""One partition as one share group reads it: a window of records in flight, each available, acquired or done.

A pure machine over ranges of offsets: it never waits, reads no clock and holds no object for a record. The window
begins at the start offset, below which everything is done, and ends where nothing has been delivered yet. Memory is
bounded by the locks that a group may have in one share-partition.

Acknowledgements take effect in two steps: ``acknowledge`` checks them and marks their ranges as pending, the caller
writes the change down with the share coordinator, and ``complete`` applies it or takes it back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from barnabas.broker.share.offset_rows import acquired_rows, parts, runs, throttle_from
from barnabas.broker.share.records import (
    STATE_AFTER,
    Acknowledge,
    Acknowledgement,
    Acquired,
    Limits,
    LogBatch,
    Range,
    RecordState,
)
from barnabas.coordinator.share_state.batches import StateBatch
from barnabas.model import errors
from barnabas.model.errors import ApiError


class Change:
    """Ranges whose new state is pending until it is written down."""

    __slots__ = ("ranges",)

    def __init__(self) -> None:
        self.ranges: list[Range] = []

    def batches(self) -> tuple[StateBatch, ...]:
        return tuple(each.batch(each.pending) for each in self.ranges if each.pending is not None)


class SharePartition:
    def __init__(self, start_offset: int, batches: Iterable[StateBatch] = ()) -> None:
        """``batches`` is the written state; offsets between its batches have not been delivered, as far as is known."""
        self.start_offset = start_offset
        self.end_offset = start_offset  # first offset beyond the window
        self.available_count = 0  # records of the window that can be acquired
        self.complete_count = 0  # records of the window whose delivery is complete, pending ones among them
        self._ranges: list[Range] = []
        for batch in sorted(batches):
            first = max(batch.first_offset, self.end_offset)
            if first > batch.last_offset:
                continue
            if first > self.end_offset:
                self._add(Range(self.end_offset, first - 1, RecordState.AVAILABLE))
            is_done = batch.delivery_state >= RecordState.ACKNOWLEDGED
            state = RecordState.AVAILABLE
            if is_done:
                is_accepted = batch.delivery_state == RecordState.ACKNOWLEDGED
                state = RecordState.ACKNOWLEDGED if is_accepted else RecordState.ARCHIVED
            self._add(Range(first, batch.last_offset, state, batch.delivery_count))
        self._advance_start()

    # --- reading --------------------------------------------------------------------------------------------------

    @property
    def ranges(self) -> Sequence[Range]:
        return self._ranges

    @property
    def in_flight_count(self) -> int:
        return self.end_offset - self.start_offset

    def next_offset(self, now_ms: int) -> int:
        """The first offset that can be acquired; the end of the window if none of its records can."""
        if self.available_count:
            for each in self._ranges:
                if each.state is RecordState.AVAILABLE and each.pending is None and each.due_ms <= now_ms:
                    return each.first
        return self.end_offset

    def can_acquire(self, now_ms: int, limits: Limits, readable_end: int) -> bool:
        """Whether a fetch would find records, if the log can be read up to ``readable_end``."""
        offset = self.next_offset(now_ms)
        return offset < readable_end and (offset < self.end_offset or self.in_flight_count < limits.locks_max)

    def next_due_ms(self) -> int | None:
        """When the next lock expires or the next delayed record becomes available."""
        return min((each.due_ms for each in self._ranges if each.due_ms and each.pending is None), default=None)

    def acquired_count(self, member_id: str | None = None) -> int:
        """The number of acquired records, of one member or of all."""
        return sum(
            len(each)
            for each in self._ranges
            if each.state is RecordState.ACQUIRED and member_id in (None, each.member_id)
        )

    # --- acquiring ------------------------------------------------------------------------------------------------

    def acquire(
        self,
        member_id: str,
        batches: Sequence[LogBatch],
        *,
        offset: int,
        records_max: int,
        batch_size: int,
        is_record_limit: bool,
        now_ms: int,
        limits: Limits,
    ) -> list[Acquired]:
        """Acquire records for a member from the batches that the log has from ``offset`` on.

        ``records_max`` is exact with ``is_record_limit``. Otherwise whole batches are acquired until it is reached.
        Offsets that the log does not have, or whose batches are not delivered, are archived.
        """
        taken: list[Range] = []
        if batches and records_max > 0:
            self._take(taken, member_id, batches, offset, records_max, is_record_limit, now_ms, limits)
            missing = records_max - sum(map(len, taken))
            is_throttled = any(each.delivery_count > throttle_from(limits) for each in taken)
            if missing > 0 and not is_throttled and self._extend(batches, missing, limits):
                self._take(taken, member_id, batches, offset, missing, is_record_limit, now_ms, limits)
        rows = list(acquired_rows(taken, batches, batch_size if not is_record_limit else None))
        self._merge()
        self._advance_start()
        return rows

    def _extend(self, batches: Sequence[LogBatch], wanted: int, limits: Limits) -> bool:
        """Let the window grow over batches that have not been delivered yet; whether it has grown."""
        wanted = min(wanted, limits.locks_max - self.in_flight_count)
        end_before = self.end_offset
        for batch in batches:
            if wanted <= 0:
                break
            if batch.last < self.end_offset:
                continue
            if batch.first > self.end_offset:
                self._add(Range(self.end_offset, batch.first - 1, RecordState.ARCHIVED))
            state = RecordState.AVAILABLE if batch.is_delivered else RecordState.ARCHIVED
            added = Range(self.end_offset, batch.last, state)
            wanted -= len(added) if batch.is_delivered else 0
            self._add(added)
        return self.end_offset > end_before

    def _take(
        self,
        taken: list[Range],
        member_id: str,
        batches: Sequence[LogBatch],
        offset: int,
        records_max: int,
        is_record_limit: bool,
        now_ms: int,
        limits: Limits,
    ) -> None:
        known, throttle = runs(batches, offset), throttle_from(limits)
        place, run_place = self._cut(max(offset, self.start_offset)), 0
        missing = records_max
        while missing > 0 and place < len(self._ranges) and run_place < len(known):
            run, each = known[run_place], self._ranges[place]
            if run.last < each.first:
                run_place += 1
                continue
            if each.state is not RecordState.AVAILABLE or each.pending is not None or each.due_ms > now_ms:
                place += 1
                continue
            last = min(each.last, run.last)
            is_throttled = run.is_delivered and each.delivery_count >= throttle
            if run.is_delivered:
                if is_throttled and taken:
                    return
                last = min(last, self._portion(each, batches, missing, is_record_limit, limits))
            self._cut(last + 1)
            if not run.is_delivered:
                self._set_state(each, RecordState.ARCHIVED)
                place += 1
                continue
            self._set_state(each, RecordState.ACQUIRED)
            each.delivery_count += 1
            each.member_id, each.due_ms = member_id, now_ms + limits.lock_ms
            taken.append(each)
            missing -= len(each)
            place += 1
            if is_throttled:
                return

    def _portion(
        self, each: Range, batches: Sequence[LogBatch], missing: int, is_record_limit: bool, limits: Limits
    ) -> int:
        """The last offset of an available range that may be acquired now."""
        throttle = throttle_from(limits)
        if each.delivery_count >= throttle:
            # A record that makes its consumers fail takes fewer and fewer neighbours with it, in the end none.
            if each.delivery_count >= limits.deliveries_max - 1:
                return each.first
            share = len(each) >> (each.delivery_count - throttle + 1)
            return each.first + max(1, min(share, missing)) - 1
        last = each.first + missing - 1
        if is_record_limit or last >= each.last:
            return last
        place = bisect_right(batches, last, key=lambda batch: batch.first) - 1
        return max(last, batches[place].last) if place >= 0 else last

    # --- acknowledging --------------------------------------------------------------------------------------------

    def acknowledge(self, member_id: str, rows: Sequence[Acknowledgement], *, now_ms: int, limits: Limits) -> Change:
        """Begin the acknowledgements of a member, all of them or none; ApiError if one of them is not allowed.

        Records below the start offset are done already and are passed over.
        """
        pieces = [part for row in rows for part in parts(row)]
        for first, last, kind in pieces:
            self._check(member_id, first, last, kind, limits)
        change = Change()
        for first, last, kind in pieces:
            if last < self.start_offset:
                continue
            place = self._cut(max(first, self.start_offset))
            self._cut(last + 1)
            while place < len(self._ranges) and self._ranges[place].first <= last:
                each = self._ranges[place]
                if kind is Acknowledge.RENEW:
                    each.due_ms = now_ms + limits.lock_ms
                else:
                    self._begin(each, STATE_AFTER[kind], limits, change)
                place += 1
        self._merge()
        return change

    def _check(self, member_id: str, first: int, last: int, kind: Acknowledge, limits: Limits) -> None:
        if last < self.start_offset:
            return
        if last >= self.end_offset:
            raise ApiError(
                errors.INVALID_REQUEST if self._ranges else errors.INVALID_RECORD_STATE,
                f"offset {last} is not in flight; the records in flight end before {self.end_offset}",
            )
        if kind is Acknowledge.RENEW and not limits.is_renewable:
            raise ApiError(errors.INVALID_RECORD_STATE, "the group does not allow to renew acquisition locks")
        for each in self._between(first, last):
            if each.state is not RecordState.ACQUIRED or each.pending is not None:
                raise ApiError(errors.INVALID_RECORD_STATE, f"offset {max(first, each.first)} is not acquired")
            if each.member_id != member_id:
                raise ApiError(
                    errors.INVALID_RECORD_STATE, f"offset {max(first, each.first)} is acquired by another member"
                )

    def release(self, member_id: str, limits: Limits) -> Change:
        """Begin the release of everything that a member has acquired."""
        change = Change()
        for each in self._ranges:
            if each.state is RecordState.ACQUIRED and each.pending is None and each.member_id == member_id:
                self._begin(each, RecordState.AVAILABLE, limits, change)
        return change

    def _begin(self, each: Range, state: RecordState, limits: Limits, change: Change) -> None:
        each.pending = each.release(limits.deliveries_max) if state is RecordState.AVAILABLE else state
        if each.pending.is_terminal:
            self.complete_count += len(each)
        change.ranges.append(each)

    def complete(
        self, change: Change, *, is_written: bool, now_ms: int, limits: Limits, redeliver_ms: int = 0
    ) -> tuple[StateBatch, ...]:
        """End a change: apply it if it was written down, else take it back.

        Released records become available at ``redeliver_ms``. The answer is what is to be written down because locks
        have expired meanwhile.
        """
        for each in change.ranges:
            if each.pending is None or each.last < self.start_offset:
                continue  # the log has been cut off above it
            pending, each.pending = each.pending, None
            if pending.is_terminal:
                self.complete_count -= len(each)
            if is_written:
                self._set_state(each, pending)
                each.due_ms = redeliver_ms if pending is RecordState.AVAILABLE else 0
        expired = self.expire(now_ms, limits) if not is_written else ()
        self._merge()
        self._advance_start()
        return expired

    # --- time and the log -----------------------------------------------------------------------------------------

    def expire(self, now_ms: int, limits: Limits, redeliver_ms: int = 0) -> tuple[StateBatch, ...]:
        """Release the records whose locks have expired; the answer is what is to be written down."""
        batches = []
        for each in self._ranges:
            if each.pending is not None or not each.due_ms or each.due_ms > now_ms:
                continue
            if each.state is RecordState.AVAILABLE:
                each.due_ms = 0
                continue
            state = each.release(limits.deliveries_max)
            self._set_state(each, state)
            each.due_ms = redeliver_ms if state is RecordState.AVAILABLE else 0
            batches.append(each.batch(state))
        self._merge()
        self._advance_start()
        return tuple(batches)

    def trim(self, log_start_offset: int) -> None:
        """The log starts here now: what is below is gone, acknowledged or not."""
        if log_start_offset <= self.start_offset:
            return
        while self._ranges and self._ranges[0].first < log_start_offset:
            each = self._ranges[0]
            self._count(each, -1)
            if each.last >= log_start_offset:
                each.first = log_start_offset  # in place: a pending range belongs to a change
                self._count(each, 1)
                break
            del self._ranges[0]
        self.start_offset = log_start_offset
        self.end_offset = max(self.end_offset, log_start_offset)
        self._advance_start()

    # --- ranges ---------------------------------------------------------------------------------------------------

    def _add(self, each: Range) -> None:
        self._ranges.append(each)
        self.end_offset = each.last + 1
        self._count(each, 1)

    def _count(self, each: Range, sign: int) -> None:
        if each.state is RecordState.AVAILABLE:
            self.available_count += sign * len(each)
        if each.state.is_terminal or (each.pending is not None and each.pending.is_terminal):
            self.complete_count += sign * len(each)

    def _set_state(self, each: Range, state: RecordState) -> None:
        self._count(each, -1)
        each.state = state
        each.member_id, each.due_ms = "", 0
        self._count(each, 1)

    def _place(self, offset: int) -> int:
        """The place of the range that holds an offset, or of the one before it."""
        return bisect_right(self._ranges, offset, key=lambda each: each.first) - 1

    def _cut(self, offset: int) -> int:
        """Let a range begin at an offset, if one holds it; the place of the first range at or above it."""
        place = self._place(offset)
        if place < 0:
            return 0
        each = self._ranges[place]
        if each.first == offset:
            return place
        if each.last >= offset:
            self._ranges.insert(place + 1, each.tail(offset))
        return place + 1

    def _between(self, first: int, last: int) -> Iterator[Range]:
        for place in range(max(self._place(first), 0), len(self._ranges)):
            each = self._ranges[place]
            if each.first > last:
                return
            if each.last >= first:
                yield each

    def _merge(self) -> None:
        """Make one range of neighbours that are alike. Pending ranges belong to a change and stay as they are."""
        ranges = self._ranges
        if len(ranges) < 2:
            return
        kept = [ranges[0]]
        for each in ranges[1:]:
            last = kept[-1]
            if last.is_like(each):
                last.last = each.last
            else:
                kept.append(each)
        self._ranges = kept

    def _advance_start(self) -> None:
        """Drop what is done from the beginning of the window."""
        done = 0
        for each in self._ranges:
            if not each.state.is_terminal:
                break
            self._count(each, -1)
            done += 1
        if done:
            self.start_offset = self._ranges[done - 1].last + 1
            del self._ranges[:done]
