"""Functions of aggregations of a grouped stream: without windows, over tumbling and hopping windows, over sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.streams.functions import accepts, with_key_first
from barnabas.streams.runtime.sliding_nodes import build_sliding
from barnabas.streams.runtime.wiring import Forward, Wiring
from barnabas.streams.topology.node import Node
from barnabas.streams.topology.operators import Aggregate, SessionAggregate, WindowAggregate
from barnabas.streams.topology.table_operators import CogroupTable
from barnabas.streams.windows import TimeWindows, Windowed

_UNSET = -1


def build_aggregate(wiring: Wiring, node: Node, operator: Aggregate) -> Forward:
    """Aggregate the values of a key; null keys and null values are dropped."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    store = wiring.store(operator.store)
    data, changed = store.data, store.changed
    task, name = wiring.task, node.name
    send_old, initializer = operator.send_old, operator.initializer
    function = operator.function
    takes_key = accepts(function, 3)

    def aggregate(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if key is None or value is None:
            task.drop(name)
            return
        entry = data.get(key)
        try:
            if entry is None:
                old = None if initializer is None else initializer()
            else:
                old, time = entry
                if time > timestamp:
                    timestamp = time
            if old is None and initializer is None:
                new = value
            else:
                new = function(key, old, value) if takes_key else function(old, value)
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        if new is None:
            data.pop(key, None)
        else:
            data[key] = (new, timestamp)
        changed[key] = None
        forward(key, new, old if send_old else None, timestamp, headers, True)

    return aggregate


def build_window_aggregate(wiring: Wiring, node: Node, operator: WindowAggregate) -> Forward:
    """Aggregate over windows."""
    if isinstance(operator.windows, TimeWindows):
        return _build_time_windows(wiring, node, operator, operator.windows)
    return build_sliding(wiring, node, operator, operator.windows)


def _build_time_windows(wiring: Wiring, node: Node, operator: WindowAggregate, windows: TimeWindows) -> Forward:
    """Aggregate over tumbling or hopping windows; null keys are dropped, null values are not."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    store = wiring.store(operator.store)
    data, put = store.data, store.put
    task, name = wiring.task, node.name
    send_old, initializer, on_close = operator.send_old, operator.initializer, operator.on_close
    assert initializer is not None
    start_with = initializer
    function = operator.function
    takes_key = accepts(function, 3)
    size, advance, grace = windows.size_ms, windows.advance_ms, windows.grace_ms
    observed = task.cell(f"windows:{name}", _UNSET)
    emit = _time_windows_emitter(wiring, node, operator, windows) if on_close else None
    make = tuple.__new__  # faster than the constructor of a named tuple

    def aggregate(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if key is None:
            task.drop(name)
            return
        if timestamp > observed[0]:
            observed[0] = timestamp
        close = observed[0] - grace
        start = (timestamp - size + advance) // advance * advance
        if start < 0:
            start = 0
        existing = data.get(key)
        while start <= timestamp:
            end = start + size
            if end > close:
                entry = None if existing is None else existing.get(start)
                time = timestamp
                try:
                    if entry is None:
                        old = start_with()
                    else:
                        old, time = entry
                        if timestamp > time:
                            time = timestamp
                    new = function(key, old, value) if takes_key else function(old, value)
                except Exception as error:  # noqa: BLE001 - a function of the user
                    fail(error)
                    return
                put(key, start, new, time)
                if existing is None:
                    existing = data.get(key)
                if not on_close:
                    window = make(Windowed, (key, start, end))
                    forward(window, new, old if send_old else None, time, headers, True)
            else:
                task.drop(name)
            start += advance
        if emit is not None:
            emit(close, headers)

    return aggregate


def _time_windows_emitter(
    wiring: Wiring, node: Node, operator: WindowAggregate, windows: TimeWindows
) -> Callable[[int, Any], None]:
    """Return a function that emits the windows that closed since it was called last."""
    forward = wiring.forward(node)
    store = wiring.store(operator.store)
    store.keep_until_emitted()
    size = windows.size_ms
    emitted = wiring.task.cell(f"emitted:{node.name}", _UNSET)

    def emit(close: int, headers: Any) -> None:
        last = emitted[0]
        if last != _UNSET and last >= close:
            return
        high = close - size
        if high < 0:
            return
        low = 0 if last == _UNSET else max(0, last - size) + 1
        emitted[0] = close
        for start, key, (value, time) in store.take_closed(low, high):
            forward(Windowed(key, start, start + size), value, None, time, headers, True)
        store.expire(high)

    return emit


def build_session_aggregate(wiring: Wiring, node: Node, operator: SessionAggregate) -> Forward:
    """Aggregate over sessions; null keys are dropped. The timestamp of a result is the end of its session."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    store = wiring.store(operator.store)
    task, name = wiring.task, node.name
    send_old, initializer, on_close = operator.send_old, operator.initializer, operator.on_close
    assert initializer is not None
    start_with = initializer
    function, merger = with_key_first(operator.function), with_key_first(operator.merger)
    gap, grace = operator.windows.gap_ms, operator.windows.grace_ms
    observed = task.cell(f"windows:{name}", _UNSET)
    emit = _session_emitter(wiring, node, operator) if on_close else None

    def aggregate(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if key is None:
            task.drop(name)
            return
        if timestamp > observed[0]:
            observed[0] = timestamp
        close = observed[0] - grace - gap
        first = last = timestamp
        merged = store.find(key, timestamp - gap, timestamp + gap)
        try:
            result = start_with()
            for start, end, part in merged:
                result = merger(key, result, part)
                first, last = min(first, start), max(last, end)
            is_late = last < close
            if not is_late:
                result = function(key, result, value)
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        if is_late:
            task.drop(name)
        else:
            if first != last or first != timestamp:
                for start, end, part in merged:
                    store.remove(key, start, end)
                    if not on_close:
                        forward(Windowed(key, start, end), None, part if send_old else None, end, (), True)
            store.put(key, first, last, result)
            if not on_close:
                forward(Windowed(key, first, last), result, None, last, (), True)
        if emit is not None:
            emit(close, headers)

    return aggregate


def _session_emitter(wiring: Wiring, node: Node, operator: SessionAggregate) -> Callable[[int, Any], None]:
    """Return a function that emits the sessions that closed since it was called last."""
    forward = wiring.forward(node)
    store = wiring.store(operator.store)
    store.keep_until_emitted()
    emitted = wiring.task.cell(f"emitted:{node.name}", _UNSET)

    def emit(close: int, headers: Any) -> None:
        last = emitted[0]
        if last != _UNSET and last >= close:
            return
        low, high = max(0, last), close - 1
        if high < 0 or high < low:
            return
        emitted[0] = close
        for start, end, key, value in store.take_closed(low, high):
            forward(Windowed(key, start, end), value, None, end, headers, True)

    return emit


def build_cogroup_table(wiring: Wiring, node: Node, operator: CogroupTable) -> Forward:
    """Forward the changes of all aggregations of a cogroup."""
    return wiring.forward(node)
