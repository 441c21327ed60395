"""Avro schemas of Python types: dataclasses, msgspec structs, typed dicts; and their objects as what fastavro takes.

Needs msgspec, which knows the types. Numbers become long and double; times, dates and UUIDs get their logical types; a
field with a default has it in the schema too, so that older data can be read.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, Generic

from barnabas.client.serdes.serde import Place, T, needed, undecodable, unencodable

# Types of values that fastavro takes as they are; neither a clock nor chance is used here.
_NATIVE: Final = (("datetime", "datetime"), ("datetime", "date"), ("datetime", "time"), ("uuid", "UUID"))
NATIVE: Final[tuple[type, ...]] = (bytes, *(getattr(import_module(module), name) for module, name in _NATIVE))
_PLAIN: Final = {
    "NoneType": "null",
    "BoolType": "boolean",
    "IntType": "long",
    "FloatType": "double",
    "StrType": "string",
    "BytesType": "bytes",
    "DateTimeType": {"type": "long", "logicalType": "timestamp-micros"},
    "DateType": {"type": "int", "logicalType": "date"},
    "TimeType": {"type": "long", "logicalType": "time-micros"},
    "UUIDType": {"type": "string", "logicalType": "uuid"},
}
_RECORDS: Final = ("StructType", "DataclassType", "TypedDictType", "NamedTupleType")
_LISTS: Final = ("ListType", "SetType", "FrozenSetType", "VarTupleType")


def schema_of(kind: type) -> dict[str, Any] | list[Any] | str:
    """The Avro schema of a type; TypeError for one that Avro cannot hold."""
    msgspec = needed("msgspec", "structs")
    needed("msgspec.inspect", "structs")
    said: dict[str, Any] | list[Any] | str = _Schemas(msgspec).of(msgspec.inspect.type_info(kind))
    return said


class _Schemas:
    def __init__(self, msgspec: Any) -> None:
        self._msgspec = msgspec
        self._named: set[str] = set()

    def of(self, info: Any) -> Any:
        name = type(info).__name__
        if name in _PLAIN:
            return _PLAIN[name]
        if name in _RECORDS:
            return self._record(info)
        if name in _LISTS:
            return {"type": "array", "items": self.of(info.item_type)}
        if name == "DictType" and type(info.key_type).__name__ == "StrType":
            return {"type": "map", "values": self.of(info.value_type)}
        if name == "UnionType":
            return [self.of(each) for each in info.types]
        if name == "EnumType":
            return self._enum(info.cls)
        if name == "LiteralType" and all(isinstance(each, str) for each in info.values):
            return "string"
        raise TypeError(f"{info} has no Avro type")

    def _record(self, info: Any) -> Any:
        name = info.cls.__name__
        if name in self._named:
            return name
        self._named.add(name)
        return {"type": "record", "name": name, "fields": [self._field(each) for each in info.fields]}

    def _field(self, field: Any) -> dict[str, Any]:
        said: dict[str, Any] = {"name": field.encode_name, "type": self.of(field.type)}
        missing = self._msgspec.NODEFAULT
        factory = getattr(field, "default_factory", missing)
        default = field.default if factory is missing else factory()
        if default is missing:
            return said
        plain = self._msgspec.to_builtins(default, builtin_types=NATIVE)
        if isinstance(plain, bytes):
            plain = plain.decode("latin-1")
        elif isinstance(plain, NATIVE):
            return said  # a time or a number of fixed places has no text that a default could be
        if isinstance(said["type"], list):  # the default of a union is of its first branch
            said["type"].sort(key=lambda each: (each == "null") is not (plain is None))
        return {**said, "default": plain}

    def _enum(self, kind: Any) -> Any:
        symbols = [each.value for each in kind]
        if not all(isinstance(each, str) and each.isidentifier() for each in symbols):
            raise TypeError(f"{kind.__name__}: the symbols of an Avro enum must be names")
        if kind.__name__ in self._named:
            return kind.__name__
        self._named.add(kind.__name__)
        return {"type": "enum", "name": kind.__name__, "symbols": symbols}


class TypedObjects(Generic[T]):
    """Objects of a type to what fastavro takes, and back."""

    def __init__(self, kind: type[T]) -> None:
        self._msgspec = needed("msgspec", "structs")
        self.kind = kind

    def plain(self, content: T, place: Place) -> Any:
        try:
            return self._msgspec.to_builtins(content, builtin_types=NATIVE)
        except (TypeError, ValueError, RecursionError) as error:
            raise unencodable(content, place, error) from error

    def object(self, plain: Any, data: bytes, place: Place) -> T:
        try:
            found: T = self._msgspec.convert(plain, self.kind)
        except self._msgspec.ValidationError as error:
            raise undecodable(data, place, error) from error
        return found
