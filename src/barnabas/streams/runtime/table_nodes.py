"""Functions of the nodes of a table, and the getters that look up rows of a table for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from barnabas.streams.functions import with_key, with_key_first
from barnabas.streams.runtime.versioned_store import VersionedStore
from barnabas.streams.runtime.wiring import Forward, Wiring
from barnabas.streams.topology.node import Node
from barnabas.streams.topology.operators import SessionAggregate, WindowAggregate
from barnabas.streams.topology.table_operators import (
    AggregateTable,
    CogroupTable,
    GroupTable,
    StreamAggregate,
    Suppress,
    TableAggregate,
    TableFilter,
    TableJoinMerge,
    TableJoinSide,
    TableMapValues,
    TableOperator,
    TableSource,
    ToStream,
)

__all__ = ["Getter", "row_getter"]

# Returns value and timestamp of a row, or None.
Getter: TypeAlias = Callable[[Any], "tuple[Any, int] | None"]


def build_table_source(wiring: Wiring, node: Node, operator: TableSource) -> Forward:
    """Turn records into changes; null keys are dropped."""
    forward = wiring.forward(node)
    task, name = wiring.task, node.name
    if not operator.is_materialized:

        def pass_change(key: Any, value: Any, timestamp: int, headers: Any) -> None:
            if key is None:
                task.drop(name)
                return
            forward(key, value, None, timestamp, headers, True)

        return pass_change
    store = wiring.store(operator.store.name)
    if isinstance(store, VersionedStore):
        return _versioned_source(wiring, node, operator, store)
    data, changed = store.data, store.changed
    send_old = operator.send_old

    def update(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if key is None:
            task.drop(name)
            return
        old = None
        if send_old:
            entry = data.get(key)
            if entry is not None:
                old = entry[0]
        if value is None:
            data.pop(key, None)
        else:
            data[key] = (value, timestamp)
        changed[key] = None
        forward(key, value, old, timestamp, headers, True)

    return update


def _versioned_source(wiring: Wiring, node: Node, operator: TableSource, store: VersionedStore) -> Forward:
    forward = wiring.forward(node)
    task, name = wiring.task, node.name
    send_old = operator.send_old

    def update(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if key is None:
            task.drop(name)
            return
        entry = store.get(key)
        is_latest = store.put(key, value, timestamp)
        if is_latest is None:
            task.drop(name)
            return
        forward(key, value, entry[0] if entry is not None and send_old else None, timestamp, headers, is_latest)

    return update


def build_table_filter(wiring: Wiring, node: Node, operator: TableFilter) -> Forward:
    """Keep rows for which the predicate is true, or false."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    predicate, negate, send_old = with_key(operator.function), operator.negate, operator.send_old
    store = None if operator.store is None else wiring.store(operator.store.name)
    drops_empty = send_old and not operator.is_versioned

    def filter_change(key: Any, new: Any, old: Any, timestamp: int, headers: Any, latest: bool) -> None:
        try:
            if new is not None and bool(predicate(key, new)) is negate:
                new = None
            if not send_old:
                old = None
            elif store is not None:
                entry = store.data.get(key)
                old = None if entry is None else entry[0]
            elif old is not None and bool(predicate(key, old)) is negate:
                old = None
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        if drops_empty and old is None and new is None:
            return
        if store is not None:
            store.put(key, new, timestamp)
            latest = True
        forward(key, new, old, timestamp, headers, latest)

    return filter_change


def build_table_map_values(wiring: Wiring, node: Node, operator: TableMapValues) -> Forward:
    """Replace the values of rows."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    function, send_old = with_key(operator.function), operator.send_old
    store = None if operator.store is None else wiring.store(operator.store.name)

    def map_change(key: Any, new: Any, old: Any, timestamp: int, headers: Any, latest: bool) -> None:
        try:
            new = None if new is None else function(key, new)
            if not send_old:
                old = None
            elif store is not None:
                entry = store.data.get(key)
                old = None if entry is None else entry[0]
            elif old is not None:
                old = function(key, old)
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        if store is not None:
            store.put(key, new, timestamp)
            latest = True
        forward(key, new, old, timestamp, headers, latest)

    return map_change


def build_to_stream(wiring: Wiring, node: Node, operator: ToStream) -> Forward:
    """Forward new values as a stream."""
    forward = wiring.forward(node)

    def to_stream(key: Any, new: Any, old: Any, timestamp: int, headers: Any, latest: bool) -> None:
        forward(key, new, timestamp, headers)

    return to_stream


def build_group_table(wiring: Wiring, node: Node, operator: GroupTable) -> Forward:
    """Map rows to their groups: the old value is to be subtracted, the new one to be added."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    function, is_versioned = with_key(operator.function), operator.is_versioned

    def group(key: Any, new: Any, old: Any, timestamp: int, headers: Any, latest: bool) -> None:
        if is_versioned and not latest:
            return
        try:
            new_key, new_value = (None, None) if new is None else function(key, new)
            old_key, old_value = (None, None) if old is None else function(key, old)
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        has_new = new_key is not None and new_value is not None
        has_old = old_key is not None and old_value is not None
        if has_new and has_old and new_key == old_key:
            forward(new_key, new_value, old_value, timestamp, headers, latest)
            return
        if has_old:
            forward(old_key, None, old_value, timestamp, headers, latest)
        if has_new:
            forward(new_key, new_value, None, timestamp, headers, latest)

    return group


