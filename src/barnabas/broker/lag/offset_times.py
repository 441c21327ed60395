"""The times of records at given offsets, for the coordinators of groups on other brokers: looked up one a turn.

A look-up reads a batch and may have to unpack it, so that between two of them everybody else is served, and one request
gets a bounded number of them. ``handlers.list_offsets`` calls this; ``far_lag`` is the one who asks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.broker.requests.request import Deferred, Request
from barnabas.model.errors import CorruptBatch
from barnabas.model.ids import NO_TIMESTAMP
from barnabas.storage.log import PartitionLog
from barnabas.storage.timestamps import newest_timestamp, time_of_record
from barnabas.wire.messages.list_offsets import ListOffsetsResponse
from barnabas.world.disk import DiskFailure, FileClosed

LOOK_UPS_MAX: Final = 500  # in one request
UNKNOWN: Final = -2  # the time of a record that was not looked up, or could not be


class _LookUp(NamedTuple):
    log: PartitionLog
    offset: int
    times: list[int]
    place: int


class OffsetTimes:
    """What one request wants to know."""

    def __init__(self) -> None:
        self._look_ups: deque[_LookUp] = deque()

    def add(
        self,
        log: PartitionLog,
        offsets: Sequence[int],
        end_offset: int,
        row: ListOffsetsResponse.ListOffsetsPartitionResponse,
    ) -> None:
        """Fill in what is known at once, and remember the rest: the first record from each of these offsets on."""
        start = row.log_start_offset = log.log_start_offset
        row.newest_timestamp = newest_timestamp(log.segments.from_offset(start))
        times = row.unread_timestamps = [
            UNKNOWN if offset < end_offset else NO_TIMESTAMP for offset in offsets[:LOOK_UPS_MAX]
        ]
        for place, time in enumerate(times):
            if time == UNKNOWN and len(self._look_ups) < LOOK_UPS_MAX:
                self._look_ups.append(_LookUp(log, max(offsets[place], start), times, place))

    def answer(self, request: Request, response: ListOffsetsResponse) -> ListOffsetsResponse | Deferred:
        """At once, if nothing is to be looked up."""
        if not self._look_ups:
            return response
        deferred = request.defer()
        loop = asyncio.get_running_loop()

        def go_on() -> None:
            if deferred.is_over:
                return  # nobody is there any longer
            deferred.attempt(step)
            if not deferred.is_over:
                loop.call_soon(go_on)

        def step() -> ListOffsetsResponse | None:
            _look_up(self._look_ups.popleft())
            return None if self._look_ups else response

        loop.call_soon(go_on)
        return deferred


def _look_up(wanted: _LookUp) -> None:
    log, offset, times, place = wanted
    try:
        found = time_of_record(log.segments.from_offset(offset), offset)
    except (CorruptBatch, DiskFailure, FileClosed):
        return
    times[place] = NO_TIMESTAMP if found is None else found
