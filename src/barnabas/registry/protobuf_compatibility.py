"""Whether data written with one Protobuf file (the original) can be read with another (the update).

Descriptors are compared, not texts: fields by number, messages by name. Differences have the names that clients of
Confluent's registry know; those after which old data is still read are not reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from google.protobuf import descriptor_pb2

from barnabas.registry.incompatibility import Incompatibility
from barnabas.registry.protobuf_schema import ProtobufSchema

_FIELD: Final = descriptor_pb2.FieldDescriptorProto
# Types with one representation on the wire; enumerations are like int32.
_GROUPS: Final = {
    **dict.fromkeys(
        (_FIELD.TYPE_INT32, _FIELD.TYPE_INT64, _FIELD.TYPE_UINT32, _FIELD.TYPE_UINT64, _FIELD.TYPE_BOOL), "number"
    ),
    _FIELD.TYPE_ENUM: "number",
    **dict.fromkeys((_FIELD.TYPE_SINT32, _FIELD.TYPE_SINT64), "signed number"),
    **dict.fromkeys((_FIELD.TYPE_STRING, _FIELD.TYPE_BYTES), "string or bytes"),
    **dict.fromkeys((_FIELD.TYPE_FIXED32, _FIELD.TYPE_SFIXED32), "fixed32"),
    **dict.fromkeys((_FIELD.TYPE_FIXED64, _FIELD.TYPE_SFIXED64), "fixed64"),
    _FIELD.TYPE_FLOAT: "float",
    _FIELD.TYPE_DOUBLE: "double",
}


class _Message(NamedTuple):
    descriptor: Any
    local_name: str  # without the package
    syntax: str


class _Types:
    """The messages of a file and its imports by full name."""

    def __init__(self, schema: ProtobufSchema) -> None:
        self.by_name: dict[str, _Message] = {}
        for file in schema.files.file:
            prefix = f".{file.package}" if file.package else ""
            for each in file.message_type:
                self._add(each, prefix, each.name, file.syntax or "proto2")

    def _add(self, message: Any, scope: str, local_name: str, syntax: str) -> None:
        name = f"{scope}.{message.name}"
        self.by_name[name] = _Message(message, local_name, syntax)
        for each in message.nested_type:
            self._add(each, name, f"{local_name}.{each.name}", syntax)


def incompatibilities(update: ProtobufSchema, original: ProtobufSchema) -> list[Incompatibility]:
    """Empty if data of ``original`` can be read with ``update``."""
    return list(dict.fromkeys(_Comparison(original, update).files()))


class _Comparison:
    def __init__(self, original: ProtobufSchema, update: ProtobufSchema) -> None:
        self._files = original.file, update.file
        self._before, self._after = _Types(original), _Types(update)
        self._seen: dict[tuple[str, str], bool] = {}  # pairs of messages; False for incompatible ones

    def files(self) -> Iterator[Incompatibility]:
        original, update = self._files
        if original.package != update.package:
            packages = f"the package {original.package!r} became {update.package!r}"
            yield Incompatibility("PACKAGE_CHANGED", "#/", packages)
        scopes = tuple(f".{each.package}" if each.package else "" for each in self._files)
        yield from self._nested(original.message_type, update.message_type, scopes, "#/")

    def _nested(self, original: Any, update: Any, scopes: tuple[str, ...], path: str) -> Iterator[Incompatibility]:
        after = {each.name: each for each in update}
        for message in original:
            if message.options.map_entry:
                continue
            place = f"{path}{message.name}/"
            if message.name not in after:
                yield Incompatibility("MESSAGE_REMOVED", place, f"the message {message.name} was removed")
                continue
            yield from self._messages(f"{scopes[0]}.{message.name}", f"{scopes[1]}.{message.name}", place)

    def _messages(self, before_name: str, after_name: str, path: str) -> Iterator[Incompatibility]:
        pair = before_name, after_name
        if pair in self._seen:
            return
        self._seen[pair] = True
        before, after = self._before.by_name[before_name], self._after.by_name[after_name]
        found = [*self._fields(before, after, path)]
        found += self._nested(before.descriptor.nested_type, after.descriptor.nested_type, pair, path)
        self._seen[pair] = not found
        yield from found

    def _fields(self, before: _Message, after: _Message, path: str) -> Iterator[Incompatibility]:
        original = {each.number: each for each in before.descriptor.field}
        update = {each.number: each for each in after.descriptor.field}
        yield from _moved_into_oneofs(before, after, path)
        deleted = _deleted_oneofs(before, after)
        for number in sorted(original.keys() | update.keys()):
            old, new = original.get(number), update.get(number)
            place = f"{path}{number}"
            if new is None:
                assert old is not None
                oneof = _oneof(before, old)
                if oneof is not None and oneof not in deleted:
                    yield Incompatibility("ONEOF_FIELD_REMOVED", place, f"{old.name} was removed from {oneof}")
                elif old.label == _FIELD.LABEL_REQUIRED:
                    yield Incompatibility("REQUIRED_FIELD_REMOVED", place, f"the required {old.name} was removed")
            elif old is None:
                if new.label == _FIELD.LABEL_REQUIRED:
                    yield Incompatibility("REQUIRED_FIELD_ADDED", place, f"the required {new.name} was added")
            else:
                labels = _label(before, old), _label(after, new)
                yield from self._types(before, after, old, new, labels, place)

    def _types(
        self, before: _Message, after: _Message, old: Any, new: Any, labels: tuple[Any, Any], place: str
    ) -> Iterator[Incompatibility]:
        kinds = self._kind(old, self._before), self._kind(new, self._after)
        if kinds[0] != kinds[1]:
            yield Incompatibility("FIELD_KIND_CHANGED", place, f"{new.name} was a {kinds[0]} and is a {kinds[1]}")
        elif kinds[0] == "map":
            entries = self._before.by_name[old.type_name], self._after.by_name[new.type_name]
            for key in (0, 1):
                parts = entries[0].descriptor.field[key], entries[1].descriptor.field[key]
                yield from self._types(*entries, *parts, (None, None), place)
        elif kinds[0] == "message":
            yield from self._named(old, new, place)
        elif _GROUPS[old.type] != _GROUPS[new.type]:
            wires = f"{new.name} was a {_GROUPS[old.type]} and is a {_GROUPS[new.type]}"
            yield Incompatibility("FIELD_SCALAR_KIND_CHANGED", place, wires)
        elif None not in labels and labels[0] != labels[1] and _GROUPS[old.type] != "string or bytes":
            yield Incompatibility(
                "FIELD_NUMERIC_LABEL_CHANGED", place, f"{new.name} was {labels[0]} and is {labels[1]}"
            )

    def _named(self, old: Any, new: Any, place: str) -> Iterator[Incompatibility]:
        before, after = self._before.by_name[old.type_name], self._after.by_name[new.type_name]
        if before.local_name != after.local_name:
            names = f"the type of {new.name} was {before.local_name} and is {after.local_name}"
            yield Incompatibility("FIELD_NAMED_TYPE_CHANGED", place, names)
            return
        yield from self._messages(old.type_name, new.type_name, f"#/{before.local_name.replace('.', '/')}/")
        if not self._seen[old.type_name, new.type_name]:
            names = f"the type {after.local_name} of {new.name} is not compatible with its earlier form"
            yield Incompatibility("FIELD_NAMED_TYPE_CHANGED", place, names)

    def _kind(self, field: Any, types: _Types) -> str:
        if field.type not in (_FIELD.TYPE_MESSAGE, _FIELD.TYPE_GROUP):
            return "scalar"
        return "map" if types.by_name[field.type_name].descriptor.options.map_entry else "message"


def _oneof(message: _Message, field: Any) -> str | None:
    if not field.HasField("oneof_index") or field.proto3_optional:
        return None
    return str(message.descriptor.oneof_decl[field.oneof_index].name)


def _oneofs(message: _Message) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for field in message.descriptor.field:
        name = _oneof(message, field)
        if name is not None:
            found.setdefault(name, []).append(field)
    return found


def _deleted_oneofs(before: _Message, after: _Message) -> set[str]:
    """Those that are gone with all their fields, which is compatible."""
    kept = {each.number for each in after.descriptor.field}
    names = set(_oneofs(after))
    return {
        name
        for name, fields in _oneofs(before).items()
        if name not in names and not any(each.number in kept for each in fields)
    }


def _moved_into_oneofs(before: _Message, after: _Message, path: str) -> Iterator[Incompatibility]:
    """Fields that could be set together before and exclude each other now."""
    original = {each.number: _oneof(before, each) for each in before.descriptor.field}
    for name, fields in _oneofs(after).items():
        known = [each.number for each in fields if each.number in original]
        alone = [number for number in known if original[number] is None]
        groups = {original[number] or number for number in known}
        if len(groups) > 1:
            kind = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if len(alone) > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"
            yield Incompatibility(kind, f"{path}{name}", f"fields that were independent are now in the oneof {name}")


def _label(message: _Message, field: Any) -> str | None:
    """The label as it is written; None for a field without one."""
    if field.label == _FIELD.LABEL_REPEATED:
        return "repeated"
    if field.label == _FIELD.LABEL_REQUIRED:
        return "required"
    is_written = field.proto3_optional or (message.syntax == "proto2" and not field.HasField("oneof_index"))
    return "optional" if is_written else None
