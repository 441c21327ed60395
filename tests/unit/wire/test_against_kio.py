"""A foreign judge: kio, generated from Kafka's schemas, reads what we write and writes what we read."""

from __future__ import annotations

import datetime
import enum
import io
import re
import uuid
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from random import Random
from types import ModuleType
from typing import Any

import pytest

from barnabas.model.ids import ZERO_UUID, Uuid
from barnabas.wire.message import Message, decode, encode
from barnabas.wire.schema import TAGS_OF_OURS, Field

kio_serial = pytest.importorskip("kio.serial")

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
SAMPLES = 12


def kio_module(cls: type[Message], version: int) -> ModuleType:
    api_key = cls.api_key
    if api_key is None:
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower()
        return import_module(f"kio.schema.{name}.v{version}.data")
    direction = "request" if cls.__name__.endswith("Request") else "response"
    return import_module(f"kio.schema.{api_key.name.lower()}.v{version}.{direction}")


def plain(value: Any, ours: Any) -> Any:
    """A value of kio's in our terms."""
    match value:
        case enum.IntEnum():
            return int(value)
        case datetime.timedelta():
            return value // datetime.timedelta(milliseconds=1)
        case datetime.datetime():
            return (value - EPOCH) // datetime.timedelta(milliseconds=1)
        case uuid.UUID():
            return Uuid(value.bytes)
        case None if isinstance(ours, Uuid):
            return ZERO_UUID
        case tuple() if isinstance(ours, list):
            assert len(value) == len(ours)
            return [plain(theirs, mine) for theirs, mine in zip(value, ours, strict=True)]
        case _:
            return value


def is_kafkas(field: Field, version: int) -> bool:
    return field.is_in(version) and (field.tag is None or field.tag < TAGS_OF_OURS)


def assert_same(theirs: Any, ours: Any, version: int) -> None:
    if isinstance(ours, list) and ours and isinstance(ours[0], Message):
        assert len(theirs) == len(ours)
        for their, our in zip(theirs, ours, strict=True):
            assert_same(their, our, version)
    elif isinstance(ours, Message):
        mine = [field for field in ours.fields if is_kafkas(field, version)]
        for their_field, our_field in zip(fields(theirs), mine, strict=True):
            assert_same(getattr(theirs, their_field.name), getattr(ours, our_field.name), version)
    else:
        assert plain(theirs, ours) == ours


def choices_of(module: ModuleType, version: int) -> Callable[[type[Message], Field, Random], Any]:
    """kio narrows some integers to error codes, times and durations: only those values can go through it."""

    def choose(cls: type[Message], field: Field, random: Random) -> Any:
        mine = [each.name for each in cls.fields if is_kafkas(each, version)]
        theirs = fields(getattr(module, cls.__name__))[mine.index(field.name)]
        match theirs.metadata.get("kafka_type"):
            case "error_code":
                return random.randint(-1, 100)
            case "datetime_i64":
                return random.randrange(2**41)
            case "timedelta_i64":
                return random.randrange(-(2**40), 2**40)
            case _:
                return None

    return choose


def test_kio_reads_what_we_write_and_writes_the_same_bytes(
    message_class: type[Message], version: int, make_message: Callable[..., Any]
) -> None:
    module = kio_module(message_class, version)
    kio_class = getattr(module, message_class.__name__)
    read, write = kio_serial.entity_reader(kio_class), kio_serial.entity_writer(kio_class)
    choose = choices_of(module, version)
    random = Random(f"{message_class.__name__}-{version}")
    for _ in range(SAMPLES):
        ours = make_message(message_class, version, random, choose)
        data = encode(ours, version)
        theirs, size = read(data, 0)
        assert size == len(data)
        assert_same(theirs, ours, version)
        written = io.BytesIO()
        write(written, theirs)
        assert written.getvalue() == data
        assert decode(message_class, version, written.getvalue()) == ours