def build_table_aggregate(wiring: Wiring, node: Node, operator: TableAggregate) -> Forward:
    """Subtract the old value from the aggregate of a group and add the new one."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    store = wiring.store(operator.store.name)
    data, put = store.data, store.put
    send_old, initializer = operator.send_old, operator.initializer
    adder, subtractor = with_key_first(operator.adder), with_key_first(operator.subtractor)

    def aggregate(key: Any, new: Any, old: Any, timestamp: int, headers: Any, latest: bool) -> None:
        entry = data.get(key)
        before, time = entry if entry is not None else (None, -1)
        result = before
        later = max(timestamp, time)
        try:
            if old is not None and before is not None:
                result = subtractor(key, before, old)
                timestamp = later
            if new is not None:
                if result is None and initializer is None:
                    result = new
                else:
                    if result is None and initializer is not None:
                        result = initializer()
                    result = adder(key, result, new)
                    timestamp = later
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        put(key, result, timestamp)
        forward(key, result, before if send_old else None, timestamp, headers, True)

    return aggregate


def row_getter(wiring: Wiring, operator: TableOperator) -> Getter:
    """Return the function that looks up a row of a table, in its store or computed from the tables before it."""
    if isinstance(operator, TableSource):
        found: Getter = wiring.store(operator.store.name).data.get
        store = wiring.store(operator.store.name)
        return store.get if isinstance(store, VersionedStore) else found
    if isinstance(operator, AggregateTable):
        return _aggregate_getter(wiring, operator.aggregate)
    if isinstance(operator, CogroupTable):
        return _aggregate_getter(wiring, operator.aggregates[0])
    if isinstance(operator, TableAggregate):
        return wiring.store(operator.store.name).data.get  # type: ignore[no-any-return]
    if isinstance(operator, TableFilter | TableMapValues):
        return _derived_getter(wiring, operator)
    if isinstance(operator, TableJoinMerge):
        if operator.store is not None:
            return wiring.store(operator.store.name).data.get  # type: ignore[no-any-return]
        return _join_getter(wiring, operator.left)
    assert isinstance(operator, Suppress), operator
    return _suppress_getter(wiring, operator)


def _aggregate_getter(wiring: Wiring, aggregate: StreamAggregate) -> Getter:
    store = wiring.store(aggregate.store)
    if isinstance(aggregate, WindowAggregate):
        return lambda window: store.get(window[0], window[1])
    if isinstance(aggregate, SessionAggregate):

        def session(window: Any) -> tuple[Any, int] | None:
            value = store.get(*window)
            return None if value is None else (value, window[2])

        return session
    return store.data.get  # type: ignore[no-any-return]


def _derived_getter(wiring: Wiring, operator: TableFilter | TableMapValues) -> Getter:
    if operator.store is not None:
        return wiring.store(operator.store.name).data.get  # type: ignore[no-any-return]
    parent = row_getter(wiring, operator.parent)
    function = with_key(operator.function)
    if isinstance(operator, TableFilter):
        negate = operator.negate

        def filtered(key: Any) -> tuple[Any, int] | None:
            entry = parent(key)
            return None if entry is None or bool(function(key, entry[0])) is negate else entry

        return filtered

    def mapped(key: Any) -> tuple[Any, int] | None:
        entry = parent(key)
        if entry is None:
            return None
        value = function(key, entry[0])
        return None if value is None else (value, entry[1])

    return mapped


def _join_getter(wiring: Wiring, side: TableJoinSide) -> Getter:
    this, other = row_getter(wiring, side.this), row_getter(wiring, side.other)
    joiner, kind = with_key_first(side.joiner), side.kind

    def joined(key: Any) -> tuple[Any, int] | None:
        one, two = this(key), other(key)
        if one is None and (kind != "outer" or two is None):
            return None
        if two is None and kind == "inner":
            return None
        value = joiner(key, None if one is None else one[0], None if two is None else two[0])
        time = max(-1 if one is None else one[1], -1 if two is None else two[1])
        return None if value is None else (value, time)

    return joined


def _suppress_getter(wiring: Wiring, operator: Suppress) -> Getter:
    """Rows before suppress; a row that is held back is the one before its first change."""
    parent = row_getter(wiring, operator.parent)
    buffer = wiring.store(operator.store)

    def visible(key: Any) -> tuple[Any, int] | None:
        held = buffer.data.get(key)
        if held is None:
            return parent(key)
        return None if held.prior is None else (held.prior, -1)

    return visible
