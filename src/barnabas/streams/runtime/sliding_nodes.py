"""The aggregation over sliding windows: a window ends at each record, and one begins right after each record.

For a record at ``t`` and a difference ``d`` the *left* window is ``[t - d, t]`` and the *right* window ``[t + 1, t +
1 + d]``. Existing windows that hold ``t`` are updated, the left window is made, the right window is made if later
records are known, and the right window of the record before is made if this record falls into it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.streams.functions import with_key_first
from barnabas.streams.runtime.window_store import WindowStore
from barnabas.streams.runtime.wiring import Forward, Wiring
from barnabas.streams.topology.node import Node
from barnabas.streams.topology.operators import WindowAggregate
from barnabas.streams.windows import SlidingWindows, Windowed

__all__ = ["build_sliding"]

_UNSET = -1


class _Arrived(NamedTuple):
    """The record that is being aggregated, and the time before which windows are closed."""

    key: Any
    value: Any
    timestamp: int
    headers: Any
    close: int


class _Sliding:
    """The aggregation of one node."""

    def __init__(self, wiring: Wiring, node: Node, operator: WindowAggregate, windows: SlidingWindows) -> None:
        assert operator.initializer is not None
        self.forward = wiring.forward(node)
        self.store: WindowStore = wiring.store(operator.store)
        self.initializer: Callable[[], Any] = operator.initializer
        self.function = with_key_first(operator.function)
        self.difference = windows.difference_ms
        self.send_old = operator.send_old
        self.on_close = operator.on_close
        self.task, self.name = wiring.task, node.name

    def emit_update(self, record: _Arrived, start: int, new: Any, old: Any, time: int) -> None:
        if not self.on_close:
            window = Windowed(record.key, start, start + self.difference)
            self.forward(window, new, old if self.send_old else None, time, record.headers, True)

    def update(self, record: _Arrived, start: int, entry: tuple[Any, int] | None) -> None:
        """Add the record to a window that is open; ``entry`` is its aggregate so far."""
        if start + self.difference < record.close:
            self.task.drop(self.name)
            return
        old = None if entry is None else entry[0]
        new = self.function(record.key, old, record.value)
        time = record.timestamp if entry is None or old is None else max(record.timestamp, entry[1])
        self.store.put(record.key, start, new, time)
        self.emit_update(record, start, new, old, time)

    def start_window(self, record: _Arrived, start: int) -> None:
        """Make a window that holds this record alone."""
        first = self.initializer()
        self.update(record, start, None if first is None else (first, record.timestamp))

    def make_right(self, record: _Arrived, entry: tuple[Any, int] | None) -> None:
        """Make the right window of this record, of the later records that ``entry`` has."""
        if entry is None or entry[1] <= record.timestamp:
            return
        start = record.timestamp + 1
        self.store.put(record.key, start, *entry)
        self.emit_update(record, start, entry[0], None, entry[1])

    def process(self, record: _Arrived) -> None:
        """Aggregate a record whose left window does not begin before time 0."""
        key, timestamp, difference = record.key, record.timestamp, self.difference
        starts = self.store.starts(key, max(0, timestamp - 2 * difference), timestamp + 1)
        seen: set[int] = set()
        left = right = None
        has_left = has_right = False
        previous: int | None = None
        for start in reversed(starts):
            entry = self.store.get(key, start)
            if entry is None:
                continue
            seen.add(start)
            end = start + difference
            if start == timestamp + 1:
                has_right = True
            elif end > timestamp:
                if right is None:
                    right = entry
                self.update(record, start, entry)
            elif end == timestamp:
                has_left = True
                self.update(record, start, entry)
                if entry[1] >= timestamp:
                    return
                previous = entry[1]
            else:
                left, previous = entry, entry[1]
                break
        if previous is not None and previous + 1 not in seen and previous + 1 + difference >= timestamp:
            self.start_window(record, previous + 1)
        if not has_left:
            if left is not None and previous is not None and timestamp - difference <= previous:
                self.update(record, timestamp - difference, (left[0], timestamp))
            else:
                self.start_window(record, timestamp - difference)
        if not has_right:
            self.make_right(record, right)

    def process_early(self, record: _Arrived) -> None:
        """Aggregate a record whose left window would begin before time 0; such records share one window from 0 on."""
        key, timestamp = record.key, record.timestamp
        seen: set[int] = set()
        combined = right = None
        has_right = False
        previous: int | None = None
        for start in self.store.starts(key, 0, timestamp + 1):
            entry = self.store.get(key, start)
            if entry is None:
                continue
            seen.add(start)
            if start == 0:
                combined = entry
                if entry[1] < timestamp:
                    previous = entry[1]
            elif start <= timestamp:
                right = entry
                self.update(record, start, entry)
            else:
                has_right = True
        if right is None and combined is not None and combined[1] > timestamp:
            right = combined
        if not has_right:
            self.make_right(record, right)
        if previous is not None and previous + 1 not in seen:
            self.start_window(record, previous + 1)
        if combined is None:
            self.start_window(record, 0)
        else:
            self.update(record, 0, combined)


def build_sliding(wiring: Wiring, node: Node, operator: WindowAggregate, windows: SlidingWindows) -> Forward:
    """Aggregate over sliding windows; null keys and null values are dropped."""
    sliding = _Sliding(wiring, node, operator, windows)
    fail = wiring.fail(node)
    task, name = wiring.task, node.name
    difference, grace = windows.difference_ms, windows.grace_ms
    observed = task.cell(f"windows:{name}", _UNSET)
    emit = _emitter(wiring, node, operator, difference) if operator.on_close else None

    def aggregate(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if key is None or value is None:
            task.drop(name)
            return
        if timestamp > observed[0]:
            observed[0] = timestamp
        close = observed[0] - grace
        if timestamp + difference < close:
            task.drop(name)
            return
        record = _Arrived(key, value, timestamp, headers, close)
        try:
            if timestamp < difference:
                sliding.process_early(record)
                return
            sliding.process(record)
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        if emit is not None:
            emit(close, headers)

    return aggregate


def _emitter(wiring: Wiring, node: Node, operator: WindowAggregate, difference: int) -> Callable[[int, Any], None]:
    """Return a function that emits the windows that closed since it was called last."""
    forward = wiring.forward(node)
    store: WindowStore = wiring.store(operator.store)
    store.keep_until_emitted()
    emitted = wiring.task.cell(f"emitted:{node.name}", _UNSET)

    def emit(close: int, headers: Any) -> None:
        last = emitted[0]
        if last != _UNSET and last >= close:
            return
        high = close - difference - 1
        if high < 0:
            return
        low = 0 if last == _UNSET else max(0, last - difference)
        emitted[0] = close
        for start, key, (value, time) in store.take_closed(low, high):
            forward(Windowed(key, start, start + difference), value, None, time, headers, True)
        store.expire(high - 2 * difference)  # windows up to there are still read

    return emit
