"""Writes the encoder of a message for one version: straight-line Python that appends to one bytearray.

Runs of fixed-width fields are written by one ``struct`` call together with the length or count that follows them, and
with the zero byte of a struct that has no tagged fields. Fields that the version does not have must be ignorable or at
their default. Only ``barnabas.wire.message`` calls this.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from barnabas.wire.primitives import (
    Packers,
    Unencodable,
    append_records,
    records_size,
    write_string_length,
    write_varint,
)
from barnabas.wire.schema import UUID, Array, Binary, Field, Fixed, Nested, RecordBytes, Text, Type
from barnabas.wire.source import Source

Encoder = Callable[[Any, bytearray, list[Any] | None], None]


def compile_encoder(cls: Any, version: int, *, flexible: bool) -> Encoder:
    writer = _EncoderWriter(version, flexible=flexible)
    return writer.compile(cls)


def raise_unknown(name: str, version: int) -> None:
    raise Unencodable(f"version {version} has no field {name}, and it is not at its default")


def join_uuids(values: list[bytes]) -> bytes:
    joined = b"".join(values)
    if len(joined) != len(values) * UUID.size_bytes:
        raise Unencodable(f"a uuid is {UUID.size_bytes} bytes long")
    return joined


class _EncoderWriter:
    def __init__(self, version: int, *, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.source = Source(
            append_records=append_records,
            records_size=records_size,
            write_varint=write_varint,
            write_string_length=write_string_length,
            raise_unknown=raise_unknown,
            join_uuids=join_uuids,
        )
        self.out = "out"
        self.codes = ""  # the pending run of fixed-width values ...
        self.values: list[str] = []  # ... and the expressions they come from

    def compile(self, cls: Any) -> Encoder:
        with self.source.block("def encode(o, out, parts):"):
            self.struct(cls, "o")
            self.flush()
            self.source.line("return None")
        encoder: Encoder = self.source.function("encode", title=f"encode {cls.__qualname__} v{self.version}")
        return encoder

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

    def is_default(self, field: Field, place: str) -> str:
        """An expression that is cheap when the default was never touched."""
        default = field.default_value()
        match field.type:
            case _ if default is None:
                return f"{place} is None"
            case Array():
                return f"{place} is not None and not {place}"
            case Nested(target=cls):
                shared = self.source.constant(default, "D")
                inner = " and ".join(f"({self.is_default(each, f'{place}.{each.name}')})" for each in cls.fields)
                return f"{place} is {shared} or ({inner})"
            case _:
                return f"{place} == {self.source.constant(default)}"

    def run(self, code: str, value: str) -> None:
        self.codes += code
        self.values.append(value)

    def flush(self) -> None:
        source, codes, values = self.source, self.codes, self.values
        if not codes:
            return
        if not values:
            source.line(f"{self.out} += {bytes(len(codes))!r}" if len(codes) > 1 else f"{self.out}.append(0)")
        elif codes == "B":
            source.line(f"{self.out}.append({values[0]})")
        else:
            pack = source.constant(Struct(">" + codes).pack, "P")
            source.line(f"{self.out} += {pack}({', '.join(values)})")
        self.codes, self.values = "", []

    def flush_with_length(self, length: str, writer: str = "write_varint") -> None:
        """The run and then a varint, in one go if the varint has a single byte."""
        codes, values = self.codes, list(self.values)
        with self.source.block(f"if {length} < 128:"):
            self.run("B", length)
            self.flush()
        self.codes, self.values = codes, values
        with self.source.block("else:"):
            self.flush()
            self.source.line(f"{writer}({self.out}, {length})")

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
                self.nested(cls, place, nullable)

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
        self.length(length, code, writer)
        source.line(f"{self.out} += {data}")

    def length(self, length: str, code: str, writer: str = "write_varint") -> None:
        if self.flexible:
            self.flush_with_length(length, writer)
        else:
            self.run(code, length)
            self.flush()

    def records(self, place: str, nullable: bool) -> None:
        assert self.out == "out", "records are never tagged"
        source, data, length = self.source, self.source.name("b"), self.source.name("n")
        source.line(f"{data} = {place}")
        measure = f"records_size({data})" + (" + 1" if self.flexible else "")
        if nullable:
            source.line(f"{length} = {0 if self.flexible else -1} if {data} is None else {measure}")
        else:
            source.line(f"{length} = {measure}")
        self.length(length, "i")
        with source.block(f"if {length} > {1 if self.flexible else 0}:"):
            source.line(f"append_records({data}, out, parts)")

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
        if isinstance(element, Fixed) and element is not UUID:
            self.integers(element, data, length)
            return
        self.length(length, "i")
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

    def integers(self, element: Fixed, data: str, length: str) -> None:
        """The run, the count and the elements in one call; its layout depends on how many there are."""
        source = self.source
        if not self.flexible:
            self.run("i", length)
            packers = source.constant(Packers(self.codes, element.code), "A")
            source.line(f"{self.out} += {packers}[len({data})]({', '.join(self.values)}, *{data})")
            self.codes, self.values = "", []
            return
        codes, values = self.codes, list(self.values)
        with source.block(f"if {length} < 128:"):
            packers = source.constant(Packers(codes + "B", element.code), "A")
            source.line(f"{self.out} += {packers}[len({data})]({', '.join([*values, length])}, *{data})")
        with source.block("else:"):
            self.flush()
            source.line(f"write_varint({self.out}, {length})")
            packers = source.constant(Packers("", element.code), "A")
            source.line(f"{self.out} += {packers}[len({data})](*{data})")
        self.codes, self.values = "", []

    def nested(self, cls: Any, place: str, nullable: bool) -> None:
        source, value = self.source, self.source.name("e")
        source.line(f"{value} = {place}")
        if not nullable:
            self.struct(cls, value)
            return
        self.flush()
        with source.block(f"if {value} is None:"):
            source.line(f"{self.out}.append(255)")
        with source.block("else:"):
            source.line(f"{self.out}.append(1)")
            self.struct(cls, value)
            self.flush()

    def tags(self, tagged: list[Field], value: str) -> None:
        if not tagged:
            self.codes += "x"
            return
        self.flush()
        source, outer = self.source, self.out
        flags = [(field, source.name("d")) for field in sorted(tagged, key=lambda field: field.tag or 0)]
        for field, flag in flags:
            source.line(f"{flag} = {self.is_default(field, f'{value}.{field.name}')}")
        with source.block(f"if {' and '.join(flag for _, flag in flags)}:"):
            source.line(f"{outer}.append(0)")
        with source.block("else:"):
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
