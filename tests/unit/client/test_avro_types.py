"""Dataclasses and structs have Avro schemas: objects make the round trip, and old data is read with the new type."""

from __future__ import annotations

import datetime
import enum
import uuid
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from barnabas.client.errors import Undecodable, Unencodable
from barnabas.client.serdes import Avro, Place
from barnabas.client.serdes.avro_types import schema_of

PLACE = Place("orders")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Line:
    item: str
    count: int = 1


@dataclass
class Order:
    id: int
    lines: list[Line]
    prices: dict[str, float]
    at: datetime.datetime
    key: uuid.UUID
    color: Color = Color.RED
    note: str | None = None
    data: bytes = b"\xff"
    day: datetime.date | None = None
    tags: list[str] = field(default_factory=list)


class Point(msgspec.Struct):
    x: float
    next: Point | None = None


def order() -> Order:
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=datetime.UTC)
    return Order(7, [Line("tea"), Line("cup", 2)], {"tea": 1.5}, at, uuid.UUID(int=5), day=at.date())


@pytest.mark.parametrize(
    "content", [order(), Point(1.0, Point(2.0)), Line("tea")], ids=lambda each: type(each).__name__
)
def test_objects_make_the_round_trip(content: Any) -> None:
    serde = Avro(type(content))
    assert serde.decode(serde.encode(content, PLACE), PLACE) == content


def test_the_schema_has_the_fields_and_defaults_of_the_type() -> None:
    assert schema_of(Line) == {
        "type": "record",
        "name": "Line",
        "fields": [{"name": "item", "type": "string"}, {"name": "count", "type": "long", "default": 1}],
    }
    said: Any = schema_of(Order)
    fields = {each["name"]: each for each in said["fields"]}
    assert fields["note"] == {"name": "note", "type": ["null", "string"], "default": None}
    assert fields["color"]["type"]["symbols"] == ["red", "blue"]
    assert fields["at"]["type"]["logicalType"] == "timestamp-micros"
    assert fields["tags"]["default"] == []
    assert fields["data"]["default"] == "ÿ"
    point: Any = schema_of(Point)
    assert point["fields"][1]["type"] == ["null", "Point"]


def test_what_avro_cannot_hold_is_refused() -> None:
    @dataclass
    class Odd:
        pair: tuple[int, str]

    with pytest.raises(TypeError):
        Avro(Odd)
    with pytest.raises(Unencodable):
        Avro(Line).encode(object(), PLACE)
    with pytest.raises(Unencodable):
        Avro(Line).encode(Line(item=None), PLACE)  # type: ignore[arg-type]
    with pytest.raises(Undecodable):
        Avro(Line).decode(b"\x00", PLACE)
