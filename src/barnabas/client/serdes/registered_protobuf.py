"""Protocol Buffers in Confluent's wire format: after the id comes which message of the file it is.

The file's descriptor is what is registered, and so are the files that it imports, each under its own name; those of
Google's are known to everybody. Needs protobuf.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.client.serdes.protobuf import Protobuf
from barnabas.client.serdes.registered import IdIn, Registered, SubjectOf, topic_name
from barnabas.client.serdes.registry import Reference, Registry, Schema
from barnabas.client.serdes.serde import Place, undecodable

if TYPE_CHECKING:
    from google.protobuf.message import Message

    M = TypeVar("M", bound=Message)
else:
    M = TypeVar("M")

DEPTH_MAX: Final = 100
WELL_KNOWN: Final = ("google/protobuf/", "google/type/", "confluent/")


class RegisteredProtobuf(Registered[M]):
    def __init__(
        self,
        registry: Registry,
        kind: type[M],
        *,
        subject: SubjectOf = topic_name,
        auto_register: bool = True,
        id_in: IdIn = "prefix",
    ) -> None:
        super().__init__(registry, subject=subject, auto_register=auto_register, id_in=id_in)
        self._inner = Protobuf(kind)
        self._descriptor: Any = kind.DESCRIPTOR
        self.tail = encode_indexes(_path_of(self._descriptor))

    def encode(self, content: M, place: Place) -> bytes:
        return self._head(place) + self._inner.encode(content, place)

    def _decode(self, schema_id: int | str, rest: bytes, place: Place) -> M:
        # The reader knows what it wants, so which message it is said to be is not looked at.
        _, content = split_indexes(rest, place)
        return self._inner.decode(content, place)

    async def _schema(self) -> Schema:
        return await self._file(self._descriptor.file)

    async def _file(self, file: Any) -> Schema:
        references = []
        for used in file.dependencies:
            if not used.name.startswith(WELL_KNOWN):
                schema = await self._file(used)
                if self._auto_register:
                    await self.registry.register(used.name, schema)
                found = await self.registry.lookup(used.name, schema)
                references.append(Reference(used.name, found.subject, found.version))
        return Schema(b64encode(file.serialized_pb).decode(), "PROTOBUF", tuple(references))

    def _record_name(self) -> str:
        return str(self._descriptor.full_name)


def _path_of(descriptor: Any) -> list[int]:
    """Which message of its file it is: a number for each level of nesting, the outermost first."""
    path: list[int] = []
    while descriptor.containing_type is not None:
        names = [nested.name for nested in descriptor.containing_type.nested_types]
        path.append(names.index(descriptor.name))
        descriptor = descriptor.containing_type
    path.append(list(descriptor.file.message_types_by_name).index(descriptor.name))
    return path[::-1]


def encode_indexes(path: list[int]) -> bytes:
    """As zigzag varints, their number first; the first message of a file, the usual one, is a single zero."""
    if path == [0]:
        return b"\x00"
    return b"".join(_varint(2 * number) for number in (len(path), *path))


def _varint(raw: int) -> bytes:
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def split_indexes(rest: bytes, place: Place) -> tuple[list[int], bytes]:
    """Which message of the file it is, as a path, and the message; what stands before that is split off already."""
    count, position = _read(rest, 0)
    path = []
    if 0 <= count <= DEPTH_MAX:
        for _ in range(count):
            index, position = _read(rest, position)
            path.append(index)
    if not 0 <= count <= DEPTH_MAX or position > len(rest) or min(path, default=0) < 0:
        raise undecodable(rest, place, "the message's place in its file is malformed")
    return path or [0], rest[position:]


def _read(data: bytes, position: int) -> tuple[int, int]:
    raw = shift = 0
    while position < len(data) and shift < 35:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    return -1, len(data) + 1
