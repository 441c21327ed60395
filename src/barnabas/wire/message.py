"""The base of all declared messages, and the four functions that turn them into bytes and back.

A message is declared once as a class whose fields say in which versions they exist; its codec for a version is
written and compiled when it is first used. Nested structs are nested classes; they have no versions of their own and
are compiled into the message around them. The messages themselves live in ``barnabas.wire.messages``, frames in
``barnabas.wire.frame``. Handlers, clients and the machines that keep records in logs call this module.
"""

from __future__ import annotations

import struct as layouts
from collections.abc import Callable, Generator
from typing import Any, ClassVar, NoReturn, Self, TypeVar, cast, dataclass_transform

from barnabas.model.errors import Malformed
from barnabas.wire.api import NEVER_FLEXIBLE, ApiKey
from barnabas.wire.decoder import STRUCTS_MAX, Decoder, SteppedDecoder, compile_decoder, compile_stepped_decoder
from barnabas.wire.encoder import Encoder, SteppedEncoder, compile_encoder, compile_stepped_encoder
from barnabas.wire.primitives import Buffer, Records, Unencodable
from barnabas.wire.schema import (
    Array,
    Field,
    Nested,
    array,
    binary,
    boolean,
    float64,
    int8,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
    uint16,
    uint32,
    uuid,
)
from barnabas.wire.source import Source

__all__ = [
    "Buffer",
    "Message",
    "Records",
    "Unencodable",
    "array",
    "binary",
    "boolean",
    "decode",
    "decode_from",
    "encode",
    "encode_parts",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "records",
    "string",
    "struct",
    "uint16",
    "uint32",
    "uuid",
]

_MISSING = object()
C = TypeVar("C")
M = TypeVar("M", bound="Message")


class _Codecs(dict[int, C]):
    """Version -> codec, compiled when a version is first asked for."""

    def __init__(self, cls: type[Message], compiler: Callable[..., C], error: type[Exception]) -> None:
        super().__init__()
        self._cls = cls
        self._compiler = compiler
        self._error = error

    def __missing__(self, version: int) -> C:
        cls = self._cls
        if version not in cls.versions:
            raise self._error(f"{cls.__name__} has no version {version}")
        codec = self[version] = self._compiler(cls, version, flexible=cls.is_flexible(version))
        return codec


@dataclass_transform(kw_only_default=True, eq_default=True)
class MessageType(type):
    """Collects the fields of a declaration, gives the class its slots and its struct references their targets."""

    def __new__(
        metaclass,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        api: ApiKey | None = None,
        versions: range = range(0),
        flexible: int = NEVER_FLEXIBLE,
    ) -> MessageType:
        fields = {key: value for key, value in namespace.items() if isinstance(value, Field)}
        for key, field in fields.items():
            # The number of an API is a fact of its messages and a field of the answer to ApiVersions.
            assert key == "api_key" or not any(hasattr(base, key) for base in bases), f"{key} is taken"
            del namespace[key]
            field.name = key
        namespace.setdefault("__slots__", tuple(fields))
        cls = super().__new__(metaclass, name, bases, namespace)
        message = cast("type[Message]", cls)
        message.fields = tuple(fields.values())
        if "api_key" not in fields:
            message.api_key = api
        message.versions = versions
        message.flexible_since = flexible
        message.decoders = _Codecs(message, compile_decoder, Malformed)
        message.encoders = _Codecs(message, compile_encoder, Unencodable)
        message.stepped_decoders = _Codecs(message, compile_stepped_decoder, Malformed)
        message.stepped_encoders = _Codecs(message, compile_stepped_encoder, Unencodable)
        if versions:
            _resolve(message, namespace)
        return cls

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **facts: Any) -> None:
        super().__init__(name, bases, namespace)


def _resolve(message: type[Message], namespace: dict[str, Any]) -> None:
    """Nested classes cannot see one another while they are made; now their references by name are settled."""
    structs = {name: value for name, value in namespace.items() if isinstance(value, MessageType)}
    for owner in (message, *structs.values()):
        for field in cast("type[Message]", owner).fields:
            kind = field.type.element if isinstance(field.type, Array) else field.type
            if isinstance(kind, Nested) and isinstance(kind.target, str):
                kind.target = structs[kind.target]


