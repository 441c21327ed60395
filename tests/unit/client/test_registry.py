"""The schema registry's client and Confluent's wire format, against a small registry over a real socket."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from small_http import Answer, Asked, SmallHttpServer

from barnabas.client.errors import RegistryRefused, RegistryUnreachable, Undecodable
from barnabas.client.record import ConsumerRecord
from barnabas.client.serdes import (
    RegisteredAvro,
    RegisteredJson,
    RegisteredProtobuf,
    Registry,
    Serde,
    topic_record_name,
)
from barnabas.client.serdes.coder import Coder
from barnabas.client.serdes.registered_protobuf import encode_indexes
from barnabas.client.serdes.registry import Reference, Schema

OLD = {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "long"}]}
NEW = {**OLD, "fields": [*OLD["fields"], {"name": "item", "type": "string", "default": "tea"}]}


class SmallRegistry(SmallHttpServer):
    """As much of the REST interface as the client uses; ids are global, versions those of a subject."""

    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[tuple[str, str]] = []
        self.answer: bytes | None = None  # what is sent instead, byte for byte
        super().__init__()

    def respond(self, asked: Asked) -> Answer | bytes:
        self.requests.append((asked.method, asked.target))
        if self.answer is not None:
            return self.answer
        status, said = self._find(asked.method, asked.parts, json.loads(asked.body) if asked.body else None)
        return Answer(status, json.dumps(said).encode())

    def _find(self, method: str, path: list[str], body: Any) -> tuple[int, Any]:
        match method, path:
            case "GET", ["schemas", "ids", number]:
                if int(number) > len(self.schemas):
                    return 404, {"error_code": 40403, "message": "Schema not found"}
                return 200, self.schemas[int(number) - 1]
            case "POST", ["subjects", subject, "versions"]:
                if body not in self.schemas:
                    self.schemas.append(body)
                number = self.schemas.index(body) + 1
                versions = self.subjects.setdefault(subject, [])
                if number not in versions:
                    versions.append(number)
                return 200, {"id": number}
            case "POST", ["subjects", subject]:
                known = self.subjects.get(subject, [])
                if body not in self.schemas or self.schemas.index(body) + 1 not in known:
                    return 404, {"error_code": 40403, "message": "Schema not found"}
                return 200, self._version(subject, known.index(self.schemas.index(body) + 1) + 1)
            case "GET", ["subjects", subject, "versions", version]:
                known = self.subjects[subject]
                return 200, self._version(subject, len(known) if version == "latest" else int(version))
            case "GET", ["subjects"]:
                return 200, list(self.subjects)
            case "GET", ["subjects", subject, "versions"]:
                return 200, list(range(1, len(self.subjects[subject]) + 1))
            case "POST", ["compatibility", *_]:
                return 200, {"is_compatible": True}
            case "GET", ["config", *_]:
                return 200, {"compatibilityLevel": "BACKWARD"}
            case "PUT", ["config", *_]:
                return 200, body
            case "DELETE", ["subjects", subject]:
                return 200, list(range(1, len(self.subjects.pop(subject)) + 1))
        return 500, {"message": "?"}

    def _version(self, subject: str, version: int) -> dict[str, Any]:
        number = self.subjects[subject][version - 1]
        return {"subject": subject, "version": version, "id": number, **self.schemas[number - 1]}


@pytest.fixture
def small() -> Iterator[SmallRegistry]:
    with SmallRegistry() as running:
        yield running


def there(serde: Serde[Any], content: Any, topic: str = "orders") -> bytes:
    async def work() -> bytes:
        value = (await Coder(None, serde).encode(topic, None, content))[1]
        assert value is not None
        return value

    return asyncio.run(work())


def back(serde: Serde[Any], data: bytes) -> Any:
    from barnabas.client.record import ConsumerRecord

    decoded, error = asyncio.run(Coder(None, serde).decode([ConsumerRecord("orders", 0, 0, 0, None, data)]))
    if error is not None:
        raise error
    return decoded[0].value


def test_an_older_writer_is_read_with_our_schema(small: SmallRegistry) -> None:
    registry = Registry(small.url)
    data = there(RegisteredAvro(registry, OLD), {"id": 7})
    assert data == b"\x00\x00\x00\x00\x01\x0e"
    assert small.subjects == {"orders-value": [1]}
    assert back(RegisteredAvro(registry, NEW), data) == {"id": 7, "item": "tea"}
    assert back(RegisteredAvro(registry), data) == {"id": 7}


def test_an_id_is_asked_for_once(small: SmallRegistry) -> None:
    serde = RegisteredAvro(Registry(small.url), OLD)
    for _ in range(3):
        back(serde, there(serde, {"id": 7}))
    assert small.requests == [("POST", "/subjects/orders-value/versions"), ("GET", "/schemas/ids/1")]


def test_types_of_other_subjects_are_found(small: SmallRegistry) -> None:
    registry = Registry(small.url)
    outer = {"type": "record", "name": "Box", "fields": [{"name": "order", "type": "shop.Order"}]}

    async def work() -> int:
        await registry.register("inner", Schema(json.dumps(OLD)))
        return await registry.register(
            "box-value", Schema(json.dumps(outer), references=(Reference("shop.Order", "inner", 1),))
        )

    number = asyncio.run(work())
    assert back(RegisteredAvro(registry), b"\x00" + number.to_bytes(4, "big") + b"\x0e") == {"order": {"id": 7}}


def test_json_of_a_type_registers_the_types_schema(small: SmallRegistry) -> None:
    class Order(msgspec.Struct):
        id: int

    registry = Registry(small.url)
    serde = RegisteredJson(registry, Order, subject=topic_record_name)
    data = there(serde, Order(7))
    assert data == b'\x00\x00\x00\x00\x01{"id":7}'
    assert back(serde, data) == Order(7)
    assert list(small.subjects) == ["orders-Order"]
    said = json.loads(small.schemas[0]["schema"])
    assert (said["title"], said["type"], list(said["properties"])) == ("Order", "object", ["id"])
    untyped = RegisteredJson[Any](registry)
    assert back(untyped, data) == {"id": 7}


def test_a_nested_message_says_which_one_it_is_and_brings_its_imports(small: SmallRegistry) -> None:
    pool = descriptor_pool.DescriptorPool()
    used = descriptor_pb2.FileDescriptorProto(name="used.proto", package="shop", syntax="proto3")
    used.message_type.add(name="Item").field.add(name="name", number=1, type=9, label=1)
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.dependency.append("used.proto")
    file.message_type.add(name="First")
    outer = file.message_type.add(name="Outer")
    inner = outer.nested_type.add(name="Inner")
    inner.field.add(name="item", number=1, type=11, type_name=".shop.Item", label=1)
    for each in (used, file):
        pool.Add(each)  # type: ignore[attr-defined]
    inner_class: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Outer.Inner"))
    content = inner_class(item={"name": "tea"})
    serde = RegisteredProtobuf(Registry(small.url), inner_class)
    data = there(serde, content)
    assert data[:8] == b"\x00\x00\x00\x00\x02" + bytes([4, 2, 0])  # two levels: the second message, its first
    assert back(serde, data) == content
    assert small.subjects == {"used.proto": [1], "orders-value": [2]}
    assert small.schemas[1]["references"] == [{"name": "used.proto", "subject": "used.proto", "version": 1}]
    assert descriptor_pb2.FileDescriptorProto.FromString(b64decode(small.schemas[1]["schema"])).name == "order.proto"
    assert encode_indexes([0]) == b"\x00"


@pytest.mark.parametrize("data", [b"", b"\x00\x00", b"\x01\x00\x00\x00\x01\x0e", b"\x00\x00\x00\x00\x63\x0e"])
def test_what_carries_no_known_id_is_undecodable(small: SmallRegistry, data: bytes) -> None:
    with pytest.raises(Undecodable):
        back(RegisteredAvro(Registry(small.url), OLD), data)


def test_a_schema_that_must_be_there_is_not_registered(small: SmallRegistry) -> None:
    serde = RegisteredAvro(Registry(small.url), OLD, auto_register=False)
    with pytest.raises(RegistryRefused, match="Schema not found") as caught:
        there(serde, {"id": 7})
    assert (caught.value.status, caught.value.code, caught.value.retriable) == (404, 40403, False)
    assert small.subjects == {}


def test_subjects_versions_and_rules(small: SmallRegistry) -> None:
    registry = Registry(["http://127.0.0.1:1", small.url])  # the first is not there

    async def work() -> None:
        number = await registry.register("a/b", Schema(json.dumps(OLD)))
        assert (await registry.version("a/b")).id == number
        assert await registry.subjects() == ["a/b"]
        assert await registry.versions("a/b") == [1]
        assert await registry.is_compatible("a/b", Schema(json.dumps(NEW)))
        assert await registry.compatibility() == "BACKWARD"
        await registry.set_compatibility("FULL", "a/b")
        assert await registry.delete_subject("a/b") == [1]

    asyncio.run(work())


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffff\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 300 + b"\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 500 Oh\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\nnot json",
        b"HTTP/1.1 200 OK\r\n\r\n[]",
    ],
)
def test_nonsense_of_a_registry_is_an_error_that_may_pass(small: SmallRegistry, answer: bytes) -> None:
    small.answer = answer
    with pytest.raises(RegistryUnreachable) as caught:
        asyncio.run(Registry(small.url).version("orders-value"))
    assert caught.value.retriable


def test_a_registry_that_does_not_answer_is_given_up() -> None:
    async def work() -> None:
        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()  # until the other side has had enough
            writer.close()

        server = await asyncio.start_server(listen, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(RegistryUnreachable, match="within 50 ms"):
            await Registry(f"http://127.0.0.1:{port}", timeout_ms=50).subjects()
        server.close()
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)

    asyncio.run(work())


def named(name: str, *uses: str) -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": use.lower(), "type": use} for use in uses]})


def test_a_type_that_two_others_use_is_read_once(small: SmallRegistry) -> None:
    async def work() -> Any:
        registry = Registry(small.url)
        await registry.register("d", Schema(named("D")))
        for name in ("B", "C"):
            await registry.register(name.lower(), Schema(named(name, "D"), "AVRO", (Reference("D", "d", 1),)))
        both = (Reference("B", "b", 1), Reference("C", "c", 1))
        number = await registry.register("a", Schema(named("A", "B", "C"), "AVRO", both))
        return await decoded(RegisteredAvro(registry), number.to_bytes(5, "big"))

    assert asyncio.run(work()) == {"b": {"d": {}}, "c": {"d": {}}}


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "enum", "name": "E", "symbols": ["a b"]}',
        '{"type": "nothing"}',
        '{"type": "fixed", "name": "F"}',
        "[1]",
        "{",
    ],
)
def test_a_schema_that_is_none_is_the_records_fault(small: SmallRegistry, text: str) -> None:
    async def work() -> None:
        registry = Registry(small.url)
        number = await registry.register("x", Schema(text))
        await decoded(RegisteredAvro(registry), number.to_bytes(5, "big"))

    with pytest.raises(Undecodable, match="schema 1 is not Avro"):
        asyncio.run(work())


def test_schemas_that_use_each_other_come_to_an_end(small: SmallRegistry) -> None:
    async def work() -> None:
        registry = Registry(small.url)
        await registry.register("a", Schema(named("A", "B"), "AVRO", (Reference("B", "b", 1),)))
        number = await registry.register("b", Schema(named("B", "A"), "AVRO", (Reference("A", "a", 1),)))
        await decoded(RegisteredAvro(registry), number.to_bytes(5, "big"))

    with pytest.raises(Undecodable, match="schema 2 is not Avro"):
        asyncio.run(asyncio.wait_for(work(), 20))


async def decoded(serde: Serde[Any], data: bytes) -> Any:
    record = ConsumerRecord("orders", 0, 0, 0, None, data)
    found, error = await Coder(None, serde).decode([record])
    if error is not None:
        raise error
    return found[0].value
