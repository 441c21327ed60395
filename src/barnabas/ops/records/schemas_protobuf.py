"""Protocol Buffers by a schema of a registry: messages are built from the descriptor of their file, without its code.

Needs protobuf. ``schemas.py`` calls this.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.client.errors import Unencodable
from barnabas.client.serdes.protobuf import Protobuf
from barnabas.client.serdes.protobuf_files import EXTRA, REFUSED, ProtobufFiles
from barnabas.client.serdes.registered_protobuf import encode_indexes, split_indexes
from barnabas.client.serdes.registry import Registry
from barnabas.client.serdes.serde import Place, needed, undecodable, unencodable
from barnabas.ops.records.schemas import Codec

MAIN: Final = "schema.proto"


async def protobuf_codec(registry: Registry, schema_id: int, message: str | None) -> Codec:
    files = ProtobufFiles(registry)
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
