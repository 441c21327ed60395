"""Protobuf as Arrow columns: messages of the registry's descriptor, read by the protobuf library.

The first message of the file is read, whichever version wrote it: Protobuf's own rules make old and new messages fit.
Enums are text, unsigned numbers have the next larger type, timestamps are timestamps, wrapped values are values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from barnabas.client.serdes.columns import ColumnDecoder, ColumnReader
from barnabas.client.serdes.columns_rows import RowDecoder
from barnabas.client.serdes.protobuf_files import EXTRA, REFUSED, ProtobufFiles
from barnabas.client.serdes.registered_protobuf import split_indexes
from barnabas.client.serdes.registry import Registry
from barnabas.client.serdes.serde import Place, needed
from barnabas.model.errors import BarnabasError
from barnabas.wire.avro.schema import UnsupportedSchema

Convert: TypeAlias = Callable[[Any], Any]
MAIN: Final = "schema.proto"
WRAPPERS: Final = "google.protobuf."
_PLACE: Final = Place("a column")


class ProtobufReader(ColumnReader):
    """``files`` are descriptors, those that others import first; ``message`` is a full name."""

    kind = "protobuf"

    def __init__(self, files: list[bytes], message: str) -> None:
        self._files, self._message = files, message
        self.type = _struct(self.message_class().DESCRIPTOR, ())[0]

    @classmethod
    async def of(cls, registry: Registry, schema_id: int) -> ProtobufReader:
        files = ProtobufFiles(registry)
        file = await files.add(schema_id, MAIN)
        if not file.message_type:
            raise UnsupportedSchema(f"schema {schema_id} has no message")
        return cls(files.serialized, f"{file.package}.{file.message_type[0].name}".lstrip("."))

    async def decoder(self, registry: Registry, schema_id: int) -> ColumnDecoder:
        kind = self.message_class()
        found, convert = _struct(kind.DESCRIPTOR, ())
        error = needed("google.protobuf.message", EXTRA).DecodeError

        def read(data: bytes) -> Any:
            return convert(kind.FromString(split_indexes(data, _PLACE)[1]))

        return RowDecoder(found, read, (error, BarnabasError, *REFUSED))

    def message_class(self) -> Any:
        """The class of the messages, made of the descriptors."""
        pool = needed("google.protobuf.descriptor_pool", EXTRA).DescriptorPool()
        for file in self._files:
            pool.AddSerializedFile(file)
        return needed("google.protobuf.message_factory", EXTRA).GetMessageClass(
            pool.FindMessageTypeByName(self._message)
        )


def _struct(descriptor: Any, within: tuple[str, ...]) -> tuple[Any, Convert]:
    import pyarrow as pa

    if descriptor.full_name in within:
        raise UnsupportedSchema(f"the message {descriptor.full_name} contains itself: Arrow has no type for that")
    within = (*within, descriptor.full_name)
    fields = {field.name: _field(field, within) for field in descriptor.fields}
    tests = {field.name: field.has_presence for field in descriptor.fields}

    def convert(message: Any) -> Any:
        return {
            name: each(getattr(message, name)) if not tests[name] or message.HasField(name) else None
            for name, (_, each) in fields.items()
        }

    return pa.struct([pa.field(name, kind) for name, (kind, _) in fields.items()]), convert


def _field(field: Any, within: tuple[str, ...]) -> tuple[Any, Convert]:
    import pyarrow as pa

    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        key_kind, key = _single(message.fields_by_name["key"], within)
        kind, value = _single(message.fields_by_name["value"], within)
        return pa.map_(key_kind, kind), lambda pairs: [(key(name), value(pairs[name])) for name in pairs]
    kind, convert = _single(field, within)
    if field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED:
        return pa.list_(pa.field("element", kind)), lambda items: [convert(each) for each in items]
    return kind, convert


def _single(field: Any, within: tuple[str, ...]) -> tuple[Any, Convert]:
    import pyarrow as pa

    message = field.message_type
    if message is not None:
        if message.full_name == "google.protobuf.Timestamp":
            return pa.timestamp("us", tz="UTC"), lambda each: each.ToMicroseconds()
        if message.full_name == "google.protobuf.Duration":
            return pa.duration("us"), lambda each: each.ToMicroseconds()
        if message.full_name.startswith(WRAPPERS) and message.full_name.endswith("Value") and len(message.fields) == 1:
            kind, convert = _single(message.fields[0], within)
            return kind, lambda each: convert(each.value)
        return _struct(message, within)
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return pa.string(), lambda number: names.get(number, str(number))
    kinds = {
        field.CPPTYPE_INT32: pa.int32(),
        field.CPPTYPE_INT64: pa.int64(),
        field.CPPTYPE_UINT32: pa.int64(),
        field.CPPTYPE_UINT64: pa.decimal128(20, 0),
        field.CPPTYPE_DOUBLE: pa.float64(),
        field.CPPTYPE_FLOAT: pa.float32(),
        field.CPPTYPE_BOOL: pa.bool_(),
    }
    if field.cpp_type == field.CPPTYPE_STRING:
        return (pa.binary() if field.type == field.TYPE_BYTES else pa.string()), _same
    return kinds[field.cpp_type], _same


def _same(value: Any) -> Any:
    return value
