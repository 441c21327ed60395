"""Objects become bytes and come back; what does not fit is a typed error, whatever it is."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.errors import Undecodable, Unencodable
from barnabas.client.record import ConsumerRecord
from barnabas.client.serdes import (
    BYTES,
    DOUBLE,
    INTEGER,
    LONG,
    STR,
    Avro,
    Json,
    NotReady,
    Place,
    Protobuf,
    Serde,
    Struct,
)
from barnabas.client.serdes.coder import Coder
from barnabas.model.ids import TopicPartition

PLACE = Place("orders")
ORDER_SCHEMA = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": ["null", "string"], "default": None}],
}


class Order(msgspec.Struct):
    id: int
    item: str | None = None


@dataclass
class Bill:
    id: int
    lines: list[str]


def order_message() -> Any:
    """A generated class, made without the compiler."""
    file = descriptor_pb2.FileDescriptorProto(name="serdes_order.proto", package="serdes", syntax="proto3")
    message = file.message_type.add(name="Order")
    message.field.add(name="id", number=1, type=3, label=1)
    message.field.add(name="item", number=2, type=9, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)  # type: ignore[attr-defined]
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("serdes.Order"))


ProtobufOrder = order_message()

CASES: list[tuple[Serde[Any], Any]] = [
    (BYTES, b"\x00\xff"),
    (STR, "tea für zwei"),
    (INTEGER, -(2**31)),
    (LONG, 2**63 - 1),
    (DOUBLE, 0.1),
    (Json(), {"a": [1, None, "ü"], "b": {"c": True}}),
    (Struct(Order), Order(7, "tea")),
    (Struct(Order, layout="msgpack"), Order(7)),
    (Struct(Bill), Bill(1, ["a", "b"])),
    (Avro(ORDER_SCHEMA), {"id": 7, "item": "tea"}),
    (Protobuf(ProtobufOrder), ProtobufOrder(id=7, item="tea")),
]


@pytest.mark.parametrize(("serde", "content"), CASES, ids=lambda value: type(value).__name__)
def test_what_is_encoded_is_decoded_again(serde: Serde[Any], content: Any) -> None:
    assert serde.decode(serde.encode(content, PLACE), PLACE) == content


@pytest.mark.parametrize(
    ("serde", "data"),
    [
        (STR, b"\xff"),
        (INTEGER, b"\x00"),
        (LONG, b"123456789"),
        (Json(), b"{"),
        (Json(), b"\xff"),
        (Struct(Order), b'{"id":"seven"}'),
        (Struct(Order, layout="msgpack"), b"\xc1"),
        (Avro(ORDER_SCHEMA), b""),
        (Avro(ORDER_SCHEMA), b"\x02\x00more"),
        (Protobuf(ProtobufOrder), b"\x0f\xff"),
    ],
)
def test_bytes_that_are_none_of_it_are_undecodable(serde: Serde[Any], data: bytes) -> None:
    with pytest.raises(Undecodable, match="value of orders") as caught:
        serde.decode(data, PLACE)
    assert not caught.value.retriable


@pytest.mark.parametrize(
    ("serde", "content"),
    [
        (BYTES, "text"),
        (STR, b"bytes"),
        (STR, "\ud800"),
        (INTEGER, 2**31),
        (Json(), object()),
        (Struct(Order), Bill(1, [])),
        (Avro(ORDER_SCHEMA), {"id": "seven"}),
        (Protobuf(ProtobufOrder), Order(7)),
    ],
)
def test_an_object_that_does_not_fit_is_unencodable(serde: Serde[Any], content: Any) -> None:
    with pytest.raises(Unencodable):
        serde.encode(content, PLACE)


@given(st.binary(max_size=200))
def test_no_bytes_make_a_serde_fail_in_another_way(data: bytes) -> None:
    for serde, _ in CASES:
        try:
            serde.decode(data, PLACE)
        except Undecodable:
            continue


class Late(Serde[str]):
    """Must ask before it can answer, once."""

    def __init__(self) -> None:
        self.asked = 0

    def encode(self, content: str, place: Place) -> bytes:
        if not self.asked:
            raise NotReady(self._ask)
        return content.encode()

    def decode(self, data: bytes, place: Place) -> str:
        if not self.asked:
            raise NotReady(self._ask)
        return STR.decode(data, place)

    async def _ask(self) -> None:
        self.asked += 1


def test_a_serde_that_must_ask_is_waited_for_and_asked_again() -> None:
    late = Late()
    assert asyncio.run(Coder(None, late).encode("orders", b"k", "tea")) == (b"k", b"tea")
    assert late.asked == 1


def test_a_bad_record_does_not_take_those_before_it_along() -> None:
    records = [ConsumerRecord("t", 3, offset, 0, None, value) for offset, value in enumerate([b"a", None, b"\xff"])]
    decoded, error = asyncio.run(Coder(None, Late()).decode(records))
    assert [record.value for record in decoded] == ["a", None]
    assert isinstance(error, Undecodable)
    assert (error.partition, error.offset) == (TopicPartition("t", 3), 2)


def test_serdes_pull_in_no_package_before_they_are_used() -> None:
    code = (
        "import sys; from barnabas.client import serdes; serdes.STR; serdes.Json; serdes.Avro; serdes.Struct;"
        "serdes.Protobuf; serdes.RegisteredAvro; serdes.RegisteredProtobuf; serdes.Registry;"
        "assert not {'msgspec', 'fastavro', 'google.protobuf'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
