"""Kafka's own transforms judge ours: the same values and configurations, the same results, schemas and refusals."""

from __future__ import annotations

import hashlib
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from tools.cache import cache_directory, locked
from tools.kafka_jars import class_path, java_command, program

from barnabas.connect.catalog import PluginSettings, load
from barnabas.connect.converters import JsonConfig, JsonConverter
from barnabas.connect.errors import ConnectError
from barnabas.connect.records import Record

pytestmark = pytest.mark.java
SOURCE = Path(__file__).parent / "java" / "Transforms.java"
SECONDS_MAX = 120
NO_JSON: Final = "does not have corresponding schema"  # what Kafka's JSON converter says of a time without one
FIELDS: Final = [
    {"type": "int32", "optional": False, "field": "id"},
    {"type": "int64", "optional": True, "field": "big"},
    {"type": "double", "optional": True, "field": "ratio"},
    {"type": "string", "optional": True, "default": "none", "field": "note"},
    {"type": "boolean", "optional": False, "field": "paid"},
    {"type": "bytes", "optional": True, "field": "raw"},
    {"type": "int64", "optional": True, "name": "org.apache.kafka.connect.data.Timestamp", "version": 1, "field": "at"},
    {"type": "array", "items": {"type": "string", "optional": False}, "optional": True, "field": "tags"},
    {
        "type": "struct",
        "fields": [
            {"type": "string", "optional": False, "field": "city"},
            {"type": "int16", "optional": True, "field": "zip"},
        ],
        "optional": True,
        "name": "address",
        "field": "home",
    },
]
SCHEMA: Final = {"type": "struct", "fields": FIELDS, "optional": False, "name": "order", "version": 2}
ROW: Final = {
    "id": 300, "big": 1_767_323_045_678, "ratio": 2.5, "note": None, "paid": True, "raw": "AAH/",
    "at": 1_767_323_045_678, "tags": ["a", "b"], "home": {"city": "Graz", "zip": 8010},
}  # fmt: skip
PLAIN: Final = {
    "id": 300,
    "big": 1_767_323_045_678,
    "ratio": 2.5,
    "note": "x",
    "paid": True,
    "tags": ["a"],
    "home": {"zip": 1},
}
CONFIGS: Final[list[tuple[str, dict[str, str]]]] = [
    ("Cast$Value", {"spec": "id:int8,big:int32,ratio:string,paid:int64"}),
    ("Cast$Value", {"spec": "id:string,big:float64,ratio:int32,note:string"}),
    ("Cast$Value", {"spec": "id:boolean,paid:string,ratio:float32"}),
    ("Cast$Value", {"spec": "at:int64,raw:string", "replace.null.with.default": "false"}),
    ("Cast$Value", {"spec": "tags:string"}),
    ("Cast$Value", {"spec": "note:int32"}),
    ("ExtractField$Value", {"field": "id"}),
    ("ExtractField$Value", {"field": "home.city", "field.syntax.version": "V2"}),
    ("ExtractField$Value", {"field": "nope"}),
    ("Flatten$Value", {}),
    ("Flatten$Value", {"delimiter": "_"}),
    ("HeaderFrom$Value", {"fields": "id,note", "headers": "h1,h2", "operation": "move"}),
    ("HeaderFrom$Value", {"fields": "id", "headers": "h1", "operation": "copy"}),
    ("HoistField$Value", {"field": "inner"}),
    ("InsertField$Value", {"topic.field": "t!", "partition.field": "p", "offset.field": "o?"}),
    ("InsertField$Value", {"static.field": "s", "static.value": "v"}),
    ("InsertHeader", {"header": "h", "value.literal": "text"}),
    ("MaskField$Value", {"fields": "id,ratio,note,paid,tags"}),
    ("MaskField$Value", {"fields": "id,note", "replacement": "42"}),
    ("MaskField$Value", {"fields": "paid", "replacement": "42"}),
    ("RegexRouter", {"regex": "db\\.(.*)", "replacement": "x-$1"}),
    ("RegexRouter", {"regex": "orders", "replacement": "x"}),
    ("ReplaceField$Value", {"exclude": "home,raw", "renames": "id:key"}),
    ("ReplaceField$Value", {"include": "id,note"}),
    ("SetSchemaMetadata$Value", {"schema.name": "renamed", "schema.version": "7"}),
    ("TimestampConverter$Value", {"field": "at", "target.type": "string", "format": "yyyy-MM-dd HH:mm:ss.SSS"}),
    ("TimestampConverter$Value", {"field": "at", "target.type": "Date"}),
    ("TimestampConverter$Value", {"field": "at", "target.type": "unix", "unix.precision": "seconds"}),
    ("TimestampConverter$Value", {"field": "big", "target.type": "Timestamp"}),
    ("TimestampConverter$Value", {"field": "big", "target.type": "string", "format": "EEE, d MMM yyyy"}),
    ("TimestampConverter$Value", {"field": "id", "target.type": "Timestamp"}),
    ("TimestampRouter", {"topic.format": "${topic}_${timestamp}", "timestamp.format": "yyyyMMddHH"}),
    ("ValueToKey", {"fields": "id,note"}),
    ("Filter", {}),
]
CASES: Final = [
    {"class": name, "config": config, "schemas": schemas, "value": value}
    for name, config in CONFIGS
    for schemas, value in ((True, {"schema": SCHEMA, "payload": ROW}), (False, PLAIN))
]


@cache
def judged() -> list[dict[str, Any]]:
    directory = cache_directory("java", hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16])
    with locked("java-transforms"):
        if not (directory / "Transforms.class").exists():
            command = [program("javac"), "-cp", class_path(), "-d", str(directory), str(SOURCE)]
            subprocess.run(command, check=True, timeout=SECONDS_MAX)
    options = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256M")
    command = java_command("Transforms", options=options, classes=str(directory))
    lines = "".join(json.dumps(case) + "\n" for case in CASES)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=SECONDS_MAX)
    return [json.loads(line) for line in done.stdout.splitlines()]


def ours(case: dict[str, Any]) -> dict[str, Any]:
    converter = JsonConverter(JsonConfig(schemas_enable=case["schemas"]))
    schema, value = converter.from_bytes("t", json.dumps(case["value"]).encode())
    try:
        plugin = load(PluginSettings()).find(case["class"], ("transformation",))
        transform = plugin.cls(plugin.cls.Config.read(case["config"]))
        record = Record("db.orders", value, value_schema=schema, partition=3, offset=9, timestamp_ms=1_767_323_045_678)
        made = transform.apply(record)
        if made is None:
            return {"dropped": True}

        def shown(kind: Any, data: Any) -> Any:
            written = converter.to_bytes("t", kind, data)
            return None if written is None else json.loads(written)

        return {
            "topic": made.topic,
            "value": shown(made.value_schema, made.value),
            "key": shown(made.key_schema, made.key),
            "headers": {each.key: shown(each.schema, each.value) for each in made.headers},
        }
    except ConnectError as error:
        return {"error": str(error)}


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: f"{CASES[n]['class']}-{n}")
def test_a_transform_does_what_kafkas_does(number: int) -> None:
    found, wanted = ours(CASES[number]), judged()[number]
    if NO_JSON in wanted.get("error", ""):
        assert "error" not in found  # ours writes times without a schema as text
        return
    if "error" in wanted:
        assert "error" in found, f"Kafka refuses: {wanted['error']}"
        return
    assert found == wanted
