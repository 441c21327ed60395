"""Confluent's wire format: a zero byte, the schema's id in four bytes, then the data; and the subjects of schemas.

With ``id_in="header"`` the record is the data alone, and a header has a one and the schema's GUID in 16 bytes. Readers
understand both. What the data is depends on the kind of schema: ``registered_avro``, ``registered_json`` and
``registered_protobuf`` build on :class:`Registered`. Ids are learned once for each topic, before its first record.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from struct import Struct as Layout
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from barnabas.client.errors import RegistryRefused
from barnabas.client.serdes.registry import Registry, Schema
from barnabas.client.serdes.serde import NotReady, Place, Serde, T, undecodable
from barnabas.model.ids import uuid_text

if TYPE_CHECKING:
    from barnabas.client.produce.batch import Headers

_HEAD: Final = Layout(">bI")
MAGIC: Final = 0
GUID_MAGIC: Final = 1
GUID_BYTES: Final = 16
NOT_FOUND: Final = 404

IdIn: TypeAlias = Literal["prefix", "header"]
SubjectOf: TypeAlias = Callable[[Place, str], str]  # where, and the schema's own full name


def topic_name(place: Place, record: str) -> str:
    """``orders-value``: one schema for the values of a topic."""
    return f"{place.topic}-{'key' if place.is_key else 'value'}"


def record_name(place: Place, record: str) -> str:
    """The schema's name: one schema wherever it is used."""
    return record


def topic_record_name(place: Place, record: str) -> str:
    """``orders-com.example.Order``: several schemas in one topic."""
    return f"{place.topic}-{record}"


class Registered(Serde[T]):
    """``auto_register`` lets the first record of a topic register the schema; otherwise it must be there.

    ``id_in`` is where records carry the schema's id: before the data, or in a header.
    """

    tail = b""  # stands after the id

    def __init__(
        self,
        registry: Registry,
        *,
        subject: SubjectOf = topic_name,
        auto_register: bool = True,
        id_in: IdIn = "prefix",
    ) -> None:
        if id_in not in ("prefix", "header"):
            raise ValueError(f"id_in={id_in!r}: pass 'prefix' or 'header'")
        self.registry = registry
        self._subject = subject
        self._auto_register = auto_register
        self._id_in = id_in
        self._heads: dict[Place, bytes] = {}
        self._headers: dict[Place, tuple[tuple[str, bytes], ...]] = {}

    def decode(self, data: bytes, place: Place) -> T:
        schema_id, rest = split(data, place)
        return self._decode(schema_id, rest, place)

    def decode_record(self, data: bytes, place: Place, headers: Headers) -> T:
        """A header that names the schema counts, as in Confluent's deserializers; else what stands before the data."""
        wanted = header_name(place)
        for name, content in headers:
            if name == wanted and content:
                schema_id, tail = split_header(content, place)
                return self._decode(schema_id, tail + data, place)
        return self.decode(data, place)

    def headers(self, place: Place) -> tuple[tuple[str, bytes], ...]:
        return self._headers.get(place, ())

    @abstractmethod
    def _decode(self, schema_id: int | str, rest: bytes, place: Place) -> T:
        """The object; ``schema_id`` is the id or the GUID of the schema that ``rest`` was written with."""

    @abstractmethod
    async def _schema(self) -> Schema:
        """What is registered; asks the registry for what it refers to."""

    @abstractmethod
    def _record_name(self) -> str:
        """The schema's own full name."""

    def _head(self, place: Place) -> bytes:
        head = self._heads.get(place)
        if head is None:
            raise NotReady(lambda: self._learn_id(place))
        return head

    async def _learn_id(self, place: Place) -> None:
        subject = self._subject(place, self._record_name())
        schema = await self._schema()
        if self._id_in == "header":
            if self._auto_register:
                await self.registry.register(subject, schema)
            guid = (await self.registry.lookup(subject, schema)).guid
            if guid is None:
                raise RegistryRefused(
                    "the registry has no GUIDs: pass id_in='prefix'", status=NOT_FOUND, code=NOT_FOUND
                )
            content = bytes([GUID_MAGIC]) + bytes.fromhex(guid.replace("-", "")) + self.tail
            self._headers[place] = ((header_name(place), content),)
            self._heads[place] = b""
            return
        if self._auto_register:
            schema_id = await self.registry.register(subject, schema)
        else:
            schema_id = (await self.registry.lookup(subject, schema)).id
        self._heads[place] = head_of(schema_id) + self.tail

    async def _writer(self, schema_id: int | str, data: bytes, place: Place) -> Schema:
        """The schema that a record names. An id that nobody registered is the record's fault."""
        try:
            return await self.registry.schema(schema_id)
        except RegistryRefused as error:
            if error.status == NOT_FOUND:
                raise undecodable(data, place, f"the registry knows no schema {schema_id}") from error
            raise


def head_of(schema_id: int) -> bytes:
    """What stands before data of this schema."""
    return _HEAD.pack(MAGIC, schema_id)


def split(data: bytes, place: Place) -> tuple[int, bytes]:
    """The schema's id, and the rest."""
    if len(data) < _HEAD.size or data[0] != MAGIC:
        raise undecodable(data, place, "there is no schema id in front")
    return _HEAD.unpack_from(data)[1], data[_HEAD.size :]


def header_name(place: Place) -> str:
    """The header that has the schema's GUID, as Confluent's serializers name it."""
    return f"__{'key' if place.is_key else 'value'}_schema_id"


def split_header(content: bytes, place: Place) -> tuple[int | str, bytes]:
    """The schema's id or GUID out of a header, and what follows it."""
    if content[:1] == bytes([GUID_MAGIC]) and len(content) > GUID_BYTES:
        return uuid_text(content[1 : GUID_BYTES + 1]), content[GUID_BYTES + 1 :]
    if content[:1] == bytes([MAGIC]) and len(content) >= _HEAD.size:
        return _HEAD.unpack_from(content)[1], content[_HEAD.size :]
    raise undecodable(content, place, f"the header {header_name(place)} names no schema")
