"""Avro's values as JSON and back: every type, unions, names, and what does not fit."""

from __future__ import annotations

import io
import json
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pytest

from barnabas.ops.records.avro_json import meant, shown

ITEM = {"type": "record", "name": "Item", "namespace": "shop", "fields": [{"name": "name", "type": "string"}]}
COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}


def there(said: Any, schema: Any) -> Any:
    """Written by JSON, read by fastavro."""
    named: dict[str, Any] = {}
    parsed = fastavro.parse_schema(schema, named_schemas=named)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, meant(said, parsed, named))
    return fastavro.schemaless_reader(io.BytesIO(out.getvalue()), parsed, None)


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


@pytest.mark.parametrize(
    ("schema", "said", "content"),
    [
        ("null", None, None),
        ("boolean", True, True),
        ("long", 7, 7),
        ("double", 1.5, 1.5),
        ("string", "tea", "tea"),
        ("bytes", "a\xff", b"a\xff"),
        ({"type": "fixed", "name": "Two", "size": 2}, "\0\xff", b"\0\xff"),
        (COLOUR, "RED", "RED"),
        ({"type": "array", "items": "bytes"}, ["\xff"], [b"\xff"]),
        ({"type": "map", "values": "bytes"}, {"a": "\xff"}, {"a": b"\xff"}),
        (logical("bytes", "decimal", precision=9, scale=2), "12.50", Decimal("12.50")),
        (logical("int", "date"), "2026-01-31", date(2026, 1, 31)),
        (logical("int", "time-millis"), "12:30:00", time(12, 30)),
        (
            logical("long", "timestamp-millis"),
            "2026-01-31T12:00:00.250000+00:00",
            datetime(2026, 1, 31, 12, 0, 0, 250_000, UTC),
        ),
        (
            logical("string", "uuid"),
            "12345678-1234-5678-1234-567812345678",
            UUID("12345678-1234-5678-1234-567812345678"),
        ),
        (ITEM, {"name": "tea"}, {"name": "tea"}),
    ],
    ids=str,
)
def test_every_type_goes_round(schema: Any, said: Any, content: Any) -> None:
    assert there(said, schema) == content
    assert json.loads(json.dumps(shown(content))) == said


def test_numbers_that_json_does_not_have_are_text() -> None:
    assert shown([math.nan, math.inf]) == ["nan", "inf"]
    assert math.isnan(there("nan", "double"))


@pytest.mark.parametrize(
    ("said", "content"),
    [
        (None, None),
        (7, 7),
        (1.5, 1.5),
        ("RED", "RED"),
        ("tea", "tea"),
        ({"name": "tea"}, {"name": "tea"}),
        ({"shop.Item": {"name": "tea"}}, {"name": "tea"}),
        ({"Item": {"name": "tea"}}, {"name": "tea"}),
        ({"string": "tea"}, "tea"),
        ({"other": 1}, {"other": 1}),
        ([1], [1]),
        (True, True),
    ],
    ids=str,
)
def test_a_branch_of_a_union_is_found_by_its_name_or_by_what_is_said(said: Any, content: Any) -> None:
    union = ["null", "boolean", "long", "double", COLOUR, "string", ITEM]
    union += [{"type": "map", "values": "long"}, {"type": "array", "items": "long"}]
    assert there(said, union) == content


def test_a_type_that_is_named_again_is_the_same() -> None:
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"], "default": None}]}
    assert there({"next": {"next": {}}}, node) == {"next": {"next": {"next": None}}}


@pytest.mark.parametrize(
    ("schema", "said", "reason"),
    [
        (ITEM, {"nam": "tea"}, "no field 'nam'; it has name"),
        (ITEM, ["tea"], "an object of fields"),
        (["null", "long"], "tea", "none of null, long"),
        (logical("long", "timestamp-millis"), "yesterday", "isoformat"),
    ],
)
def test_what_does_not_fit_is_said(schema: Any, said: Any, reason: str) -> None:
    named: dict[str, Any] = {}
    parsed = fastavro.parse_schema(schema, named_schemas=named)
    with pytest.raises((ValueError, TypeError), match=reason):
        meant(said, parsed, named)
