"""From a writer's Avro schema to a reader's: the steps that the decoder takes, by Avro's rules of schema resolution.

Fields are found by name or alias, numbers are widened, fields that the writer lacks get their defaults, and those that
the reader lacks are skipped. Pure but for the columns that it makes; :func:`decoder_of` is what others call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from barnabas.wire.avro.arrays import Sink, UnionSink, sink_of
from barnabas.wire.avro.decoder import (
    ReadDefault,
    ReadItems,
    ReadMember,
    ReadRecord,
    ReadUnion,
    Refuse,
    SkipAgain,
    decode,
)
from barnabas.wire.avro.schema import INT, LOGICAL, LONG, Names, UnsupportedSchema, encode_default, logical, names_of
from barnabas.wire.avro.values import (
    REASONS,
    ReadBoolean,
    ReadBytes,
    ReadDecimal,
    ReadEnum,
    ReadInteger,
    ReadReal,
    Step,
)
from barnabas.wire.columns_headers import cells

# What each type of the writer may become in the reader's schema, beside itself.
PROMOTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_RECORDS: Final = ("record", "error")


class Decoder:
    """Reads data of one schema as another, any number of times: every call has columns of its own."""

    def __init__(
        self,
        writer: Any,
        reader: Any = None,
        *,
        named: Mapping[str, Any] | None = None,
        reader_named: Mapping[str, Any] | None = None,
    ) -> None:
        """``named`` and ``reader_named`` have types that a schema uses and another one defines."""
        self._writer = writer
        self._reader = writer if reader is None else reader
        self._writer_names = Names(writer, named)
        self._reader_names = self._writer_names if reader is None else Names(reader, reader_named)
        self.type = self._made()[1].type

    def decode(self, column: Any, *, head: int = 0) -> tuple[Any, list[tuple[int, str]]]:
        """An array with a row for each of a binary ``column``, and the malformed rows with the reason of each.

        ``head`` is how many bytes stand before the data. Malformed rows and nulls become nulls.
        """
        step, sink = self._made()
        malformed = decode(step, sink.column, cells(column), head)
        return sink.array(), [(row, REASONS[reason]) for row, reason in malformed]

    def _made(self) -> tuple[Step, Sink]:
        sink = sink_of(self._reader, self._reader_names)
        return _Resolver(self._writer_names, self._reader_names).read(self._writer, self._reader, sink), sink


class _Resolver:
    def __init__(self, writer_names: Names, reader_names: Names) -> None:
        self._writers, self._readers = writer_names, reader_names
        self._skipped: dict[str, SkipAgain] = {}

    def read(self, writer: Any, reader: Any, sink: Sink) -> Step:
        """The step that reads the writer's type into a column of the reader's."""
        written, wanted = self._writers.definition(writer), self._readers.definition(reader)
        if isinstance(written, list):
            return ReadUnion(tuple(self._branch(each, reader, sink) for each in written))
        if isinstance(wanted, list):
            return self._into_union(written, wanted, sink)
        kind = written["type"]
        if not _fits(written, wanted):
            raise UnsupportedSchema(f"the writer's {_shown(written)} cannot be read as the reader's {_shown(wanted)}")
        if kind in _RECORDS:
            return self._record(written, wanted, sink)
        if kind == "array":
            (item,) = sink.children
            return ReadItems(sink.column, self.read(written["items"], wanted["items"], item), width=item.width)
        if kind == "map":
            key, value = sink.children[0].children
            inner = self.read(written["values"], wanted["values"], value)
            return ReadItems(sink.column, inner, width=1 + value.width, key=ReadBytes(key.column, is_text=True))
        return _scalar(written, wanted, sink.column)

    def _branch(self, writer: Any, reader: Any, sink: Sink) -> Step:
        try:
            return self.read(writer, reader, sink)
        except UnsupportedSchema:  # an error only if such a value comes
            return Refuse()

    def _into_union(self, written: Any, branches: list[Any], sink: Sink) -> Step:
        if written["type"] == "null":
            if not any(self._readers.definition(each)["type"] == "null" for each in branches):
                raise UnsupportedSchema("the writer's null has no place in the reader's union")
            return Step(sink.column)
        index = _chosen(written, [self._readers.definition(each) for each in branches])
        if index is None:
            raise UnsupportedSchema(f"the writer's {_shown(written)} has no place in the reader's union")
        if not isinstance(sink, UnionSink):
            return self.read(written, branches[index], sink)
        member = sink.branches[index]
        assert member is not None, "a type that is not null has a member"
        others = tuple(each.column for each in sink.children if each is not member)
        return ReadMember(sink.column, self.read(written, branches[index], member), others)

    def _record(self, written: Any, wanted: Any, sink: Any) -> Step:
        fields = {str(field["name"]): field for field in wanted["fields"]}
        aliases = {str(alias): name for name, field in fields.items() for alias in field.get("aliases") or ()}
        steps: list[Step] = []
        missing = dict(fields)
        for field in written["fields"]:
            name = field["name"] if field["name"] in fields else aliases.get(field["name"])
            if name in missing:
                steps.append(self.read(field["type"], missing.pop(name)["type"], sink.fields[name]))
            else:
                steps.append(self._skip(field["type"]))
        for name, field in missing.items():
            if "default" not in field:
                raise UnsupportedSchema(f"the writer has no field {name}, and the reader's has no default")
            content = encode_default(field["type"], field["default"], self._readers)
            own = _Resolver(self._readers, self._readers)
            steps.append(ReadDefault(own.read(field["type"], field["type"], sink.fields[name]), content))
        return ReadRecord(sink.column, tuple(steps))

    def _skip(self, writer: Any) -> Step:
        """The step that checks a value of the writer's and keeps nothing."""
        written = self._writers.definition(writer)
        if isinstance(written, list):
            return ReadUnion(tuple(self._skip(each) for each in written))
        kind = written["type"]
        if kind in _RECORDS:
            name = str(written.get("name"))
            if name in self._skipped:
                return self._skipped[name]
            again = self._skipped[name] = SkipAgain()
            again.set(ReadRecord(None, tuple(self._skip(field["type"]) for field in written["fields"])))
            return again
        if kind == "array":
            return ReadItems(None, self._skip(written["items"]), width=1)
        if kind == "map":
            return ReadItems(None, self._skip(written["values"]), width=1, key=ReadBytes(None, is_text=True))
        return _scalar(written, written, None)


