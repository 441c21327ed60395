"""What a field of a message is: its type, the versions that have it, and what stands in for it elsewhere.

A declaration calls the functions below (``index: int = int32()``); the metaclass in ``barnabas.wire.message`` collects
what they return, and ``barnabas.wire.decoder`` and ``barnabas.wire.encoder`` turn it into code. Their declared result
is the Python type of the value, so that type checkers see plain typed constructors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack, cast, overload

from barnabas.model.ids import ZERO_UUID, Uuid

VERSION_MAX: Final = 2**15 - 1
SHARED_DEFAULT: Final = object()  # stands for the default instance of a struct, whose class may not exist yet

T = TypeVar("T")


# Tagged fields from this number on are not Kafka's: its clients skip what they do not know (KIP-482).
TAGS_OF_OURS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value of fixed width, with its letter in the language of ``struct``."""

    name: str
    code: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Text:
    name: str = "string"


@dataclass(frozen=True, slots=True)
class Binary:
    name: str = "bytes"


@dataclass(frozen=True, slots=True)
class RecordBytes:
    name: str = "records"


@dataclass(slots=True)
class Nested:
    """Another struct; given by name where the class is not yet visible, and resolved by the message around it."""

    target: Any

    @property
    def name(self) -> str:
        return self.target if isinstance(self.target, str) else str(self.target.__name__)


@dataclass(frozen=True, slots=True)
class Array:
    element: Type

    @property
    def name(self) -> str:
        return "[]" + self.element.name


Type = Fixed | Text | Binary | RecordBytes | Nested | Array

BOOL: Final = Fixed("bool", "?", 1)
INT8: Final = Fixed("int8", "b", 1)
INT16: Final = Fixed("int16", "h", 2)
INT32: Final = Fixed("int32", "i", 4)
INT64: Final = Fixed("int64", "q", 8)
UINT16: Final = Fixed("uint16", "H", 2)
UINT32: Final = Fixed("uint32", "I", 4)
FLOAT64: Final = Fixed("float64", "d", 8)
UUID: Final = Fixed("uuid", "16s", 16)


@dataclass(slots=True)
class Field:
    type: Type
    default: Any
    since: int = 0
    until: int = VERSION_MAX
    nullable: bool = False
    nullable_since: int = 0
    nullable_until: int = VERSION_MAX
    ignorable: bool = False
    tag: int | None = None
    tagged_since: int = 0
    name: str = ""

    def is_in(self, version: int) -> bool:
        return self.since <= version <= self.until

    def is_nullable(self, version: int) -> bool:
        return self.nullable and self.nullable_since <= version <= self.nullable_until

    def is_tagged(self, version: int) -> bool:
        return self.tag is not None and version >= self.tagged_since and self.is_in(version)

    def default_value(self) -> Any:
        """The default itself; an empty tuple stands for a list that every instance gets for itself."""
        if self.default is SHARED_DEFAULT:
            assert isinstance(self.type, Nested)
            return self.type.target.default()
        return self.default


class Options(TypedDict, total=False):
    """What every field may say: versions ``since`` to ``until``, and its tag from ``tagged_since`` on.

    Where the version does not have it, an ``ignorable`` field is left out silently; any other must be at its default.
    """

    since: int
    until: int
    ignorable: bool
    tag: int
    tagged_since: int


class Nullability(Options, total=False):
    """Null is allowed from ``nullable_since`` to ``nullable_until``, by default wherever the field exists."""

    nullable_since: int
    nullable_until: int


def boolean(*, default: bool = False, **options: Unpack[Options]) -> bool:
    return cast(bool, Field(BOOL, default, **options))


def int8(*, default: int = 0, **options: Unpack[Options]) -> int:
    return cast(int, Field(INT8, default, **options))


def int16(*, default: int = 0, **options: Unpack[Options]) -> int:
    return cast(int, Field(INT16, default, **options))


