"""Confluent's wire format: a zero byte, the schema's id in four bytes, then the data; and the subjects of schemas.

What the data is depends on the kind of schema: ``registered_avro``, ``registered_json`` and ``registered_protobuf``
build on :class:`Registered`. Ids are learned once for each topic, before its first record.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from struct import Struct as Layout
from typing import Final, TypeAlias

from barnabas.client.errors import RegistryRefused
from barnabas.client.serdes.registry import Registry, Schema
from barnabas.client.serdes.serde import NotReady, Place, Serde, T, undecodable

_HEAD: Final = Layout(">bI")
MAGIC: Final = 0
NOT_FOUND: Final = 404

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
    """``auto_register`` lets the first record of a topic register the schema; otherwise it must be there."""

    def __init__(self, registry: Registry, *, subject: SubjectOf = topic_name, auto_register: bool = True) -> None:
        self.registry = registry
        self._subject = subject
        self._auto_register = auto_register
        self._heads: dict[Place, bytes] = {}

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
        if self._auto_register:
            schema_id = await self.registry.register(subject, schema)
        else:
            schema_id = (await self.registry.lookup(subject, schema)).id
        self._heads[place] = head_of(schema_id)

    async def _writer(self, schema_id: int, data: bytes, place: Place) -> Schema:
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
