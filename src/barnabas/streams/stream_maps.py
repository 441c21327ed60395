"""Operators of a stream that look at one record at a time: filter, map, flat map, select a key, peek."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from barnabas.streams.policies import ErrorPolicy
from barnabas.streams.serdes import SerdeLike
from barnabas.streams.stream_core import StreamCore
from barnabas.streams.topology.operators import (
    Filter,
    FlatMap,
    FlatMapValues,
    Foreach,
    MapRecord,
    MapValues,
    Operator,
    Peek,
)

if TYPE_CHECKING:
    from barnabas.streams.stream import Stream

__all__ = ["StreamMaps"]

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")


class StreamMaps(StreamCore[K, V]):
    """The operators of :class:`Stream` that look at one record at a time."""

    @overload
    def filter(
        self, predicate: Callable[[V], object], *, name: str | None = ..., on_error: ErrorPolicy | None = ...
    ) -> Stream[K, V]: ...
    @overload
    def filter(
        self, predicate: Callable[[K, V], object], *, name: str | None = ..., on_error: ErrorPolicy | None = ...
    ) -> Stream[K, V]: ...
    def filter(
        self, predicate: Callable[..., object], *, name: str | None = None, on_error: ErrorPolicy | None = None
    ) -> Stream[K, V]:
        """Keep the records for which the predicate is true.

        predicate: function of the value, or of key and value.
        """
        return self._same(Filter(predicate), "KSTREAM-FILTER-", name, on_error)

    @overload
    def filter_not(
        self, predicate: Callable[[V], object], *, name: str | None = ..., on_error: ErrorPolicy | None = ...
    ) -> Stream[K, V]: ...
    @overload
    def filter_not(
        self, predicate: Callable[[K, V], object], *, name: str | None = ..., on_error: ErrorPolicy | None = ...
    ) -> Stream[K, V]: ...
    def filter_not(
        self, predicate: Callable[..., object], *, name: str | None = None, on_error: ErrorPolicy | None = None
    ) -> Stream[K, V]:
        """Keep the records for which the predicate is false.

        predicate: function of the value, or of key and value.
        """
        return self._same(Filter(predicate, negate=True), "KSTREAM-FILTER-", name, on_error)

    @overload
    def map(
        self,
        function: Callable[[V], tuple[K2, V2]],
        *,
        key: SerdeLike[K2] | None = ...,
        value: SerdeLike[V2] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K2, V2]: ...
    @overload
    def map(
        self,
        function: Callable[[K, V], tuple[K2, V2]],
        *,
        key: SerdeLike[K2] | None = ...,
        value: SerdeLike[V2] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K2, V2]: ...
    def map(
        self,
        function: Callable[..., tuple[K2, V2]],
        *,
        key: SerdeLike[K2] | None = None,
        value: SerdeLike[V2] | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Stream[K2, V2]:
        """Replace key and value of each record.

        function: function of the value, or of key and value, that returns the new key and value.
        key, value: types or serdes of the results.
        """
        node, node_name = self._child(MapRecord(function), "KSTREAM-MAP-", name, on_error)
        return self._stream(node, node_name, key, value, repartition_required=True)

    @overload
    def map_values(
        self,
        function: Callable[[V], V2],
        *,
        value: SerdeLike[V2] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, V2]: ...
    @overload
    def map_values(
        self,
        function: Callable[[K, V], V2],
        *,
        value: SerdeLike[V2] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, V2]: ...
    def map_values(
        self,
        function: Callable[..., V2],
        *,
        value: SerdeLike[V2] | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Stream[K, V2]:
        """Replace the value of each record; the key stays, so no repartitioning follows.

        function: function of the value, or of key and value.
        value: type or serde of the results.
        """
        return self._valued(MapValues(function), "KSTREAM-MAPVALUES-", value, name, on_error)

    @overload
    def flat_map(
        self,
        function: Callable[[V], Iterable[tuple[K2, V2]]],
        *,
        key: SerdeLike[K2] | None = ...,
        value: SerdeLike[V2] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K2, V2]: ...
    @overload
    def flat_map(
        self,
        function: Callable[[K, V], Iterable[tuple[K2, V2]]],
        *,
        key: SerdeLike[K2] | None = ...,
        value: SerdeLike[V2] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K2, V2]: ...
    def flat_map(
        self,
        function: Callable[..., Iterable[tuple[K2, V2]]],
        *,
        key: SerdeLike[K2] | None = None,
        value: SerdeLike[V2] | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Stream[K2, V2]:
        """Replace each record by any number of records.

        function: function of the value, or of key and value, that returns pairs of key and value.
        key, value: types or serdes of the results.
        """
        node, node_name = self._child(FlatMap(function), "KSTREAM-FLATMAP-", name, on_error)
        return self._stream(node, node_name, key, value, repartition_required=True)

    @overload
    def flat_map_values(
        self,
        function: Callable[[V], Iterable[V2]],
        *,
        value: SerdeLike[V2] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, V2]: ...
    @overload
    def flat_map_values(
        self,
        function: Callable[[K, V], Iterable[V2]],
        *,
        value: SerdeLike[V2] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, V2]: ...
    def flat_map_values(
        self,
        function: Callable[..., Iterable[V2]],
        *,
        value: SerdeLike[V2] | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Stream[K, V2]:
        """Replace each record by any number of records with the same key.

        function: function of the value, or of key and value, that returns the new values.
        value: type or serde of the results.
        """
        return self._valued(FlatMapValues(function), "KSTREAM-FLATMAPVALUES-", value, name, on_error)

    @overload
    def select_key(
        self,
        function: Callable[[V], K2],
        *,
        key: SerdeLike[K2] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K2, V]: ...
    @overload
    def select_key(
        self,
        function: Callable[[K, V], K2],
        *,
        key: SerdeLike[K2] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K2, V]: ...
    def select_key(
        self,
        function: Callable[..., K2],
        *,
        key: SerdeLike[K2] | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Stream[K2, V]:
        """Replace the key of each record.

        function: function of the value, or of key and value, that returns the new key.
        key: type or serde of the new keys.
        """
        node, node_name = self._child(MapRecord(function, keeps_value=True), "KSTREAM-KEY-SELECT-", name, on_error)
        return self._stream(node, node_name, key, self._value, repartition_required=True)

    @overload
    def peek(
        self, function: Callable[[V], object], *, name: str | None = ..., on_error: ErrorPolicy | None = ...
    ) -> Stream[K, V]: ...
    @overload
    def peek(
        self, function: Callable[[K, V], object], *, name: str | None = ..., on_error: ErrorPolicy | None = ...
    ) -> Stream[K, V]: ...
    def peek(
        self, function: Callable[..., object], *, name: str | None = None, on_error: ErrorPolicy | None = None
    ) -> Stream[K, V]:
        """Call a function for each record and forward the record unchanged.

        function: function of the value, or of key and value. It is called again if a batch is repeated.
        """
        return self._same(Peek(function), "KSTREAM-PEEK-", name, on_error)

    @overload
    def foreach(
        self, function: Callable[[V], object], *, name: str | None = ..., on_error: ErrorPolicy | None = ...
    ) -> None: ...
    @overload
    def foreach(
        self, function: Callable[[K, V], object], *, name: str | None = ..., on_error: ErrorPolicy | None = ...
    ) -> None: ...
    def foreach(
        self, function: Callable[..., object], *, name: str | None = None, on_error: ErrorPolicy | None = None
    ) -> None:
        """Call a function for each record; the stream ends here.

        function: function of the value, or of key and value. It is called again if a batch is repeated.
        """
        self._child(Foreach(function), "KSTREAM-FOREACH-", name, on_error)

    def _same(self, operator: Operator, prefix: str, name: str | None, on_error: ErrorPolicy | None) -> Stream[K, V]:
        node, node_name = self._child(operator, prefix, name, on_error)
        return self._stream(node, node_name, self._key, self._value, repartition_required=self._repartition_required)

    def _valued(
        self,
        operator: Operator,
        prefix: str,
        value: SerdeLike[Any] | None,
        name: str | None,
        on_error: ErrorPolicy | None,
    ) -> Stream[K, Any]:
        node, node_name = self._child(operator, prefix, name, on_error)
        return self._stream(node, node_name, self._key, value, repartition_required=self._repartition_required)
