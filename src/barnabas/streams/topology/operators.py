"""Operators of streams as pure data: what a node does, without the state and the wiring to do it.

The runtime has one function for each class here. ``table_operators`` has those of tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from barnabas.streams.serdes import SerdeLike
from barnabas.streams.windows import SessionWindows, SlidingWindows, TimeWindows

__all__ = [
    "Branch",
    "Filter",
    "FlatMap",
    "FlatMapValues",
    "Foreach",
    "GlobalTableJoin",
    "JoinWindow",
    "MapRecord",
    "MapValues",
    "Operator",
    "PassThrough",
    "Payload",
    "Peek",
    "Process",
    "Sink",
    "Source",
    "StreamJoinSide",
]

Function: TypeAlias = Callable[..., Any]
# What the value of an internal record is: the value, a change of a table, or a message of a foreign-key join.
Payload: TypeAlias = Literal["value", "change", "subscription", "response"]


class Operator:
    """Base class of all operators."""


@dataclass(eq=False)
class Source(Operator):
    """Reads topics: by name, by pattern, or an internal topic. ``at`` takes the timestamp from the value.

    ``frame`` makes a DataFrame of Spark whose rows are read instead of a topic; it has ``frame_partitions`` tasks.
    """

    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None = None
    key: SerdeLike[Any] | None = None
    value: SerdeLike[Any] | None = None
    at: Function | None = None
    payload: Payload = "value"
    is_internal: bool = False
    frame: Function | None = None
    frame_partitions: int = 1


@dataclass(eq=False)
class Sink(Operator):
    """Writes to a topic, or to the topic that a function of key, value and timestamp returns.

    ``partitioner`` maps topic, key, value and the number of partitions to a partition, or to None for the default.
    """

    topic: str | None
    extractor: Function | None = None
    key: SerdeLike[Any] | None = None
    value: SerdeLike[Any] | None = None
    partitioner: Function | None = None
    payload: Payload = "value"
    is_internal: bool = False


@dataclass(eq=False)
class Filter(Operator):
    """Forwards records for which the predicate is true, or false if ``negate`` is set."""

    predicate: Function
    negate: bool = False


@dataclass(eq=False)
class MapRecord(Operator):
    """Replaces key and value: ``function(key, value)`` returns both."""

    function: Function
    keeps_value: bool = False  # the function returns the new key alone


@dataclass(eq=False)
class MapValues(Operator):
    """Replaces the value: ``function(key, value)`` returns it."""

    function: Function


@dataclass(eq=False)
class FlatMap(Operator):
    """Replaces a record by any number of records: ``function(key, value)`` returns pairs."""

    function: Function


@dataclass(eq=False)
class FlatMapValues(Operator):
    """Replaces a value by any number of values: ``function(key, value)`` returns them."""

    function: Function


@dataclass(eq=False)
class Peek(Operator):
    """Calls a function for its effect and forwards the record."""

    function: Function


@dataclass(eq=False)
class Foreach(Operator):
    """Calls a function for its effect; the end of a stream."""

    function: Function


@dataclass(eq=False)
class PassThrough(Operator):
    """Forwards what it gets: the node of a merge or of a branch."""


@dataclass(eq=False)
class DropNullKeys(Operator):
    """Stands before a repartition; drops null keys only if a left or outer join follows."""

    is_active: bool = False


@dataclass(eq=False)
class Branch(Operator):
    """Sends a record to the child of the first predicate that is true, otherwise to the default child, if any."""

    predicates: list[Function] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    default: str | None = None


@dataclass(eq=False)
class Process(Operator):
    """Runs a processor; ``factory`` makes one for each task. ``is_fixed_key`` processors cannot change the key."""

    factory: Function
    stores: tuple[str, ...]
    is_fixed_key: bool = False


@dataclass(eq=False)
class JoinWindow(Operator):
    """Forwards a record and keeps it in the window store of its side of a stream-stream join."""

    store: str


@dataclass(eq=False)
class StreamJoinSide(Operator):
    """One side of a stream-stream join; looks up the other side's window store.

    ``outer`` emits records of this side that found no partner when their window closes. ``joiner(key, left, right)``.
    """

    is_left: bool
    other_store: str
    outer_store: str | None
    outer: bool
    before_ms: int
    after_ms: int
    grace_ms: int
    joiner: Function
    shared: str  # name under which both sides share their times


@dataclass(eq=False)
class StreamTableJoin(Operator):
    """Joins each record with the current row of a table. ``joiner(key, value, row)``.

    With ``grace_ms`` records wait in ``buffer`` until that time has passed, and are joined with the row of their time.
    """

    table: Any  # the table's operator, which knows how to look up a row
    joiner: Function
    is_left: bool
    grace_ms: int | None = None
    buffer: str | None = None


@dataclass(eq=False)
class GlobalTableJoin(Operator):
    """Joins each record with a row of a global table; ``selector(key, value)`` returns the row's key."""

    store: str
    selector: Function
    joiner: Function
    is_left: bool


@dataclass(eq=False)
class Aggregate(Operator):
    """Count, reduce or aggregate of a grouped stream without windows. ``function(key, aggregate, value)``.

    ``initializer`` is None for a reduce: the first value is the aggregate.
    """

    store: str
    initializer: Function | None
    function: Function
    send_old: bool = False


@dataclass(eq=False)
class WindowAggregate(Operator):
    """Aggregate over tumbling, hopping or sliding windows; final results only if ``on_close``."""

    store: str
    windows: TimeWindows | SlidingWindows
    initializer: Function | None
    function: Function
    on_close: bool = False
    send_old: bool = False


@dataclass(eq=False)
class SessionAggregate(Operator):
    """Aggregate over session windows. ``merger(key, one, other)`` merges the aggregates of two sessions."""

    store: str
    windows: SessionWindows
    initializer: Function | None
    function: Function
    merger: Function
    on_close: bool = False
    send_old: bool = False