class Message(metaclass=MessageType):
    """A struct with versions. Equal if the same class holds equal values; mutable, hence not hashable."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    api_key: ClassVar[ApiKey | None]
    versions: ClassVar[range]
    flexible_since: ClassVar[int]
    fields: ClassVar[tuple[Field, ...]]
    decoders: ClassVar[dict[int, Decoder]]
    encoders: ClassVar[dict[int, Encoder]]
    stepped_decoders: ClassVar[dict[int, SteppedDecoder]]
    stepped_encoders: ClassVar[dict[int, SteppedEncoder]]
    _default: ClassVar[Any]

    def __init__(self, **values: Any) -> None:
        # The constructor is written when it is first needed: most messages of a process are never made.
        cls = _declared(self)
        cls.__init__ = _constructor(cls)  # type: ignore[method-assign]
        self.__init__(**values)  # type: ignore[misc]

    def __reduce__(self) -> Any:
        # A copy of a shared default is an instance like any other.
        return _restored, (_declared(self), {field.name: getattr(self, field.name) for field in self.fields})

    @classmethod
    def default(cls) -> Self:
        """The one default instance, shared by all that do not set a struct; an attempt to change it is refused."""
        default: Self | None = cls.__dict__.get("_default")
        if default is None:
            default = cls()
            members = {"__slots__": (), "__qualname__": cls.__qualname__, "__setattr__": _refuse_change}
            default.__class__ = cast("type[Self]", type.__new__(MessageType, cls.__name__, (cls,), members))
            cls._default = default
        return default

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        return version >= cls.flexible_since

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message) or other.fields is not self.fields:
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in self.fields)

    def __repr__(self) -> str:
        values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in self.fields)
        return f"{type(self).__qualname__}({values})"


def _declared(message: Message) -> type[Message]:
    """The class as it was declared, also for a shared default."""
    cls = type(message)
    return cls if "fields" in cls.__dict__ else cast("type[Message]", cls.__base__)


def _restored(cls: type[M], values: dict[str, Any]) -> M:
    return cls(**values)


def _constructor(cls: type[Message]) -> Any:
    source = Source(missing=_MISSING)
    parameters = []
    for field in cls.fields:
        default = "missing" if field.default == () else source.constant(field.default_value())
        parameters.append(f"{field.name}={default}")
    with source.block(f"def __init__(self, {'*, ' if parameters else ''}{', '.join(parameters)}):"):
        for field in cls.fields:
            value = f"[] if {field.name} is missing else {field.name}" if field.default == () else field.name
            source.line(f"self.{field.name} = {value}")
        source.line("return None")
    return source.function("__init__", title=f"{cls.__qualname__}.__init__")


def encode(message: Message, version: int) -> bytes:
    """The bytes of a message. Unencodable if it holds what the version cannot carry."""
    return bytes(encode_behind(message, version, bytearray(), None))


def encode_parts(message: Message, version: int, out: bytearray, parts: list[Any]) -> None:
    """Append to ``out``; records that are large or not in memory are moved to ``parts``, after what stood in ``out``.

    What is left in ``out`` at the end belongs behind the last part.
    """
    head = len(parts)
    tail = encode_behind(message, version, out, parts)
    if tail is not out:
        parts[head] = bytes(out)
        out[:] = tail


def encode_behind(message: Message, version: int, out: bytearray, parts: list[Any] | None) -> bytearray:
    """As ``encode_parts``, but ``out`` itself becomes the first part and what is handed out belongs behind the last."""
    try:
        return message.encoders[version](message, out, parts)
    except (layouts.error, AttributeError, TypeError, UnicodeEncodeError) as error:
        raise Unencodable(f"{type(message).__qualname__} v{version}: {error}") from error


def encode_in_steps(
    message: Message, version: int, out: bytearray, parts: list[Any] | None
) -> Generator[None, None, bytearray]:
    """As ``encode_behind``, but a generator that yields after every few structs."""
    try:
        return (yield from message.stepped_encoders[version](message, out, parts))
    except (layouts.error, AttributeError, TypeError, UnicodeEncodeError) as error:
        raise Unencodable(f"{type(message).__qualname__} v{version}: {error}") from error


def decode(cls: type[M], version: int, buffer: Buffer, position: int = 0, *, structs_max: int = STRUCTS_MAX) -> M:
    """The message that begins at the position; what follows it is left alone.

    Malformed if the bytes are wrong, ManyStructs if there are more than ``structs_max`` elements in its arrays.
    """
    try:
        view = buffer if type(buffer) is memoryview else memoryview(buffer)
        message: M = cls.decoders[version](view, position, structs_max)[0]
        return message
    except (layouts.error, IndexError, UnicodeDecodeError) as error:
        raise Malformed(f"{cls.__qualname__} v{version}: {error}") from error


def decode_in_steps(
    cls: type[M], version: int, buffer: Buffer, position: int, *, structs_max: int = STRUCTS_MAX
) -> Generator[None, None, M]:
    """As ``decode``, but a generator that yields after every few structs."""
    try:
        view = buffer if type(buffer) is memoryview else memoryview(buffer)
        message, _ = yield from cls.stepped_decoders[version](view, position, structs_max)
        return cast("M", message)
    except (layouts.error, IndexError, UnicodeDecodeError) as error:
        raise Malformed(f"{cls.__qualname__} v{version}: {error}") from error


def decode_from(cls: type[M], version: int, buffer: Buffer, position: int) -> tuple[M, int]:
    """The message and the position after it."""
    try:
        view = buffer if type(buffer) is memoryview else memoryview(buffer)
        return cls.decoders[version](view, position)
    except (layouts.error, IndexError, UnicodeDecodeError) as error:
        raise Malformed(f"{cls.__qualname__} v{version}: {error}") from error


def _refuse_change(self: Any, name: str, value: Any) -> NoReturn:
    raise AttributeError(f"a default of {type(self).__qualname__} is shared and cannot be changed: assign a new one")
