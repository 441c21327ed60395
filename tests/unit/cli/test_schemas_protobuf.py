"""Protocol Buffers by a registry's descriptor: whatever bytes and schemas say, the answer is a value or a reason."""

from __future__ import annotations

import asyncio
import json
import random
from base64 import b64encode
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from barnabas.client.errors import Undecodable, Unencodable
from barnabas.client.serdes.registry import Registry, Schema
from barnabas.client.serdes.serde import Place
from barnabas.ops.records.schemas import Codec
from barnabas.ops.records.schemas_protobuf import protobuf_codec

PLACE = Place("orders")
FIELDS = (
    (3, ""),
    (9, ""),
    (12, ""),
    (1, ""),
    (11, ".google.protobuf.Timestamp"),
    (11, ".google.protobuf.Any"),
    (11, ".google.protobuf.Duration"),
    (11, ".google.protobuf.Struct"),
    (11, ".google.protobuf.FieldMask"),
    (11, ".shop.M"),
)
DAMAGED = 2000


class OneSchema(Registry):
    def __init__(self, text: str) -> None:
        super().__init__("http://nowhere")
        self._text = text

    async def serialized(self, schema_id: int) -> Schema:
        return Schema(self._text, "PROTOBUF")


def file() -> bytes:
    made = descriptor_pb2.FileDescriptorProto(name="", package="shop", syntax="proto3")
    made.dependency.extend(
        f"google/protobuf/{name}.proto" for name in ("timestamp", "any", "duration", "struct", "field_mask")
    )
    message = made.message_type.add(name="M")
    for number, (kind, name) in enumerate(FIELDS, 1):
        named = {"type_name": name} if name else {}
        message.field.add(name=f"f{number}", number=number, type=kind, label=1, **named)
    return made.SerializeToString()


def codec(data: bytes | None = None) -> Codec:
    text = b64encode(file() if data is None else data).decode()
    return asyncio.run(protobuf_codec(OneSchema(text), 1, None))


def test_a_message_goes_round() -> None:
    said: dict[str, Any] = {
        "f1": "5",
        "f2": "tea",
        "f3": "/w==",
        "f4": "NaN",
        "f5": "2026-01-31T12:00:00Z",
        "f7": "1.500s",
        "f8": {"a": [1.0, None]},
        "f9": "a.bC",
        "f10": {"f10": {}},
    }
    there = codec()
    assert there.decode(there.encode(said, PLACE), PLACE) == said


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x08",  # cut off
        b"\x02\x08",  # the fifth message of one
        b"\x00\x2a\x07\x08\x80\xa0\x94\xa5\x8d\x1d",  # a moment after the year 9999
        b"\x00\x32\x08\x0a\x06type/x",  # a message that nobody knows
        b"\x00\x12\x01\xff",  # a text that is none
    ],
)
def test_data_that_is_no_message_is_said_to_be_so(data: bytes) -> None:
    with pytest.raises(Undecodable):
        codec().decode(data, PLACE)


@pytest.mark.parametrize(
    "said",
    [1, "x", [], {"f1": "x"}, {"f1": 1.5}, {"f5": "never"}, {"f6": {"@type": "x/y"}}, {"f9": 5}, {"f2": "\ud800"}],
    ids=repr,
)
def test_what_is_not_of_the_schema_is_refused(said: Any) -> None:
    with pytest.raises(Unencodable):
        codec().encode(said, PLACE)


def test_damaged_messages_and_schemas_are_read_or_refused_and_nothing_else() -> None:
    chance = random.Random(3)
    there = codec()
    whole = there.encode({"f2": "tea", "f5": "2026-01-31T12:00:00Z", "f7": "1s", "f10": {"f9": "a.b"}}, PLACE)
    schema = file()
    for _ in range(DAMAGED):
        for source in (whole, schema):
            data = bytearray(source)
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            try:
                if source is whole:
                    json.dumps(there.decode(bytes(data), PLACE))
                elif chance.random() < 0.1:
                    codec(bytes(data)).decode(b"\x00\x08\x05", PLACE)
            except Undecodable:
                continue
