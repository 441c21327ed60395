"""Functions of joins: table with table, stream with table and with global table, stream with stream."""

from __future__ import annotations

from typing import Any, Final

from barnabas.streams.functions import with_key, with_key_first
from barnabas.streams.runtime.buffer_store import RecordBuffer
from barnabas.streams.runtime.outer_join_store import OuterJoinStore
from barnabas.streams.runtime.table_nodes import row_getter
from barnabas.streams.runtime.versioned_store import VersionedStore
from barnabas.streams.runtime.window_store import JoinStore
from barnabas.streams.runtime.wiring import Forward, Wiring
from barnabas.streams.topology.node import Node
from barnabas.streams.topology.operators import GlobalTableJoin, JoinWindow, StreamJoinSide, StreamTableJoin
from barnabas.streams.topology.table_operators import TableJoinMerge, TableJoinSide, TableSource

_MAX: Final = 1 << 62


def build_table_join_side(wiring: Wiring, node: Node, operator: TableJoinSide) -> Forward:
    """Join a change of one table with the row of the other one."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    other_row = row_getter(wiring, operator.other)
    joiner, kind, send_old = with_key_first(operator.joiner), operator.kind, operator.send_old
    is_versioned = operator.is_versioned
    needs_other = kind in ("inner", "right")

    def join(key: Any, new: Any, old: Any, timestamp: int, headers: Any, latest: bool) -> None:
        if key is None or (is_versioned and not latest):
            return
        try:
            row = other_row(key)
            if row is None:
                if needs_other or (new is None and old is None):
                    return
                other = None
            else:
                other, time = row
                if time > timestamp:
                    timestamp = time
            # The right side of a left join joins with the left row even if its own value is gone.
            has_new = new is not None or kind == "right" or (kind == "outer" and other is not None)
            has_old = send_old and (old is not None or kind == "right" or (kind == "outer" and other is not None))
            joined_old = joiner(key, old, other) if has_old else None
            joined_new = joiner(key, new, other) if has_new else None
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        forward(key, joined_new, joined_old, timestamp, headers, latest)

    return join


def build_table_join_merge(wiring: Wiring, node: Node, operator: TableJoinMerge) -> Forward:
    """Keep the result of a table-table join if it has a store, and forward it."""
    forward = wiring.forward(node)
    send_old = operator.send_old
    if operator.store is None:
        if send_old:
            return forward

        def merge(key: Any, new: Any, old: Any, timestamp: int, headers: Any, latest: bool) -> None:
            forward(key, new, None, timestamp, headers, latest)

        return merge
    put = wiring.store(operator.store.name).put

    def keep(key: Any, new: Any, old: Any, timestamp: int, headers: Any, latest: bool) -> None:
        put(key, new, timestamp)
        forward(key, new, old if send_old else None, timestamp, headers, True)

    return keep


def build_stream_table_join(wiring: Wiring, node: Node, operator: StreamTableJoin) -> Forward:
    """Join a record with the row of a table. Null values are dropped; null keys too, unless it is a left join."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    row_of = row_getter(wiring, operator.table)
    versions = _versions(wiring, operator)
    joiner, is_left = with_key_first(operator.joiner), operator.is_left
    task, name = wiring.task, node.name

    def join(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if value is None or (key is None and not is_left):
            task.drop(name)
            return
        try:
            row = None
            if key is not None:
                row = row_of(key) if versions is None else versions.get(key, timestamp)
            if row is None and not is_left:
                return
            joined = joiner(key, value, None if row is None else row[0])
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        forward(key, joined, timestamp, headers)

    if operator.buffer is None:
        return join
    return _waiting(wiring, node, operator, wiring.store(operator.buffer), join)


def _versions(wiring: Wiring, operator: StreamTableJoin) -> VersionedStore | None:
    if isinstance(operator.table, TableSource):
        store = wiring.store(operator.table.store.name)
        return store if isinstance(store, VersionedStore) else None
    return None


def _waiting(wiring: Wiring, node: Node, operator: StreamTableJoin, buffer: RecordBuffer, join: Forward) -> Forward:
    """Records wait until stream time is past their grace period; late ones are joined at once."""
    observed = wiring.task.cell(f"waiting:{node.name}", -1)
    grace = operator.grace_ms
    assert grace is not None
    task, name = wiring.task, node.name

    def wait(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if value is None or (key is None and not operator.is_left):
            task.drop(name)
            return
        if key is None or observed[0] - grace > timestamp:
            join(key, value, timestamp, headers)
            return
        if timestamp > observed[0]:
            observed[0] = timestamp
        buffer.put(key, value, timestamp, headers)
        for held in buffer.pop_until(observed[0] - grace):
            join(*held)

    return wait


def build_global_table_join(wiring: Wiring, node: Node, operator: GlobalTableJoin) -> Forward:
    """Join a record with a row of a global table."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    row_of = wiring.store(operator.store).data.get
    selector, joiner, is_left = with_key(operator.selector), with_key_first(operator.joiner), operator.is_left
    task, name = wiring.task, node.name

    def join(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        try:
            selected = selector(key, value)
            if value is None or (selected is None and not is_left):
                task.drop(name)
                return
            row = None if selected is None else row_of(selected)
            if row is None and not is_left:
                return
            joined = joiner(key, value, None if row is None else row[0])
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        forward(key, joined, timestamp, headers)

    return join


def build_join_window(wiring: Wiring, node: Node, operator: JoinWindow) -> Forward:
    """Join a record, then keep it for records of the other side."""
    forward = wiring.forward(node)
    store: JoinStore = wiring.store(operator.store)

    def keep(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        forward(key, value, timestamp, headers)
        if key is not None:
            store.put(key, value, timestamp)

    return keep


def build_stream_join_side(wiring: Wiring, node: Node, operator: StreamJoinSide) -> Forward:
    """Join a record with the rows of the other side whose time is in the window, in order of their time."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    other: JoinStore = wiring.store(operator.other_store)
    rows_of = other.data
    starts = other.starts
    outer_store: OuterJoinStore | None = None if operator.outer_store is None else wiring.store(operator.outer_store)
    three = with_key_first(operator.joiner)
    is_left, outer = operator.is_left, operator.outer
    before = operator.before_ms if is_left else operator.after_ms
    after = operator.after_ms if is_left else operator.before_ms
    # Time of the join and the smallest time of the rows without a partner, shared by both sides.
    times = wiring.task.cell(f"join:{operator.shared}", -1, _MAX)
    emit_outer = None if outer_store is None else _outer_emitter(operator, outer_store, times, three, forward, after)
    task, name = wiring.task, node.name

    def join(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if timestamp > times[0]:
            times[0] = timestamp
        try:
            if key is None or value is None:
                if not (outer and key is None and value is not None):
                    task.drop(name)
                    return
                alone = three(key, value, None) if is_left else three(key, None, value)
            else:
                if emit_outer is not None and timestamp == times[0]:
                    emit_outer(headers)
                low, high = max(0, timestamp - before), max(0, timestamp + after)
                found = starts(key, low, high)
                for time in found:
                    if outer_store is not None:
                        outer_store.remove(time, is_left, key)  # the other side of a left row is the right one
                    later = time if time > timestamp else timestamp
                    for row in tuple(rows_of[key][time]):
                        forward(key, three(key, value, row) if is_left else three(key, row, value), later, headers)
                if found or not outer:
                    return
                if outer_store is not None and high >= times[0]:
                    times[1] = min(times[1], timestamp)
                    outer_store.add(timestamp, not is_left, key, value)
                    return
                alone = three(key, value, None) if is_left else three(key, None, value)
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        forward(key, alone, timestamp, headers)

    return join


def _outer_emitter(
    operator: StreamJoinSide,
    store: OuterJoinStore,
    times: list[int],
    joiner: Any,
    forward: Forward,
    join_after: int,
) -> Forward:
    """Return a function that emits the rows without a partner whose window is closed."""
    after, before, grace = operator.after_ms, operator.before_ms, operator.grace_ms

    def emit(headers: Any) -> None:
        if times[1] + join_after + grace >= times[0]:
            return
        times[1] = _MAX
        is_left_open = is_right_open = False
        for timestamp, is_right, key, value in store.in_order():
            times[1] = timestamp
            if is_left_open and is_right_open:
                break
            if timestamp + (before if is_right else after) + grace >= times[0]:
                is_left_open |= not is_right
                is_right_open |= is_right
                continue
            forward(key, joiner(key, None, value) if is_right else joiner(key, value, None), timestamp, headers)
            store.remove(timestamp, is_right, key)

    return emit
