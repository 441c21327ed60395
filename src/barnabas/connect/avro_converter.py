"""Avro with a schema registry, under the name and keys of Confluent's converter: a magic byte, the id, the data."""

from __future__ import annotations

import asyncio
import io
import json
import struct
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Final, TypeVar

from barnabas.client.errors import RegistryRefused, RegistryUnreachable
from barnabas.client.serdes.registry import Registry
from barnabas.client.serdes.registry import Schema as RegisteredSchema
from barnabas.connect.avro_schemas import AvroReader, AvroWriter, from_avro, to_avro
from barnabas.connect.config import Config, Secret, doc
from barnabas.connect.converters import Converted, Converter
from barnabas.connect.errors import ConnectError, DataError, RetriableError
from barnabas.connect.plugins import MARK, Mark
from barnabas.connect.schemas import Schema, infer

MAGIC: Final = 0
SCHEMAS_KEPT_MAX: Final = 1000
_HEAD: Final = struct.Struct(">bI")
T = TypeVar("T")


class AvroConfig(Config):
    """Keys of the Avro converter."""

    schema_registry_url: Annotated[str, doc("Addresses of the schema registry, separated by commas", importance="HIGH")]
    basic_auth_credentials_source: Annotated[str, doc("Where credentials come from: USER_INFO")] = "USER_INFO"
    basic_auth_user_info: Annotated[Secret, doc("USER:PASSWORD for the registry")] = Secret("")
    auto_register_schemas: Annotated[bool, doc("Register schemas that the registry does not have")] = True


class AvroConverter(Converter):
    """The subject of a topic is ``TOPIC-key`` or ``TOPIC-value``."""

    Config = AvroConfig

    def __init__(self, config: AvroConfig, *, is_key: bool = False) -> None:
        super().__init__(config, is_key=is_key)
        try:
            import fastavro
        except ImportError as error:
            raise ConnectError("the Avro converter needs fastavro: pip install 'barnabas[registry]'") from error
        self._avro = fastavro
        user, _, password = config.basic_auth_user_info.reveal().partition(":")
        self._registry = Registry(config.schema_registry_url, username=user, password=password)
        self._writers: dict[tuple[str, int], tuple[Schema, bytes, Any]] = {}
        self._readers: dict[int, tuple[Schema, Any]] = {}

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the value in Confluent's wire format; its schema is registered on first use."""
        if value is None and (schema is None or schema.optional):
            return None
        known = infer(value) if schema is None else schema
        if known is None:
            raise DataError(f"a {type(value).__name__} without a schema cannot be written as Avro")
        head, parsed = self._writer(topic, known)
        out = io.BytesIO()
        out.write(head)
        try:
            self._avro.schemaless_writer(out, parsed, to_avro(known, value))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise DataError(f"the value does not fit its Avro schema: {error}") from error
        return out.getvalue()

    def _writer(self, topic: str, schema: Schema) -> tuple[bytes, Any]:
        found = self._writers.get((topic, id(schema)))
        if found is not None and found[0] is schema:
            return found[1], found[2]
        avro = AvroWriter().schema(schema)
        subject = f"{topic}-{'key' if self.is_key else 'value'}"
        text = RegisteredSchema(json.dumps(avro))
        if self.config.auto_register_schemas:
            number = self._ask(self._registry.register(subject, text))
        else:
            number = self._ask(self._registry.lookup(subject, text)).id
        if len(self._writers) >= SCHEMAS_KEPT_MAX:
            self._writers.clear()
        made = schema, _HEAD.pack(MAGIC, number), self._avro.parse_schema(avro)
        self._writers[(topic, id(schema))] = made
        return made[1], made[2]

    def from_bytes(self, topic: str, data: bytes | None) -> Converted:
        """Return the value, read with the schema that it was written with."""
        if data is None:
            return Converted(None, None)
        if len(data) < _HEAD.size or data[0] != MAGIC:
            raise DataError("the data does not begin with the magic byte 0 and the id of a schema")
        number = _HEAD.unpack_from(data)[1]
        if number not in self._readers:
            avro = json.loads(self._ask(self._registry.schema(number)).text)
            self._readers[number] = AvroReader().schema(avro), self._avro.parse_schema(avro)
        schema, parsed = self._readers[number]
        source = io.BytesIO(data[_HEAD.size :])
        try:
            value = self._avro.schemaless_reader(source, parsed, None)
        except (ValueError, TypeError, KeyError, IndexError, EOFError, StopIteration, OverflowError) as error:
            raise DataError(f"the data is not Avro of schema {number}: {error}") from error
        if source.tell() != len(data) - _HEAD.size:
            raise DataError(f"{len(data) - _HEAD.size - source.tell()} bytes follow the data of schema {number}")
        return Converted(schema, from_avro(schema, value))

    def _ask(self, question: Coroutine[Any, Any, T]) -> T:
        """Return the registry's answer; in a thread of its own, since the caller may run an event loop."""
        try:
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(asyncio.run, question).result()
        except RegistryUnreachable as error:
            raise RetriableError(f"the schema registry does not answer: {error}") from error
        except RegistryRefused as error:
            raise DataError(f"the schema registry refuses: {error}") from error


setattr(AvroConverter, MARK, Mark("io.confluent.connect.avro.AvroConverter", "converter", ("avro",)))
