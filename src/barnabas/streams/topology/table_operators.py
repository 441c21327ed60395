"""Operators of tables as pure data. They also decide which tables are materialized and which forward old values.

A table forwards changes: the new value, the old value if a later node needs it, and whether it is the latest by time.
``enable_old_values`` asks a table for old values; ``require_rows`` makes a table able to look up its rows, which
materializes a source table. Both follow Kafka's rules, because the stores that exist are part of the topology.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from barnabas.streams.serdes import SerdeLike
from barnabas.streams.topology.operators import Aggregate, Operator, SessionAggregate, WindowAggregate
from barnabas.streams.topology.stores import StoreSpec

Function: TypeAlias = Callable[..., Any]
StreamAggregate: TypeAlias = Aggregate | WindowAggregate | SessionAggregate
JoinKind: TypeAlias = Literal["inner", "left", "right", "outer"]


class TableOperator(Operator):
    """Base class of the operators that forward changes of a table."""

    send_old: bool

    def enable_old_values(self, *, force: bool) -> bool:
        """Make the table forward old values; returns False if that would need a store and ``force`` is not set."""
        raise NotImplementedError

    def require_rows(self) -> tuple[str, ...]:
        """Make rows of the table available to others; returns the names of the stores that are read for it."""
        raise NotImplementedError


@dataclass(eq=False)
class TableSource(TableOperator):
    """Turns records into changes of a table, and keeps the table if it is materialized."""

    store: StoreSpec
    is_materialized: bool
    send_old: bool = False

    def enable_old_values(self, *, force: bool) -> bool:
        if not force and not self.is_materialized:
            return False
        self.send_old = self.is_materialized = True
        return True

    def require_rows(self) -> tuple[str, ...]:
        self.is_materialized = True
        return (self.store.name,)


@dataclass(eq=False)
class AggregateTable(TableOperator):
    """The table that an aggregation of a stream yields: a view of the aggregation's operator."""

    aggregate: StreamAggregate

    @property
    def send_old(self) -> bool:  # type: ignore[override]
        return self.aggregate.send_old

    def enable_old_values(self, *, force: bool) -> bool:
        self.aggregate.send_old = True
        return True

    def require_rows(self) -> tuple[str, ...]:
        return (self.aggregate.store,)


@dataclass(eq=False)
class CogroupTable(TableOperator):
    """Merges the aggregations of a cogroup, which share one store."""

    aggregates: list[StreamAggregate]
    send_old: bool = False

    def enable_old_values(self, *, force: bool) -> bool:
        for aggregate in self.aggregates:
            aggregate.send_old = True
        return True

    def require_rows(self) -> tuple[str, ...]:
        return (self.aggregates[0].store,)


@dataclass(eq=False)
class _Derived(TableOperator):
    """A table that is computed from one parent, and kept only if it has a store."""

    parent: TableOperator
    function: Function
    store: StoreSpec | None
    send_old: bool = False

    def enable_old_values(self, *, force: bool) -> bool:
        if self.store is not None:
            self.send_old = True
            return True
        if self.parent.enable_old_values(force=force):
            self.send_old = True
        return self.send_old

    def require_rows(self) -> tuple[str, ...]:
        return (self.store.name,) if self.store is not None else self.parent.require_rows()


@dataclass(eq=False)
class TableFilter(_Derived):
    """Keeps rows for which ``function(key, value)`` is true, or false if ``negate`` is set."""

    negate: bool = False
    is_versioned: bool = False

    def __post_init__(self) -> None:
        # A parent that is kept anyway can send old values, which saves tombstones for rows that were never forwarded.
        self.send_old = self.parent.enable_old_values(force=False)


@dataclass(eq=False)
class TableMapValues(_Derived):
    """Replaces the values of rows: ``function(key, value)``."""


@dataclass(eq=False)
class TableJoinSide(TableOperator):
    """One side of a table-table join; ``joiner(key, this, other)`` is already turned round for the other side."""

    this: TableOperator
    other: TableOperator
    kind: JoinKind
    joiner: Function
    is_versioned: bool = False  # records of the versioned table that are not the latest are dropped
    send_old: bool = False

    def enable_old_values(self, *, force: bool) -> bool:
        self.this.enable_old_values(force=True)
        self.other.enable_old_values(force=True)
        self.send_old = True
        return True

    def require_rows(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.this.require_rows(), *self.other.require_rows())))


@dataclass(eq=False)
class TableJoinMerge(TableOperator):
    """The table that a table-table join yields."""

    left: TableJoinSide
    right: TableJoinSide
    store: StoreSpec | None
    send_old: bool = False

    def enable_old_values(self, *, force: bool) -> bool:
        self.left.enable_old_values(force=True)
        self.right.enable_old_values(force=True)
        self.send_old = True
        return True

    def require_rows(self) -> tuple[str, ...]:
        if self.store is not None:
            return (self.store.name,)
        return tuple(dict.fromkeys((*self.left.require_rows(), *self.right.require_rows())))


@dataclass(eq=False)
class ToStream(Operator):
    """Forwards the new values of a table as a stream."""


@dataclass(eq=False)
class Suppress(TableOperator):
    """Holds back changes in a buffer until a time limit, or until the window closes (``is_final``).

    A full buffer emits its oldest entries if ``emit_early`` is set, otherwise the task fails.
    """

    parent: TableOperator
    store: str
    wait_ms: int
    is_final: bool
    max_records: int | None
    max_bytes: int | None
    emit_early: bool
    send_old: bool = False

    def enable_old_values(self, *, force: bool) -> bool:
        return self.parent.enable_old_values(force=force)

    def require_rows(self) -> tuple[str, ...]:
        return (self.store, *self.parent.require_rows())


@dataclass(eq=False)
class GroupTable(Operator):
    """Maps rows to the key and value of their group: ``function(key, value)`` returns both."""

    function: Function
    is_versioned: bool = False


@dataclass(eq=False)
class TableAggregate(TableOperator):
    """Aggregate of a grouped table. ``adder(key, aggregate, value)``, ``subtractor(key, aggregate, value)``.

    ``initializer`` is None for a reduce.
    """

    store: StoreSpec
    initializer: Function | None
    adder: Function
    subtractor: Function
    send_old: bool = False

    def enable_old_values(self, *, force: bool) -> bool:
        self.send_old = True
        return True

    def require_rows(self) -> tuple[str, ...]:
        return (self.store.name,)


@dataclass(eq=False)
class SubscriptionSend(Operator):
    """Left side of a foreign-key join: tells the right side which row each left row needs."""

    extractor: Function
    left_value: SerdeLike[Any] | None
    is_left: bool
    is_versioned: bool = False


@dataclass(eq=False)
class SubscriptionReceive(Operator):
    """Right side of a foreign-key join: keeps who needs which row."""

    store: str


@dataclass(eq=False)
class SubscriptionJoin(Operator):
    """Right side of a foreign-key join: answers a new subscription with the row."""

    right: TableOperator


@dataclass(eq=False)
class ForeignTableJoin(Operator):
    """Right side of a foreign-key join: answers all subscriptions of a row that changed."""

    store: str
    is_versioned: bool = False


@dataclass(eq=False)
class ResponseJoin(Operator):
    """Left side of a foreign-key join: joins the answer with the left row if that has not changed since."""

    left: TableOperator
    left_value: SerdeLike[Any] | None
    joiner: Function
    is_left: bool
