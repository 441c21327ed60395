"""Serdes of Avro, Protocol Buffers and JSON Schema, with or without a schema registry; and how a task waits for one.

With a registry, bytes are in Confluent's wire format. The subject is that of the topic: ``orders-value``, and for
repartitions and stores that of the internal topic, as in Kafka Streams.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar, cast

from barnabas.client.serdes.avro import Avro as PlainAvro
from barnabas.client.serdes.protobuf import Protobuf as PlainProtobuf
from barnabas.client.serdes.registered_avro import RegisteredAvro
from barnabas.client.serdes.registered_json import RegisteredJson
from barnabas.client.serdes.registered_protobuf import RegisteredProtobuf
from barnabas.client.serdes.registry import Registry
from barnabas.client.serdes.serde import NotReady, Place, Serde

__all__ = ["Avro", "JsonSchema", "Protobuf", "waiting"]

T = TypeVar("T")


def Avro(kind: type[T], *, registry: str | Registry | None = None) -> Serde[T]:  # noqa: N802 - used like a type
    """Return a serde of Avro for a dataclass or a msgspec struct, whose fields are the schema.

    kind: the class.
    registry: address of a schema registry, or a client of one; without it records have the data alone.
    """
    if registry is None:
        return PlainAvro(kind)
    return cast("Serde[T]", RegisteredAvro(_registry(registry), kind))


def Protobuf(kind: type[T], *, registry: str | Registry | None = None) -> Serde[T]:  # noqa: N802 - used like a type
    """Return a serde of Protocol Buffers.

    kind: a class that ``protoc`` has generated.
    registry: address of a schema registry, or a client of one; without it records have the data alone.
    """
    message: Any = kind
    if registry is None:
        return cast("Serde[T]", PlainProtobuf(message))
    return cast("Serde[T]", RegisteredProtobuf(_registry(registry), message))


def JsonSchema(kind: type[T], *, registry: str | Registry) -> Serde[T]:  # noqa: N802 - used like a type
    """Return a serde of JSON whose schema is in a registry.

    kind: a msgspec struct, a dataclass, or another type that msgspec knows; it gives the schema.
    registry: address of a schema registry, or a client of one.
    """
    return RegisteredJson(_registry(registry), kind)


@lru_cache(maxsize=16)
def _of_address(address: str) -> Registry:
    return Registry(address)


def _registry(registry: str | Registry) -> Registry:
    return _of_address(registry) if isinstance(registry, str) else registry


def waiting(function: Callable[[Any, Place], Any], place: Place) -> Callable[[Any], Any]:
    """Return a function of one object or of bytes that waits for the registry whenever the serde needs a schema."""

    def call(content: Any) -> Any:
        while True:
            try:
                return function(content, place)
            except NotReady as error:
                _wait(error)

    return call


def _wait(error: NotReady) -> None:
    """Wait for a schema, in a thread of its own: the caller may be a coroutine's thread. Once for each schema."""

    async def wait() -> None:
        await error.wait()

    with ThreadPoolExecutor(1, "schema-registry") as thread:
        thread.submit(asyncio.run, wait()).result()