def _fits(written: Any, wanted: Any) -> bool:
    kind, other = written["type"], wanted["type"]
    if kind in _RECORDS:
        return other in _RECORDS
    if kind != other:
        return other in PROMOTIONS.get(kind, ()) and logical(wanted) != "decimal"
    if kind == "fixed" and written["size"] != wanted["size"]:
        return False
    return kind not in ("fixed", "enum") or _same_name(written, wanted)


def _same_name(written: Any, wanted: Any) -> bool:
    return str(written.get("name", "")).rpartition(".")[2] in names_of(wanted)


def _chosen(written: Any, branches: list[Any]) -> int | None:
    """The reader's branch for a type: the one of its name, else the first of its kind, else the first it may become."""
    fitting = [index for index, each in enumerate(branches) if _fits(written, each)]
    named = [index for index in fitting if _same_name(written, branches[index])] if "name" in written else []
    same = [index for index in fitting if branches[index]["type"] == written["type"]]
    same.sort(key=lambda index: logical(branches[index]) != logical(written))
    return next(iter([*named, *same, *fitting]), None)


def _scalar(written: Any, wanted: Any, column: Any) -> Step:
    kind = written["type"]
    if kind == "null":
        return Step(column)
    if kind == "boolean":
        return ReadBoolean(column)
    if kind in ("int", "long"):
        low, high, scale = INT if kind == "int" else LONG
        rule = LOGICAL.get((wanted["type"], logical(wanted)))
        if rule is not None:
            low, high, scale = max(low, rule.low), min(high, rule.high), rule.scale
        return ReadInteger(column, low, high, scale)
    if kind in ("float", "double"):
        return ReadReal(column, 4 if kind == "float" else 8)
    if kind == "enum":
        return ReadEnum(column, _symbols(written, wanted))
    size = written["size"] if kind == "fixed" else -1
    if logical(wanted) == "decimal" and column is not None:
        limit = 10 ** wanted["precision"] - 1
        return ReadDecimal(column, size, (-limit).to_bytes(16, "big", signed=True), limit.to_bytes(16, "big"))
    return ReadBytes(column, size=size, is_text="string" in (kind, wanted["type"]))


def _symbols(written: Any, wanted: Any) -> tuple[int, ...]:
    """For each symbol of the writer the index of the reader's: the same, its default, or -1."""
    known = {symbol: index for index, symbol in enumerate(wanted["symbols"])}
    default = known.get(wanted.get("default"), -1)
    return tuple(known.get(symbol, default) for symbol in written["symbols"])


def _shown(schema: Any) -> str:
    return f"{schema['type']} {schema['name']}" if "name" in schema else str(schema["type"])
