"""A Protobuf file descriptor printed as the text of a file, which protoc reads back to the same descriptor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

_FIELD: Final = descriptor_pb2.FieldDescriptorProto
_TYPES: Final = {
    _FIELD.TYPE_DOUBLE: "double",
    _FIELD.TYPE_FLOAT: "float",
    _FIELD.TYPE_INT64: "int64",
    _FIELD.TYPE_UINT64: "uint64",
    _FIELD.TYPE_INT32: "int32",
    _FIELD.TYPE_FIXED64: "fixed64",
    _FIELD.TYPE_FIXED32: "fixed32",
    _FIELD.TYPE_BOOL: "bool",
    _FIELD.TYPE_STRING: "string",
    _FIELD.TYPE_BYTES: "bytes",
    _FIELD.TYPE_UINT32: "uint32",
    _FIELD.TYPE_SFIXED32: "sfixed32",
    _FIELD.TYPE_SFIXED64: "sfixed64",
    _FIELD.TYPE_SINT32: "sint32",
    _FIELD.TYPE_SINT64: "sint64",
}
MAX: Final = 536_870_911  # of a field number
ENUM_MAX: Final = 2**31 - 1


def printed(file: Any, files: Any = None) -> str:
    """``files`` are the file and its imports; with them options of their own are printed too."""
    return "\n".join(_Printer(file, files).lines()) + "\n"


class _Printer:
    def __init__(self, file: Any, files: Any) -> None:
        self._file = file
        self._syntax = file.syntax or "proto2"
        self._pool = None if files is None else _pool_of(files)

    def lines(self) -> Iterator[str]:
        file = self._file
        edition = descriptor_pb2.Edition.Name(file.edition).removeprefix("EDITION_") if self._is_edition else ""
        yield f'edition = "{edition}";' if self._is_edition else f'syntax = "{self._syntax}";'
        if file.package:
            yield f"package {file.package};"
        for index, name in enumerate(file.dependency):
            kind = "public " if index in file.public_dependency else "weak " if index in file.weak_dependency else ""
            yield f'import {kind}"{name}";'
        for option in self._options(file):
            yield f"option {option};"
        for each in file.message_type:
            yield from self._message(each, "")
        for each in file.enum_type:
            yield from self._enum(each, "")
        yield from self._extensions(file.extension, "")
        for each in file.service:
            yield from self._service(each)

    @property
    def _is_edition(self) -> bool:
        return self._syntax == "editions"

    def _message(self, message: Any, indent: str, head: str = "") -> Iterator[str]:
        yield f"{indent}{head or f'message {message.name}'} {{"
        inner = indent + "  "
        for option in self._options(message):
            yield f"{inner}option {option};"
        maps = {each.name: each for each in message.nested_type if each.options.map_entry}
        groups = _groups(message.field) | _groups(message.extension)
        yield from _reserved(message, inner, last=MAX, is_exclusive=True)
        for each in message.extension_range:
            yield f"{inner}extensions {_range(each.start, each.end - 1, MAX)};"
        oneofs: dict[int, list[Any]] = {}
        for field in message.field:
            if field.HasField("oneof_index") and not field.proto3_optional:
                oneofs.setdefault(field.oneof_index, []).append(field)
                if len(oneofs[field.oneof_index]) == 1:
                    yield from self._oneof(message, field.oneof_index, inner)
            else:
                yield from self._field(field, message, maps, inner)
        for each in message.nested_type:
            if each.name not in maps and each.name not in groups:
                yield from self._message(each, inner)
        for each in message.enum_type:
            yield from self._enum(each, inner)
        yield from self._extensions(message.extension, inner, message)
        yield f"{indent}}}"

    def _oneof(self, message: Any, index: int, indent: str) -> Iterator[str]:
        yield f"{indent}oneof {message.oneof_decl[index].name} {{"
        for option in self._options(message.oneof_decl[index]):
            yield f"{indent}  option {option};"
        for field in message.field:
            if field.HasField("oneof_index") and field.oneof_index == index:
                yield from self._field(field, message, {}, indent + "  ", is_member=True)
        yield f"{indent}}}"

    def _field(
        self, field: Any, holder: Any, maps: dict[str, Any], indent: str, *, is_member: bool = False
    ) -> Iterator[str]:
        entry = maps.get(field.type_name.rpartition(".")[2]) if field.type == _FIELD.TYPE_MESSAGE else None
        label = "" if is_member or entry is not None else self._label(field)
        kind = _type(field) if entry is None else f"map<{_type(entry.field[0])}, {_type(entry.field[1])}>"
        if field.type == _FIELD.TYPE_GROUP and holder is not None:
            group = next(each for each in holder.nested_type if each.name == field.type_name.rpartition(".")[2])
            yield from self._message(group, indent, f"{label}group {group.name} = {field.number}")
            return
        options = list(self._field_options(field))
        shown = f" [{', '.join(options)}]" if options else ""
        yield f"{indent}{label}{kind} {field.name} = {field.number}{shown};"

    def _label(self, field: Any) -> str:
        if field.label == _FIELD.LABEL_REPEATED:
            return "repeated "
        if field.label == _FIELD.LABEL_REQUIRED:
            return "required "
        is_explicit = field.proto3_optional or self._syntax == "proto2"
        return "optional " if is_explicit else ""

    def _field_options(self, field: Any) -> Iterator[str]:
        if field.HasField("default_value"):
            text = field.default_value
            if field.type == _FIELD.TYPE_STRING:
                text = f'"{_escaped(text)}"'
            elif field.type == _FIELD.TYPE_BYTES:
                text = f'"{text}"'  # escaped already
            yield f"default = {text}"
        if field.HasField("json_name") and field.json_name != _json_name(field.name):
            yield f'json_name = "{_escaped(field.json_name)}"'
        yield from self._options(field)

    def _enum(self, enum: Any, indent: str) -> Iterator[str]:
        yield f"{indent}enum {enum.name} {{"
        for option in self._options(enum):
            yield f"{indent}  option {option};"
        yield from _reserved(enum, indent + "  ", last=ENUM_MAX, is_exclusive=False)
        for each in enum.value:
            options = list(self._options(each))
            shown = f" [{', '.join(options)}]" if options else ""
            yield f"{indent}  {each.name} = {each.number}{shown};"
        yield f"{indent}}}"

    def _extensions(self, fields: Any, indent: str, holder: Any = None) -> Iterator[str]:
        for each in fields:
            yield f"{indent}extend {each.extendee} {{"
            yield from self._field(each, holder or self._file_as_holder(), {}, indent + "  ")
            yield f"{indent}}}"

    def _file_as_holder(self) -> Any:
        return descriptor_pb2.DescriptorProto(nested_type=self._file.message_type)

    def _service(self, service: Any) -> Iterator[str]:
        yield f"service {service.name} {{"
        for option in self._options(service):
            yield f"  option {option};"
        for each in service.method:
            asks = f"{'stream ' if each.client_streaming else ''}{each.input_type}"
            answers = f"{'stream ' if each.server_streaming else ''}{each.output_type}"
            options = list(self._options(each))
            body = "".join(f" option {option};" for option in options)
            yield f"  rpc {each.name} ({asks}) returns ({answers}){f' {{{body} }}' if options else ';'}"
        yield "}"

    def _options(self, described: Any) -> Iterator[str]:
        options = described.options
        if self._pool is not None and options.ByteSize():
            kind = self._pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
            options = message_factory.GetMessageClass(kind).FromString(options.SerializeToString())
        for field, value in options.ListFields():
            if field.name == "map_entry":
                continue
            name = f"({field.full_name})" if field.is_extension else field.name
            for each in value if field.is_repeated else [value]:
                yield f"{name} = {_option_value(field, each)}"


def _pool_of(files: Any) -> Any:
    pool = descriptor_pool.DescriptorPool()
    names = {each.name for each in files.file}
    if "google/protobuf/descriptor.proto" not in names:
        pool.AddSerializedFile(descriptor_pb2.DESCRIPTOR.serialized_pb)
    for each in files.file:  # imports come before the files that import them
        pool.AddSerializedFile(each.SerializeToString())
    return pool


def _option_value(field: Any, value: Any) -> str:
    if field.type == _FIELD.TYPE_MESSAGE:
        return f"{{ {text_format.MessageToString(value, as_one_line=True)} }}"
    if field.type == _FIELD.TYPE_ENUM:
        found = field.enum_type.values_by_number.get(value)
        return str(value) if found is None else str(found.name)
    if field.type == _FIELD.TYPE_BOOL:
        return "true" if value else "false"
    if field.type == _FIELD.TYPE_STRING:
        return f'"{_escaped(value)}"'
    if field.type == _FIELD.TYPE_BYTES:
        return '"' + "".join(f"\\x{each:02x}" for each in value) + '"'
    return str(value)


def _type(field: Any) -> str:
    return _TYPES.get(field.type) or str(field.type_name)


def _groups(fields: Any) -> set[str]:
    return {each.type_name.rpartition(".")[2] for each in fields if each.type == _FIELD.TYPE_GROUP}


def _reserved(described: Any, indent: str, *, last: int, is_exclusive: bool) -> Iterator[str]:
    ranges = [_range(each.start, each.end - is_exclusive, last) for each in described.reserved_range]
    if ranges:
        yield f"{indent}reserved {', '.join(ranges)};"
    names = [f'"{each}"' for each in described.reserved_name]
    if names:
        yield f"{indent}reserved {', '.join(names)};"


def _range(first: int, last: int, maximum: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {'max' if last >= maximum else last}"


def _escaped(text: str) -> str:
    return "".join(
        f"\\{each}" if each in '"\\' else each if each.isprintable() else "".join(f"\\x{b:02x}" for b in each.encode())
        for each in text
    )


def _json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each[:1].upper() + each[1:] for each in rest)
