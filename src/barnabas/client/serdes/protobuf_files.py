"""Protobuf files of a registry, as descriptors from which messages can be made without generated code.

The registry is asked for the descriptor; one that can only give the source of a file cannot be used, because nothing
here compiles it. Needs protobuf.
"""

from __future__ import annotations

import re
from base64 import b64decode
from importlib import import_module
from typing import Any, Final

from barnabas.client.errors import Undecodable
from barnabas.client.serdes.registry import Registry
from barnabas.client.serdes.serde import needed

FILES_MAX: Final = 1000
EXTRA: Final = "protobuf"
# What protobuf raises for what does not fit is not one type but many.
REFUSED: Final = (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError)
_GOOGLES: Final = re.compile(r"google/(?:protobuf|type)/[a-z_]+\.proto")


class ProtobufFiles:
    """A file of messages and those that it imports, from the registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._protos = needed("google.protobuf.descriptor_pb2", EXTRA)
        self.pool = needed("google.protobuf.descriptor_pool", EXTRA).DescriptorPool()
        self._names: set[str] = set()
        self.serialized: list[bytes] = []  # every file, those that others import first

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
            elif _GOOGLES.fullmatch(used):
                self._add_google(used, schema_id)
            else:
                raise Undecodable(f"schema {schema_id} imports {used!r}, which is none of its references")
        self._put(file, schema_id)
        return file

    def _add_google(self, name: str, schema_id: int) -> None:
        try:
            found = import_module(f"{name.removesuffix('.proto').replace('/', '.')}_pb2")
        except ImportError as error:
            raise Undecodable(f"schema {schema_id} imports {name!r}, which is not known") from error
        for used in found.DESCRIPTOR.dependencies:
            if used.name not in self._names:
                self._add_google(used.name, schema_id)
        self._names.add(name)
        self.pool.AddSerializedFile(found.DESCRIPTOR.serialized_pb)
        self.serialized.append(found.DESCRIPTOR.serialized_pb)

    def _put(self, file: Any, schema_id: int) -> None:
        try:
            self.serialized.append(file.SerializeToString())
            self.pool.AddSerializedFile(self.serialized[-1])
        except REFUSED as error:
            raise Undecodable(f"schema {schema_id} is not a Protobuf file: {error}") from error


def _checked(file: Any, schema_id: int) -> None:
    """Names that are not text come as bytes, and nothing could be found by them."""
    for name in (file.package, *file.dependency):
        if not isinstance(name, str):
            raise Undecodable(f"schema {schema_id} is not a Protobuf file: the name {name!r} is no text")
