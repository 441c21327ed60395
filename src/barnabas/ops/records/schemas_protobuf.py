"""Protocol Buffers by a schema of a registry: messages are built from the descriptor of their file, without its code.

The registry is asked for the descriptor; one that can only give the source of a file cannot be used, because nothing
here compiles it. Needs protobuf. ``schemas.py`` calls this.
"""

from __future__ import annotations

import re
from base64 import b64decode
from importlib import import_module
from typing import Any, Final

from barnabas.client.errors import Undecodable, Unencodable
from barnabas.client.serdes.protobuf import Protobuf
from barnabas.client.serdes.registered_protobuf import encode_indexes, split_indexes
from barnabas.client.serdes.registry import Registry
from barnabas.client.serdes.serde import Place, needed, undecodable, unencodable
from barnabas.ops.records.schemas import Codec

FILES_MAX: Final = 1000
EXTRA: Final = "protobuf"
MAIN: Final = "schema.proto"
# What protobuf raises for what does not fit is not one type but many.
REFUSED: Final = (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError)
_GOOGLES: Final = re.compile(r"google/protobuf/([a-z_]+)\.proto")


async def protobuf_codec(registry: Registry, schema_id: int, message: str | None) -> Codec:
    files = _Files(registry)
    return ProtobufCodec(await files.add(schema_id, MAIN), files.pool, message)


class ProtobufCodec(Codec):
    def __init__(self, file: Any, pool: Any, message: str | None) -> None:
        self._factory = needed("google.protobuf.message_factory", EXTRA)
        self._json = needed("google.protobuf.json_format", EXTRA)
        self._file = file
        self._pool = pool
        self._path = [0] if message is None else _path_of(file, message)

    def decode(self, data: bytes, place: Place) -> Any:
        path, content = split_indexes(data, place)
        try:
            kind = self._kind(path)
        except IndexError:
            raise undecodable(data, place, f"the file has no message at {path}") from None
        message = Protobuf(kind).decode(content, place)
        try:
            return self._json.MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=self._pool)
        except (self._json.Error, *REFUSED) as error:  # a moment that JSON cannot write, a message nobody knows
            raise undecodable(data, place, error) from error

    def encode(self, said: Any, place: Place) -> bytes:
        kind = self._kind(self._path)
        if not isinstance(said, dict):
            raise unencodable(said, place, "a message is an object of fields")
        try:
            content = self._json.ParseDict(said, kind(), descriptor_pool=self._pool)
        except (self._json.Error, *REFUSED) as error:
            raise unencodable(said, place, error) from error
        return encode_indexes(self._path) + Protobuf(kind).encode(content, place)

    def _kind(self, path: list[int]) -> Any:
        messages, names = self._file.message_type, [self._file.package] if self._file.package else []
        for index in path:
            found = messages[index]
            names.append(found.name)
            messages = found.nested_type
        return self._factory.GetMessageClass(self._pool.FindMessageTypeByName(".".join(names)))


def _checked(file: Any, schema_id: int) -> None:
    """Names that are not text come as bytes, and nothing could be found by them."""
    for name in (file.package, *file.dependency):
        if not isinstance(name, str):
            raise Undecodable(f"schema {schema_id} is not a Protobuf file: the name {name!r} is no text")


def _path_of(file: Any, name: str) -> list[int]:
    """Where a message is in its file; its name may be with the package or without."""
    waiting = [([index], message.name, message) for index, message in enumerate(file.message_type)]
    names = []
    while waiting:
        path, known, message = waiting.pop(0)
        if name in (known, f"{file.package}.{known}"):
            return path
        names.append(known)
        waiting += [([*path, index], f"{known}.{inner.name}", inner) for index, inner in enumerate(message.nested_type)]
    raise Unencodable(f"the schema has no message {name!r}; it has {', '.join(names) or 'none'}")


class _Files:
    """A file of messages and those that it imports, from the registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._protos = needed("google.protobuf.descriptor_pb2", EXTRA)
        self.pool = needed("google.protobuf.descriptor_pool", EXTRA).DescriptorPool()
        self._names: set[str] = set()

    async def add(self, schema_id: int, name: str) -> Any:
        """The file's descriptor; what it imports is there first."""
        if len(self._names) >= FILES_MAX:
            raise Undecodable(f"the schema imports more than {FILES_MAX} files")
        self._names.add(name)
        schema = await self._registry.serialized(schema_id)
        file = self._protos.FileDescriptorProto()
        message = needed("google.protobuf.message", EXTRA)
        try:
            file.ParseFromString(b64decode(schema.text, validate=True))
        except (ValueError, message.DecodeError) as error:
            raise Undecodable(
                f"schema {schema_id}: the registry gives the source of the .proto file, and not its descriptor"
            ) from error
        _checked(file, schema_id)
        file.name = name
        references = {reference.name: reference for reference in schema.references}
        for used in file.dependency:
            if used in self._names:
                continue
            if used in references:
                found = await self._registry.version(references[used].subject, references[used].version)
                await self.add(found.id, used)
            elif google := _GOOGLES.fullmatch(used):
                self._add_google(google[1], used, schema_id)
            else:
                raise Undecodable(f"schema {schema_id} imports {used!r}, which is none of its references")
        self._put(file, schema_id)
        return file

    def _add_google(self, module: str, name: str, schema_id: int) -> None:
        try:
            found = import_module(f"google.protobuf.{module}_pb2")
        except ImportError as error:
            raise Undecodable(f"schema {schema_id} imports {name!r}, which is not known") from error
        for used in found.DESCRIPTOR.dependencies:
            if used.name not in self._names:
                self._add_google(used.name.rpartition("/")[2].removesuffix(".proto"), used.name, schema_id)
        self._names.add(name)
        self.pool.AddSerializedFile(found.DESCRIPTOR.serialized_pb)

    def _put(self, file: Any, schema_id: int) -> None:
        try:
            self.pool.AddSerializedFile(file.SerializeToString())
        except REFUSED as error:
            raise Undecodable(f"schema {schema_id} is not a Protobuf file: {error}") from error
