"""Writes the encoder of a message for one version: straight-line Python that appends to one bytearray.

Runs of fixed-width fields are written by one ``struct`` call together with the length or count that follows them, and
with the zero byte of a struct that has no tagged fields. Fields that the version does not have must be ignorable or at
their default. Only ``barnabas.wire.message`` calls this.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from struct import Struct
from typing import Any

from barnabas.wire.decoder import STRUCTS_PER_STEP
from barnabas.wire.primitives import (
    BUFFERS,
    Packers,
    Unencodable,
    append_records,
    write_string_length,
    write_varint,
)
from barnabas.wire.schema import UUID, Array, Binary, Field, Fixed, Nested, RecordBytes, Text, Type
from barnabas.wire.source import Source

Encoder = Callable[[Any, bytearray, list[Any] | None], bytearray]  # hands out the buffer it ended in
SteppedEncoder = Callable[[Any, bytearray, list[Any] | None], Generator[None, None, bytearray]]


def compile_encoder(cls: Any, version: int, *, flexible: bool) -> Encoder:
    encoder: Encoder = _EncoderWriter(version, flexible=flexible).compile(cls)
    return encoder


def compile_stepped_encoder(cls: Any, version: int, *, flexible: bool) -> SteppedEncoder:
    """An encoder that is a generator: it yields after every ``STRUCTS_PER_STEP`` structs."""
    encoder: SteppedEncoder = _EncoderWriter(version, flexible=flexible, is_stepped=True).compile(cls)
    return encoder


def raise_unknown(name: str, version: int) -> None:
    raise Unencodable(f"version {version} has no field {name}, and it is not at its default")


def join_uuids(values: list[bytes]) -> bytes:
    joined = b"".join(values)
    if len(joined) != len(values) * UUID.size_bytes:
        raise Unencodable(f"a uuid is {UUID.size_bytes} bytes long")
    return joined


@dataclass(frozen=True, slots=True)
class _Item:
    """A piece of a run: a value, a zero byte (no value), a varint (with its writer) or integers (with their count)."""

    code: str
    value: str
    writer: str = ""
    count: str = ""


class _EncoderWriter:
    def __init__(self, version: int, *, flexible: bool, is_stepped: bool = False) -> None:
        self.version = version
        self.flexible = flexible
        self.is_stepped = is_stepped
        self.source = Source(
            append_records=append_records,
            BUFFERS=BUFFERS,
            write_varint=write_varint,
            write_string_length=write_string_length,
            raise_unknown=raise_unknown,
            join_uuids=join_uuids,
        )
        self.out = "out"
        self.items: list[_Item] = []  # the pending run

    def compile(self, cls: Any) -> Any:
        with self.source.block("def encode(o, out, parts):"):
            if self.is_stepped:
                self.source.line("steps = 0")
                self.source.line("yield")  # also where a message has no array: the function is a generator
            self.struct(cls, "o")
            self.flush()
            self.source.line("return out")
        return self.source.function("encode", title=f"encode {cls.__qualname__} v{self.version}")

    def struct(self, cls: Any, value: str) -> None:
        """The caller flushes: what follows may join the last run."""
        tagged = []
        for field in cls.fields:
            place = f"{value}.{field.name}"
            if field.is_tagged(self.version):
                tagged.append(field)
            elif field.is_in(self.version):
                self.field(field, place)
            elif not field.ignorable:
                with self.source.block(f"if not ({self.is_default(field, place)}):"):
                    self.source.line(f"raise_unknown({field.name!r}, {self.version})")
        if self.flexible:
            self.tags(tagged, value)

    def is_untouched(self, field: Field, place: str) -> str:
        """A cheap expression that is true for the default a constructor put there; false says nothing."""
        default = field.default_value()
        if isinstance(field.type, Nested) and default is not None:
            return f"{place} is {self.source.constant(default, 'D')}"
        return self.is_default(field, place)

    def is_default(self, field: Field, place: str) -> str:
        default = field.default_value()
        match field.type:
            case _ if default is None:
                return f"{place} is None"
            case Array():
                return f"{place} is not None and not {place}"
            case Nested(target=cls):
                shared = self.source.constant(default, "D")
                inner = " and ".join(f"({self.is_default(each, f'{place}.{each.name}')})" for each in cls.fields)
                inner = f"{place} is not None and {inner}" if field.nullable else inner
                return f"{place} is {shared} or {inner}"
            case _:
                return f"{place} == {self.source.constant(default)}"

    def run(self, code: str, value: str) -> None:
        self.items.append(_Item(code, value))

    def length(self, code: str, length: str, writer: str = "write_varint") -> None:
        """A length or count; in compact form it has one byte unless the value is long."""
        self.items.append(_Item("B", length, writer=writer) if self.flexible else _Item(code, length))

    def flush(self) -> None:
        """Write the pending run with one call, or piece by piece if one of its varints needs more than a byte."""
        items, self.items = self.items, []
        if not items:
            return
        varints = [item.value for item in items if item.writer]
        if not varints:
            self.write(items)
            return
        with self.source.block(f"if {' | '.join(varints)} < 128:"):
            self.write(items)
        if items[-1].writer == "write_varint" and len(varints) == 1:
            self.write_longer(items[:-1], items[-1].value)
        with self.source.block("else:"):
            pending: list[_Item] = []
            for item in items:
                if item.writer:
                    if pending:
                        self.write(pending)
                    self.source.line(f"{item.writer}({self.out}, {item.value})")
                    pending = []
                else:
                    pending.append(item)
            if pending:
                self.write(pending)

    def write_longer(self, items: list[_Item], varint: str) -> None:
        """A run that ends in a varint of two or three bytes, such as the size of record batches, is one call too."""
        head, last = f"{varint} & 127 | 128, ", f"{varint} >> 7"
        with self.source.block(f"elif {varint} < {1 << 14}:"):
            self.write([*items, _Item("BB", head + last)])
        with self.source.block(f"elif {varint} < {1 << 21}:"):
            self.write([*items, _Item("BBB", f"{head}{last} & 127 | 128, {varint} >> 14")])

    def write(self, items: list[_Item]) -> None:
        source = self.source
        codes = "".join(item.code for item in items if not item.count)
        values = ", ".join(item.value for item in items if item.value)
        arrays = [item for item in items if item.count]
        if arrays:
            key = ", ".join(item.count for item in arrays)
            source.line(f"{self.out} += {source.constant(self.packers(items), 'A')}[{key}]({values})")
        elif not values:
            source.line(f"{self.out} += {bytes(len(codes))!r}")
        elif codes == "B":
            source.line(f"{self.out}.append({values})")
        else:
            pack = source.constant(Struct(">" + codes).pack, "P")
            source.line(f"{self.out} += {pack}({values})")

    def packers(self, items: list[_Item]) -> Packers:
        pieces, codes = [""], []
        for item in items:
            if item.count:
                pieces.append("")
                codes.append(item.code)
            else:
                pieces[-1] += item.code
        return Packers(pieces, codes, compact=self.flexible)

    def field(self, field: Field, place: str) -> None:
        nullable = field.is_nullable(self.version)
        match field.type:
            case Fixed() as fixed:
                self.run(fixed.code, place)
            case Text():
                self.sized(place, nullable, code="h", content=".encode()", writer="write_string_length")
            case Binary():
                self.sized(place, nullable, code="i", content="", writer="write_varint")
            case RecordBytes():
                self.records(place, nullable)
            case Array(element=element):
                self.array(element, place, nullable)
            case Nested(target=cls):
                self.nested(cls, place, nullable, is_tagged=field.is_tagged(self.version))

    def sized(self, place: str, nullable: bool, *, code: str, content: str, writer: str) -> None:
        source, data, length = self.source, self.source.name("b"), self.source.name("n")
        measure = f"len({data}) + 1" if self.flexible else f"len({data})"
        if nullable:
            source.line(f"{data} = {place}")
            with source.block(f"if {data} is None:"):
                source.line(f"{data}, {length} = b'', {0 if self.flexible else -1}")
            with source.block("else:"):
                if content:
                    source.line(f"{data} = {data}{content}")
                source.line(f"{length} = {measure}")
        else:
            source.line(f"{data} = {place}{content}")
            source.line(f"{length} = {measure}")
        self.length(code, length, writer)
        self.flush()
        source.line(f"{self.out} += {data}")

    def records(self, place: str, nullable: bool) -> None:
        assert self.out == "out", "records are never tagged"
        source, data, length = self.source, self.source.name("b"), self.source.name("n")
        source.line(f"{data} = {place}")
        measure = f"(len({data}) if type({data}) in BUFFERS else {data}.size_bytes)" + (" + 1" if self.flexible else "")
        if nullable:
            source.line(f"{length} = {0 if self.flexible else -1} if {data} is None else {measure}")
        else:
            source.line(f"{length} = {measure}")
        self.length("i", length)
        self.flush()
        with source.block(f"if {length} > {1 if self.flexible else 0}:"):
            source.line(f"out = append_records({data}, out, parts)")

    def array(self, element: Type, place: str, nullable: bool) -> None:
        source, data, length = self.source, self.source.name("l"), self.source.name("n")
        measure = f"len({data}) + 1" if self.flexible else f"len({data})"
        source.line(f"{data} = {place}")
        if nullable:
            with source.block(f"if {data} is None:"):
                source.line(f"{data}, {length} = (), {0 if self.flexible else -1}")
            with source.block("else:"):
                source.line(f"{length} = {measure}")
        else:
            source.line(f"{length} = {measure}")
        self.length("i", length)
        if isinstance(element, Fixed) and element is not UUID:
            self.items.append(_Item(element.code, f"*{data}", count=length))
            return
        self.flush()
        if element is UUID:
            source.line(f"{self.out} += join_uuids({data})")
            return
        value = source.name("e")
        with source.block(f"for {value} in {data}:"):
            match element:
                case Nested(target=cls):
                    self.struct(cls, value)
                case _:
                    self.field(Field(element, None), value)
            self.flush()
            if self.is_stepped:
                source.line("steps += 1")
                with source.block(f"if not steps & {STRUCTS_PER_STEP - 1}:"):
                    source.line("yield")

    def nested(self, cls: Any, place: str, nullable: bool, *, is_tagged: bool) -> None:
        source, value = self.source, self.source.name("e")
        source.line(f"{value} = {place}")
        if not nullable:
            self.struct(cls, value)
            return
        self.flush()
        with source.block(f"if {value} is None:"):
            source.line(f"{self.out}.append({0 if is_tagged else 255})")
        with source.block("else:"):
            source.line(f"{self.out}.append(1)")
            self.struct(cls, value)
            self.flush()

    def tags(self, tagged: list[Field], value: str) -> None:
        if not tagged:
            self.items.append(_Item("x", ""))
            return
        self.flush()
        source, outer = self.source, self.out
        flags = [(field, source.name("d")) for field in sorted(tagged, key=lambda field: field.tag or 0)]
        untouched = [f"({self.is_untouched(field, f'{value}.{field.name}')})" for field, _ in flags]
        with source.block(f"if {' and '.join(untouched)}:"):
            source.line(f"{outer}.append(0)")
        with source.block("else:"):
            for field, flag in flags:
                source.line(f"{flag} = {self.is_default(field, f'{value}.{field.name}')}")
            source.line(f"{outer}.append({len(flags)} - {' - '.join(flag for _, flag in flags)})")
            for field, flag in flags:
                self.out = source.name("out")
                with source.block(f"if not {flag}:"):
                    source.line(f"{self.out} = bytearray()")
                    self.field(field, f"{value}.{field.name}")
                    self.flush()
                    source.line(f"write_varint({outer}, {field.tag})")
                    source.line(f"write_varint({outer}, len({self.out}))")
                    source.line(f"{outer} += {self.out}")
                self.out = outer
