"""Functions of the stateless nodes of a stream."""

from __future__ import annotations

from typing import Any

from barnabas.streams.functions import accepts, with_key
from barnabas.streams.runtime.wiring import Forward, Wiring
from barnabas.streams.topology.node import Node
from barnabas.streams.topology.operators import (
    Branch,
    DropNullKeys,
    Filter,
    FlatMap,
    FlatMapValues,
    Foreach,
    MapRecord,
    MapValues,
    PassThrough,
    Peek,
)


def build_filter(wiring: Wiring, node: Node, operator: Filter) -> Forward:
    """Forward records for which the predicate is true, or false."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    predicate, negate = operator.predicate, operator.negate
    if accepts(predicate, 2):

        def filter_record(key: Any, value: Any, timestamp: int, headers: Any) -> None:
            try:
                is_true = predicate(key, value)
            except Exception as error:  # noqa: BLE001 - a function of the user
                fail(error)
                return
            if (not is_true) is negate:
                forward(key, value, timestamp, headers)

        return filter_record

    def filter_value(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        try:
            is_true = predicate(value)
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        if (not is_true) is negate:
            forward(key, value, timestamp, headers)

    return filter_value


def build_map(wiring: Wiring, node: Node, operator: MapRecord) -> Forward:
    """Replace key and value, or the key alone."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    function = with_key(operator.function)
    if operator.keeps_value:

        def select_key(key: Any, value: Any, timestamp: int, headers: Any) -> None:
            try:
                key = function(key, value)
            except Exception as error:  # noqa: BLE001 - a function of the user
                fail(error)
                return
            forward(key, value, timestamp, headers)

        return select_key

    def map_record(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        try:
            key, value = function(key, value)
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        forward(key, value, timestamp, headers)

    return map_record


def build_map_values(wiring: Wiring, node: Node, operator: MapValues) -> Forward:
    """Replace the value."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    function = operator.function
    if accepts(function, 2):

        def map_with_key(key: Any, value: Any, timestamp: int, headers: Any) -> None:
            try:
                value = function(key, value)
            except Exception as error:  # noqa: BLE001 - a function of the user
                fail(error)
                return
            forward(key, value, timestamp, headers)

        return map_with_key

    def map_value(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        try:
            value = function(value)
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        forward(key, value, timestamp, headers)

    return map_value


def build_flat_map(wiring: Wiring, node: Node, operator: FlatMap) -> Forward:
    """Replace a record by others."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    function = with_key(operator.function)

    def flat_map(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        try:
            pairs = [(new_key, new_value) for new_key, new_value in function(key, value)]
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        for new_key, new_value in pairs:
            forward(new_key, new_value, timestamp, headers)

    return flat_map


def build_flat_map_values(wiring: Wiring, node: Node, operator: FlatMapValues) -> Forward:
    """Replace a value by others."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    function = with_key(operator.function)

    def flat_map_values(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        try:
            values = list(function(key, value))
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        for each in values:
            forward(key, each, timestamp, headers)

    return flat_map_values


def build_peek(wiring: Wiring, node: Node, operator: Peek | Foreach) -> Forward:
    """Call a function for its effect, then forward the record; a foreach has no children."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    function = with_key(operator.function)

    def peek(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        try:
            function(key, value)
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        forward(key, value, timestamp, headers)

    return peek


def build_pass_through(wiring: Wiring, node: Node, operator: PassThrough) -> Forward:
    """Forward everything: a merge or a branch costs nothing."""
    return wiring.forward(node)


def build_drop_null_keys(wiring: Wiring, node: Node, operator: DropNullKeys) -> Forward:
    """Drop records without a key, if the operator is active."""
    forward = wiring.forward(node)
    if not operator.is_active:
        return forward

    def drop_null_key(key: Any, *rest: Any) -> None:
        if key is not None:
            forward(key, *rest)

    return drop_null_key


def build_branch(wiring: Wiring, node: Node, operator: Branch) -> Forward:
    """Send a record to the first child whose predicate is true."""
    fail = wiring.fail(node)
    branches = [
        (with_key(predicate), wiring.child(child))
        for predicate, child in zip(operator.predicates, operator.children, strict=False)
    ]
    default = None if operator.default is None else wiring.child(operator.default)

    def branch(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        chosen = default
        try:
            for predicate, child in branches:
                if predicate(key, value):
                    chosen = child
                    break
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        if chosen is not None:
            chosen(key, value, timestamp, headers)

    return branch