def int32(*, default: int = 0, **options: Unpack[Options]) -> int:
    return cast(int, Field(INT32, default, **options))


def int64(*, default: int = 0, **options: Unpack[Options]) -> int:
    return cast(int, Field(INT64, default, **options))


def uint16(*, default: int = 0, **options: Unpack[Options]) -> int:
    return cast(int, Field(UINT16, default, **options))


def uint32(*, default: int = 0, **options: Unpack[Options]) -> int:
    return cast(int, Field(UINT32, default, **options))


def float64(*, default: float = 0.0, **options: Unpack[Options]) -> float:
    return cast(float, Field(FLOAT64, default, **options))


def uuid(*, default: Uuid = ZERO_UUID, **options: Unpack[Options]) -> Uuid:
    return cast(Uuid, Field(UUID, default, **options))


@overload
def string(*, nullable: Literal[False] = ..., default: str = ..., **options: Unpack[Options]) -> str: ...


@overload
def string(*, nullable: Literal[True], default: str | None = ..., **options: Unpack[Nullability]) -> str | None: ...


def string(*, nullable: bool = False, default: str | None = "", **options: Unpack[Nullability]) -> Any:
    return Field(Text(), default, nullable=nullable, **options)


@overload
def binary(*, nullable: Literal[False] = ..., default: bytes = ..., **options: Unpack[Options]) -> bytes: ...


@overload
def binary(*, nullable: Literal[True], default: bytes | None = ..., **options: Unpack[Nullability]) -> bytes | None: ...


def binary(*, nullable: bool = False, default: bytes | None = b"", **options: Unpack[Nullability]) -> Any:
    return Field(Binary(), default, nullable=nullable, **options)


def records(*, nullable: bool = False, **options: Unpack[Nullability]) -> Any:
    """Record batches: a view into what was received, or a buffer or a slice of a file to be sent. Null unless set."""
    return Field(RecordBytes(), None, nullable=nullable, **options)


@overload
def array(element: Callable[..., T], *, nullable: Literal[False] = ..., **options: Unpack[Options]) -> list[T]: ...


@overload
def array(
    element: Callable[..., T], *, nullable: Literal[True], default: None = ..., **options: Unpack[Nullability]
) -> list[T] | None: ...


@overload
def array(element: str, *, nullable: Literal[False] = ..., **options: Unpack[Options]) -> list[Any]: ...


@overload
def array(
    element: str, *, nullable: Literal[True], default: None = ..., **options: Unpack[Nullability]
) -> list[Any] | None: ...


def array(
    element: Callable[..., Any] | str,
    *,
    nullable: bool = False,
    default: Any = (),
    **options: Unpack[Nullability],
) -> Any:
    """A list of structs (their class, or its name where it is not visible) or of plain values (``array(int32)``)."""
    if isinstance(element, str | type):
        return Field(Array(Nested(element)), default, nullable=nullable, **options)
    inner = cast(Field, element())
    return Field(Array(inner.type), default, nullable=nullable, **options)


@overload
def struct(target: type[T], *, nullable: Literal[False] = ..., **options: Unpack[Options]) -> T: ...


@overload
def struct(
    target: type[T], *, nullable: Literal[True], is_null_by_default: bool = ..., **options: Unpack[Nullability]
) -> T | None: ...


@overload
def struct(
    target: str, *, nullable: bool = ..., is_null_by_default: bool = ..., **options: Unpack[Nullability]
) -> Any: ...


def struct(
    target: type[T] | str, *, nullable: bool = False, is_null_by_default: bool = True, **options: Unpack[Nullability]
) -> Any:
    """Another struct. A nullable one is null by default, any other a shared default that cannot be changed.

    Where Kafka's own code reads an absent tag as an empty struct, a null one has to be written down.
    """
    is_null = nullable and is_null_by_default
    return Field(Nested(target), None if is_null else SHARED_DEFAULT, nullable=nullable, **options)
