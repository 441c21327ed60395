"""A reader's Avro schema as columns and as Arrow: which column holds its values, and the array that it becomes.

Types are those that Spark has too: enums and UUIDs are text, a fixed is binary, timestamps have microseconds (those of
nanoseconds excepted). A union of null and one type is that type; [int, long] is a long, [float, double] a double; any
other union is a struct of ``member0``, ``member1``, … of which one is set, as Spark's own Avro reader has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from barnabas.model.ids import uuid_text
from barnabas.wire.avro.columns import (
    COLUMN_BYTES_MAX,
    BytesColumn,
    Column,
    DecimalColumn,
    DoubleColumn,
    ListColumn,
    LongColumn,
    StructColumn,
)
from barnabas.wire.avro.schema import DEPTH_MAX, MEMBERS_MAX, Names, UnsupportedSchema, logical
from barnabas.wire.columns_headers import arrow

COLUMNS_MAX: Final = 10_000  # of one schema: a type that is used in many places has columns in each
WIDENED: Final = ({"int", "long"}, {"float", "double"})


class Sink:
    """A column, the Arrow type of its values, and how many columns it has with those below it."""

    def __init__(self, column: Any, kind: Any, finish: Callable[[Sink], Any], children: tuple[Sink, ...] = ()) -> None:
        self.column = column
        self.type = kind
        self.children = children
        self.width: int = 1 + sum(child.width for child in children)
        self._finish = finish

    def array(self) -> Any:
        """What has been read, as an Arrow array; the column is not written to after that."""
        return self._finish(self)


class RecordSink(Sink):
    """The fields by name, in the reader's order."""

    def __init__(self, fields: dict[str, Sink]) -> None:
        pa = arrow()
        column: Any = StructColumn()
        column.children = tuple(sink.column for sink in fields.values())
        kind = pa.struct([pa.field(name, sink.type) for name, sink in fields.items()])
        super().__init__(column, kind, _struct, tuple(fields.values()))
        self.fields = fields


class UnionSink(RecordSink):
    """A union of several types: ``branches`` has for each branch of the reader its member, or None for null."""

    def __init__(self, members: list[Sink | None]) -> None:
        real = [member for member in members if member is not None]
        super().__init__({f"member{index}": member for index, member in enumerate(real)})
        self.branches = members


def sink_of(schema: Any, names: Names) -> Sink:
    """Columns for the values of a reader's schema; :class:`UnsupportedSchema` if Arrow has no type for them."""
    return _Sinks(names).of(schema)


class _Sinks:
    def __init__(self, names: Names) -> None:
        self._names = names
        self._within: list[str] = []
        self._depth = 0
        self._columns = 0

    def of(self, schema: Any) -> Sink:
        found = self._names.definition(schema)
        self._depth += 1
        self._columns += 1
        if self._columns > COLUMNS_MAX:
            raise UnsupportedSchema(f"the schema has more than {COLUMNS_MAX} columns")
        if self._depth > DEPTH_MAX:
            raise UnsupportedSchema(f"the schema is nested more than {DEPTH_MAX} levels deep")
        try:
            if isinstance(found, list):
                return self._union(found)
            if found["type"] in ("record", "error"):
                return self._record(found)
            if found["type"] in ("array", "map"):
                return self._items(found)
            return _scalar(found)
        finally:
            self._depth -= 1

    def _record(self, found: dict[str, Any]) -> Sink:
        name, fields = str(found.get("name")), found["fields"]
        if name in self._within:
            raise UnsupportedSchema(f"the record {name} contains itself: Arrow and Spark have no type for that")
        if len(fields) > MEMBERS_MAX:
            raise UnsupportedSchema(f"the record {name} has {len(fields)} fields: at most {MEMBERS_MAX} are supported")
        self._within.append(name)
        sinks = {str(field["name"]): self.of(field["type"]) for field in fields}
        self._within.pop()
        return RecordSink(sinks)

    def _items(self, found: dict[str, Any]) -> Sink:
        pa = arrow()
        if found["type"] == "array":
            item = self.of(found["items"])
            return Sink(ListColumn(item.column), pa.list_(pa.field("element", item.type)), _list, (item,))
        key, value = _scalar({"type": "string"}), self.of(found["values"])
        pairs = RecordSink({"key": key, "value": value})
        return Sink(ListColumn(pairs.column), pa.map_(pa.string(), value.type), _map, (pairs,))

    def _union(self, branches: list[Any]) -> Sink:
        if len(branches) > MEMBERS_MAX:
            raise UnsupportedSchema(f"a union has {len(branches)} branches: at most {MEMBERS_MAX} are supported")
        found = [self._names.definition(branch) for branch in branches]
        kinds = {each["type"] for each in found if each["type"] != "null"}
        real = [branch for branch, each in zip(branches, found, strict=True) if each["type"] != "null"]
        if not real:
            return _scalar({"type": "null"})
        if len(real) == 1:
            return self.of(real[0])
        if kinds in WIDENED and not any(logical(each) for each in found):
            return _scalar({"type": "long" if "long" in kinds else "double"})
        return UnionSink([None if each["type"] == "null" else self.of(each) for each in found])


