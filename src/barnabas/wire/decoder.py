"""Writes the decoder of a message for one version: straight-line Python, nested structs as loops.

Runs of fixed-width fields are read by one ``struct`` call together with the byte that follows them (the length of a
string, the count of an array, the number of tagged fields). A slice beyond the end is short but harmless, because the
position is then beyond the end too and the next read notices: the number of tagged fields at the latest, or a last
check where there are none. So strings need no check of their own, and a count is only checked if it is not small.
Only ``barnabas.wire.message`` calls this.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from barnabas.model.errors import Malformed
from barnabas.model.ids import Uuid
from barnabas.wire.primitives import Unpackers, read_string_length, read_tag, read_tag_count, read_varint, skip_tags
from barnabas.wire.schema import UUID, Array, Binary, Field, Fixed, Nested, RecordBytes, Text, Type
from barnabas.wire.source import Source

Decoder = Callable[..., tuple[Any, int]]  # (view, position, structs_max)
SteppedDecoder = Callable[[memoryview, int, int], Generator[None, None, tuple[Any, int]]]

STRUCTS_MAX: Final = 1_000_000  # in one message: more than the metadata of any cluster we know of
NUMBERS_MAX: Final = 250_000  # integers in one array, which are decoded by one call: about 3 ms
STRUCTS_PER_STEP: Final = 128  # structs that a stepped codec handles between two yields; a power of two


def compile_decoder(cls: Any, version: int, *, flexible: bool) -> Decoder:
    decoder: Decoder = _DecoderWriter(version, flexible=flexible).compile(cls)
    return decoder


def compile_stepped_decoder(cls: Any, version: int, *, flexible: bool) -> SteppedDecoder:
    """A decoder that is a generator: it yields after every ``STRUCTS_PER_STEP`` structs."""
    decoder: SteppedDecoder = _DecoderWriter(version, flexible=flexible, is_stepped=True).compile(cls)
    return decoder


def size_bytes_min(cls: Any, version: int, *, flexible: bool) -> int:
    """The fewest bytes that a struct can take, by which the count of an array is bounded."""
    fields = [field for field in cls.fields if field.is_in(version) and not field.is_tagged(version)]
    return sum(_type_bytes_min(field, version, flexible=flexible) for field in fields) + flexible


def _type_bytes_min(field: Field, version: int, *, flexible: bool) -> int:
    match field.type:
        case Fixed(size_bytes=size_bytes):
            return size_bytes
        case Text():
            return 1 if flexible else 2
        case Nested(target=target):
            return 1 if field.is_nullable(version) else size_bytes_min(target, version, flexible=flexible)
        case _:
            return 1 if flexible else 4


def _element_bytes_min(element: Type, version: int, *, flexible: bool) -> int:
    return _type_bytes_min(Field(element, None), version, flexible=flexible)


def raise_null(name: str) -> None:
    raise Malformed(f"{name} must not be null")


def raise_short(name: str) -> None:
    raise Malformed(f"{name} ends too early")


def raise_count(name: str, count: int) -> None:
    raise Malformed(f"{name} cannot hold {count} elements in the bytes that are left")


def raise_many(name: str, structs_max: int) -> None:
    raise ManyStructs(f"{name} takes the message beyond {structs_max} structs")


def raise_numbers(name: str, count: int) -> None:
    raise Malformed(f"{name} has {count} numbers, and an array may have {NUMBERS_MAX}")


def raise_tag(name: str) -> None:
    raise Malformed(f"the tagged field {name} does not have the size it says")


class ManyStructs(Malformed):
    """The message has more structs than the caller allows; a stepped decoder may be allowed more."""


@dataclass(frozen=True, slots=True)
class _Lead:
    """Bytes or elements whose length has just been read; the run behind them is read with them."""

    name: str
    length: str
    target: str
    code: str
    size_bytes: int


class _DecoderWriter:
    def __init__(self, version: int, *, flexible: bool, is_stepped: bool = False) -> None:
        self.version = version
        self.flexible = flexible
        self.is_stepped = is_stepped
        self.source = Source(
            new=object.__new__,
            new_bytes=bytes.__new__,
            Uuid=Uuid,
            read_varint=read_varint,
            read_string_length=read_string_length,
            read_tag=read_tag,
            read_tag_count=read_tag_count,
            skip_tags=skip_tags,
            raise_null=raise_null,
            raise_short=raise_short,
            raise_count=raise_count,
            raise_many=raise_many,
            raise_numbers=raise_numbers,
            raise_tag=raise_tag,
        )
        self.lead: _Lead | None = None  # what the pending run begins with, if its length is only known at run time
        self.codes = ""  # the fixed-width values of the pending run ...
        self.targets: list[str] = []  # ... and where they go
        self.afterwards: list[str] = []  # what is to be done with them once they are read

    def compile(self, cls: Any) -> Any:
        source = self.source
        with source.block(f"def decode(view, p, structs_max={STRUCTS_MAX}):"):
            source.line("made = steps = 0")
            if self.is_stepped:
                source.line("yield")  # also where a message has no array: the function is a generator
            self.struct(cls, "o")
            if not self.flexible:
                with source.block("if p > len(view):"):
                    source.line(f"raise_short({cls.__qualname__!r})")
            source.line("return o, p")
        return source.function("decode", title=f"decode {cls.__qualname__} v{self.version}")

    def struct(self, cls: Any, target: str) -> None:
        source, version = self.source, self.version
        source.line(f"{target} = new({source.constant(cls, cls.__name__)})")
        tagged = []
        for field in cls.fields:
            place = f"{target}.{field.name}"
            if field.is_tagged(version):
                tagged.append(field)
            if not field.is_in(version) or field.is_tagged(version):
                source.line(f"{place} = {self.default(field)}")
                continue
            self.field(field, place)
        if self.flexible:
            self.tags(tagged, target)
        self.flush()

    def default(self, field: Field) -> str:
        default = field.default_value()
        if default == ():
            return "[]"
        if default is None or (isinstance(default, bool | int | str | bytes) and type(default) is not Uuid):
            return repr(default)
        return self.source.constant(default)

    def run(self, code: str, target: str) -> None:
        self.codes += code
        self.targets.append(target)

    def flush(self) -> None:
        source, lead, targets = self.source, self.lead, self.targets
        if lead:
            self.flush_lead(lead)
        elif self.codes == "B":
            source.line(f"{targets[0]} = view[p]")
            source.line("p += 1")
        elif targets:
            layout = Struct(">" + self.codes)
            unpack = source.constant(layout.unpack_from, "u")
            source.line(f"{', '.join(targets)}, = {unpack}(view, p)")
            source.line(f"p += {layout.size}")
        for action in self.afterwards:
            source.line(action)
        self.lead, self.codes, self.targets, self.afterwards = None, "", [], []

    def flush_lead(self, lead: _Lead) -> None:
        source = self.source
        unpackers = Unpackers(lead.name, lead.code, self.codes, compact=self.flexible)
        targets = ", ".join([lead.target, *self.targets])
        source.line(f"{targets}, = {source.constant(unpackers, 'U')}[{lead.length}](view, p)")
        behind = Struct(">" + self.codes).size - (lead.size_bytes if self.flexible else 0)
        scaled = lead.length if lead.size_bytes == 1 else f"{lead.length} * {lead.size_bytes}"
        source.line(f"p += {scaled} + {behind}" if behind else f"p += {scaled}")

    def field(self, field: Field, place: str) -> None:
        nullable = field.is_nullable(self.version)
        match field.type:
            case Fixed() as fixed:
                self.fixed(fixed, place)
            case Text() if not nullable:
                self.text(field, place)
            case Text():
                self.sized(field, place, nullable, code="h", value="view[p:q].tobytes().decode()")
            case Binary():
                self.sized(field, place, nullable, code="i", value="view[p:q].tobytes()")
            case RecordBytes():
                self.sized(field, place, nullable, code="i", value="view[p:q]")
            case Array(element=element):
                self.array(element, field, place, nullable)
            case Nested(target=cls):
                self.nested(cls, place, nullable, is_tagged=field.is_tagged(self.version))

    def fixed(self, fixed: Fixed, place: str) -> None:
        if fixed is UUID:
            raw = self.source.name("r")
            self.run(fixed.code, raw)
            self.afterwards.append(f"{place} = new_bytes(Uuid, {raw})")
        else:
            self.run(fixed.code, place)

    def length(self, code: str, *, reader: str = "read_varint", often_long: bool = False) -> str:
        """Read a length or count and name it; in compact form it is one more than it says, and zero is null."""
        source, length = self.source, self.source.name("n")
        self.run("B" if self.flexible else code, length)
        self.flush()
        if self.flexible:
            with source.block(f"if {length} > 127:"):
                if often_long:
                    with source.block("if view[p] < 128:"):
                        source.line(f"{length} += (view[p] - 1) * 128")
                        source.line("p += 1")
                    with source.block("else:"):
                        source.line(f"{length}, p = {reader}(view, p - 1)")
                else:
                    source.line(f"{length}, p = {reader}(view, p - 1)")
        return length

    def text(self, field: Field, place: str) -> None:
        """A string that cannot be null: its bytes are read together with what follows them."""
        length, raw = self.length("h", reader="read_string_length"), self.source.name("r")
        self.lead = _Lead(field.name, length, raw, "s", 1)
        self.afterwards.append(f"{place} = {raw}.decode()")

    def sized(self, field: Field, place: str, nullable: bool, *, code: str, value: str) -> None:
        """A length and that many bytes, which may be many or none: a slice."""
        source = self.source
        if isinstance(field.type, Text):
            length = self.length(code, reader="read_string_length")
        else:
            length = self.length(code, often_long=True)
        with source.block(f"if {length}:" if self.flexible else f"if {length} >= 0:"):
            source.line(f"q = p + {length} - 1" if self.flexible else f"q = p + {length}")
            source.line(f"{place} = {value}")
            source.line("p = q")
        with source.block("else:"):
            source.line(f"{place} = None" if nullable else f"raise_null({field.name!r})")

    def array(self, element: Type, field: Field, place: str, nullable: bool) -> None:
        source, length = self.source, self.length("i")
        if isinstance(element, Fixed) and element is not UUID and not nullable:
            # The layout itself refuses more elements than there are bytes, before it makes any of them.
            with source.block(f"if {length} > {NUMBERS_MAX}:"):
                source.line(f"raise_numbers({field.name!r}, {length})")
            self.lead = _Lead(field.name, length, f"*{place}", element.code, element.size_bytes)
            return
        minimum = _element_bytes_min(element, self.version, flexible=self.flexible)
        assert minimum, f"elements of {field.name} may be empty, so nothing bounds their count"
        # Up to 127 elements are not worth a check: the first one that is missing ends the loop.
        with source.block(f"if {length} > 127 and ({length} - {int(self.flexible)}) * {minimum} > len(view) - p:"):
            source.line(f"raise_count({field.name!r}, {length})")
        # Small elements cost far more memory and time than their bytes, so a message may not hold any number.
        source.line(f"made += {length}")
        with source.block("if made > structs_max:"):
            source.line(f"raise_many({field.name!r}, structs_max)")
        with source.block(f"if {length}:" if self.flexible else f"if {length} >= 0:"):
            self.elements(element, field, place, f"1, {length}" if self.flexible else length)
        with source.block("else:"):
            source.line(f"{place} = None" if nullable else f"raise_null({field.name!r})")

    def elements(self, element: Type, field: Field, place: str, span: str) -> None:
        source = self.source
        values, value = source.name("l"), source.name("e")
        source.line(f"{values} = {place} = []")
        with source.block(f"for _ in range({span}):"):
            match element:
                case Nested(target=cls):
                    self.struct(cls, value)
                case _:
                    self.field(Field(element, None, name=field.name), value)
                    self.flush()
            source.line(f"{values}.append({value})")
            if self.is_stepped:
                source.line("steps += 1")
                with source.block(f"if not steps & {STRUCTS_PER_STEP - 1}:"):
                    source.line("yield")

    def nested(self, cls: Any, place: str, nullable: bool, *, is_tagged: bool) -> None:
        source, value = self.source, self.source.name("e")
        if not nullable:
            self.flush()
            self.struct(cls, value)
            source.line(f"{place} = {value}")
            return
        presence = source.name("n")
        self.run("b", presence)
        self.flush()
        # A byte says whether it is there: with a tag 1 or 0, without one 1 or -1.
        with source.block(f"if {presence} {'>' if is_tagged else '>='} 0:"):
            self.struct(cls, value)
            source.line(f"{place} = {value}")
        with source.block("else:"):
            source.line(f"{place} = None")

    def tags(self, tagged: list[Field], target: str) -> None:
        source, count = self.source, self.source.name("t")
        self.run("B", count)
        self.flush()
        with source.block(f"if {count}:"):
            if not tagged:
                source.line("p = skip_tags(view, p - 1)")
                return
            source.line(f"{count}, p = read_tag_count(view, p - 1)")
            tag, end = source.name("tag"), source.name("end")
            with source.block(f"for _ in range({count}):"):
                source.line(f"{tag}, p, {end} = read_tag(view, p)")
                for field in tagged:
                    with source.block(f"if {tag} == {field.tag}:"):
                        self.field(field, f"{target}.{field.name}")
                        self.flush()
                        with source.block(f"if p != {end}:"):
                            source.line(f"raise_tag({field.name!r})")
                source.line(f"p = {end}")