def _scalar(found: dict[str, Any]) -> Sink:
    pa = arrow()
    kind, name = found["type"], logical(found)
    if kind == "null":
        return Sink(Column(), pa.null(), lambda sink: pa.nulls(sink.column.rows))
    if name == "decimal":
        return Sink(DecimalColumn(), pa.decimal128(found["precision"], found.get("scale", 0)), _plain)
    if name == "uuid" and kind == "fixed":
        return Sink(BytesColumn(), pa.string(), _uuids)
    if kind in ("string", "bytes", "fixed"):
        return Sink(BytesColumn(), pa.string() if kind == "string" else pa.binary(), _plain)
    if kind == "enum":
        symbols = pa.array(found["symbols"], pa.string())
        return Sink(LongColumn(), pa.string(), lambda sink: _symbols(sink, symbols))
    if kind in ("float", "double"):
        return Sink(DoubleColumn(), pa.float32() if kind == "float" else pa.float64(), _real)
    types = {
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "date": pa.date32(),
        "time-millis": pa.time32("ms"),
        "time-micros": pa.time64("us"),
        "timestamp-millis": pa.timestamp("us", tz="UTC"),
        "timestamp-micros": pa.timestamp("us", tz="UTC"),
        "timestamp-nanos": pa.timestamp("ns", tz="UTC"),
        "local-timestamp-millis": pa.timestamp("us"),
        "local-timestamp-micros": pa.timestamp("us"),
        "local-timestamp-nanos": pa.timestamp("ns"),
    }
    if (name or kind) not in types:
        raise UnsupportedSchema(f"{kind!r} is not an Avro type")
    return Sink(LongColumn(), types[name or kind], _whole)


def _from_buffers(sink: Sink, kind: Any, children: tuple[Any, ...] = ()) -> Any:
    pa = arrow()
    column = sink.column
    buffers = [None if each is None else pa.py_buffer(each) for each in column.buffers()]
    return pa.Array.from_buffers(kind, column.rows, buffers, null_count=column.nulls, children=list(children) or None)


def _plain(sink: Sink) -> Any:
    return _from_buffers(sink, sink.type)


def _whole(sink: Sink) -> Any:
    pa = arrow()
    numbers = _from_buffers(sink, pa.int64())
    if pa.types.is_boolean(sink.type):
        return numbers.cast(sink.type)
    # The decoder has checked the range; dates and times are the same bits by another name.
    return (numbers.cast(pa.int32()) if sink.type.bit_width == 32 else numbers).view(sink.type)


def _real(sink: Sink) -> Any:
    numbers = _from_buffers(sink, arrow().float64())
    return numbers if sink.type == arrow().float64() else numbers.cast(sink.type, safe=False)


def _symbols(sink: Sink, symbols: Any) -> Any:
    indexes = _from_buffers(sink, arrow().int64())
    longest = max((len(each.as_py().encode()) for each in symbols), default=0)
    if len(indexes) * longest > COLUMN_BYTES_MAX:
        raise OverflowError("a column of enums has more than 2 GiB: decode fewer records at once")
    return symbols.take(indexes)


def _uuids(sink: Sink) -> Any:
    plain = _from_buffers(sink, arrow().binary())
    texts = [None if each is None else uuid_text(each) for each in plain.to_pylist()]
    return arrow().array(texts, arrow().string())


def _struct(sink: Sink) -> Any:
    return _from_buffers(sink, sink.type, tuple(child.array() for child in sink.children))


def _list(sink: Sink) -> Any:
    return _from_buffers(sink, sink.type, (sink.children[0].array(),))


def _map(sink: Sink) -> Any:
    pa = arrow()
    key, value = (child.array() for child in sink.children[0].children)
    pairs = pa.StructArray.from_arrays([key, value], fields=[sink.type.key_field, sink.type.item_field])
    return _from_buffers(sink, sink.type, (pairs,))
