"""Schemas of three kinds: what is refused, what text is kept, and which changes each level allows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.registry.engines import CheckJob, FormatJob, ParseJob, Source, perform
from barnabas.registry.incompatibility import InvalidSchema


def record(*fields: dict[str, Any], name: str = "R") -> str:
    return json.dumps({"type": "record", "name": name, "fields": list(fields)})


def field(name: str, kind: Any = "int", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def schema(**said: Any) -> str:
    return json.dumps(said)


def closed(**properties: Any) -> str:
    return schema(type="object", properties=properties, additionalProperties=False)


def proto(body: str, head: str = "") -> str:
    return f'syntax = "proto3";\n{head}\nmessage M {{ {body} }}\n'


INT, TEXT = {"type": "integer"}, {"type": "string"}
# kind, old schema, new schema, whether the new one reads the old data, whether the old one reads the new data
TABLE = [
    ("AVRO", '"int"', '"long"', True, False),
    ("AVRO", '"string"', '"bytes"', True, True),
    ("AVRO", record(field("a")), record(field("a"), field("b", default=1)), True, True),
    ("AVRO", record(field("a")), record(field("a"), field("b")), False, True),
    ("AVRO", record(field("a")), record(field("b", aliases=["a"])), True, False),
    ("AVRO", record(field("a")), record(field("a"), name="S"), False, False),
    ("AVRO", record(field("a")), record(field("a", ["null", "int"])), True, False),
    ("AVRO", record(field("a", {"type": "array", "items": "int"})), record(field("a", "int")), False, False),
    (
        "AVRO",
        '{"type":"enum","name":"E","symbols":["A"]}',
        '{"type":"enum","name":"E","symbols":["A","B"]}',
        True,
        False,
    ),
    (
        "AVRO",
        '{"type":"enum","name":"E","symbols":["A","B"],"default":"A"}',
        '{"type":"enum","name":"E","symbols":["A","B","C"],"default":"A"}',
        True,
        True,
    ),
    ("AVRO", '{"type":"fixed","name":"F","size":4}', '{"type":"fixed","name":"F","size":5}', False, False),
    ("AVRO", record(field("next", ["null", "R"])), record(field("next", ["null", "R"]), field("b")), False, True),
    ("JSON", "true", schema(type="string"), False, True),
    ("JSON", schema(type="integer"), schema(type="number"), True, False),
    ("JSON", schema(type="string"), schema(type=["string", "null"]), True, False),
    ("JSON", schema(type="string"), schema(type="string", maxLength=3), False, True),
    ("JSON", schema(enum=["a"]), schema(enum=["a", "b"]), True, False),
    ("JSON", closed(a=INT), closed(a=INT, b=TEXT), True, False),
    ("JSON", schema(type="object"), schema(type="object", properties={"a": INT}), False, True),
    (
        "JSON",
        schema(type="object", properties={"a": INT}, required=["a"]),
        schema(type="object", properties={"a": INT}),
        True,
        False,
    ),
    ("JSON", schema(oneOf=[INT]), schema(oneOf=[INT, TEXT]), True, False),
    ("JSON", schema(type="array", items=INT), schema(type="array", items=TEXT), False, False),
    ("PROTOBUF", proto("int32 a = 1;"), proto("int32 a = 1; string b = 2;"), True, True),
    ("PROTOBUF", proto("int32 a = 1;"), proto("int64 a = 1;"), True, True),
    ("PROTOBUF", proto("int32 a = 1;"), proto("string a = 1;"), False, False),
    ("PROTOBUF", proto("int32 a = 1;"), proto("sint32 a = 1;"), False, False),
    ("PROTOBUF", proto("int32 a = 1;", "message N {}"), proto("int32 a = 1;"), False, True),
    ("PROTOBUF", proto("oneof o { int32 a = 1; int32 b = 2; }"), proto("oneof o { int32 a = 1; }"), False, True),
    ("PROTOBUF", proto("int32 a = 1; int32 b = 2;"), proto("oneof o { int32 a = 1; int32 b = 2; }"), False, True),
    ("PROTOBUF", proto("map<string, int32> a = 1;"), proto("map<string, string> a = 1;"), False, False),
    ("PROTOBUF", proto("int32 a = 1;"), proto("int32 a = 1;", "package p;"), False, False),
]


def messages(kind: str, level: str, new: str, *olds: str) -> list[str]:
    earlier = tuple((version, Source(kind, each)) for version, each in enumerate(olds, 1))
    found: list[str] = perform(CheckJob(Source(kind, new), earlier, level))
    return found


@pytest.mark.parametrize(("kind", "old", "new", "is_backward", "is_forward"), TABLE)
def test_levels(kind: str, old: str, new: str, is_backward: bool, is_forward: bool) -> None:
    assert (not messages(kind, "BACKWARD", new, old)) is is_backward
    assert (not messages(kind, "FORWARD", new, old)) is is_forward
    assert (not messages(kind, "FULL", new, old)) is (is_backward and is_forward)
    assert messages(kind, "NONE", new, old) == []
    assert messages(kind, "FULL_TRANSITIVE", old, old) == []


def test_transitive_levels_look_at_every_version() -> None:
    one, two, three = record(field("a")), record(), record(field("a", "string", default=""))
    assert not messages("AVRO", "BACKWARD", three, one, two)
    found = messages("AVRO", "BACKWARD_TRANSITIVE", three, one, two)
    assert "TYPE_MISMATCH" in found[0]
    assert "{oldSchemaVersion: 1}" in found


def test_a_change_of_the_kind_of_schema_is_incompatible() -> None:
    job = CheckJob(Source("JSON", "{}"), ((1, Source("AVRO", '"int"')),), "BACKWARD")
    assert "AVRO" in perform(job)[0]


def test_the_policy_lenient_lets_readers_ignore_what_they_do_not_know() -> None:
    old, new = schema(type="object"), schema(type="object", properties={"a": INT})
    job = CheckJob(Source("JSON", new), ((1, Source("JSON", old)),), "BACKWARD", "LENIENT")
    assert perform(job) == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("AVRO", "{"),
        ("AVRO", '"nothing"'),
        ("AVRO", '{"type":"record","name":"a b","fields":[]}'),
        ("AVRO", record(field("a", default="x"))),
        ("AVRO", record(field("a"), field("a"))),
        ("AVRO", '["int","int"]'),
        ("AVRO", "[]]"),
        ("JSON", "[]"),
        ("JSON", schema(type="strange")),
        ("JSON", schema(**{"$ref": "http://example.com/other.json"})),
        ("JSON", schema(**{"$ref": "#/definitions/nothing"})),
        ("JSON", schema(**{"$ref": "file:///etc/passwd"})),
        ("PROTOBUF", "message {"),
        ("PROTOBUF", proto("int32 a = 1;", 'import "/etc/passwd";')),
        ("PROTOBUF", proto("int32 a = 1;", 'import "../../etc/passwd";')),
        ("PROTOBUF", proto("Nothing a = 1;")),
        ("THRIFT", "struct a {}"),
    ],
)
def test_what_is_not_a_schema_is_refused(kind: str, text: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        perform(ParseJob(Source(kind, text)))
    assert str(refused.value)


@pytest.mark.parametrize(
    "name", ["../a.proto", "/a.proto", "a/../b.proto", "", "a//b.proto", "schema.proto", "a\0.proto"]
)
def test_a_reference_that_is_no_path_to_import_is_refused(name: str) -> None:
    with pytest.raises(InvalidSchema):
        perform(ParseJob(Source("PROTOBUF", proto("int32 a = 1;"), ((name, proto("")),))))


def test_texts_that_mean_the_same_avro_schema_are_kept_as_one() -> None:
    one = perform(ParseJob(Source("AVRO", '{"fields":[],"type":"record", "name":"x.R"}')))
    other = perform(ParseJob(Source("AVRO", '{"type":"record","name":"R","namespace":"x","fields":[ ]}')))
    assert one.text == other.text == '{"type":"record","name":"R","namespace":"x","fields":[]}'


def test_a_normalized_text_does_not_depend_on_the_order_of_properties() -> None:
    texts = ['{"type":"object","title":"a"}', '{"title":"a","type":"object"}']
    assert len({perform(ParseJob(Source("JSON", each), normalize=True)).text for each in texts}) == 1
    assert len({perform(ParseJob(Source("JSON", each))).text for each in texts}) == 2
    protos = [proto("int32 a = 1; /* a */"), proto("\n\n int32 a=1;")]
    assert len({perform(ParseJob(Source("PROTOBUF", each), normalize=True)).text for each in protos}) == 1
    assert len({perform(ParseJob(Source("PROTOBUF", each))).fingerprint for each in protos}) == 1


def test_the_types_of_google_can_be_imported() -> None:
    text = 'syntax = "proto3"; import "google/type/postal_address.proto"; import "google/protobuf/any.proto"; '
    text += "message M { google.type.PostalAddress a = 1; google.protobuf.Any b = 2; }"
    assert perform(ParseJob(Source("PROTOBUF", text))).text == text
    with pytest.raises(InvalidSchema, match="not found"):
        perform(ParseJob(Source("PROTOBUF", text.replace("postal_address", "nothing"))))
    with pytest.raises(InvalidSchema):
        perform(
            ParseJob(Source("PROTOBUF", text.replace("google/type/postal_address.proto", "google/type/../any.proto")))
        )


def test_a_protobuf_file_makes_the_round_trip_through_its_descriptor() -> None:
    text = """syntax = "proto2";
package a.b;
import "google/protobuf/timestamp.proto";
import "confluent/meta.proto";
option java_package = "x.y";
message M {
  option deprecated = true;
  required int32 a = 1 [default = 5, deprecated = true];
  optional string b = 2 [default = "x\\"y", json_name = "bee"];
  repeated E c = 3 [packed = true];
  map<string, .google.protobuf.Timestamp> d = 4;
  oneof o { string e = 5; bytes f = 6; }
  optional group G = 7 { optional int32 x = 1; }
  optional string tagged = 8 [(confluent.field_meta) = { doc: "d" tags: "t" }];
  reserved 20, 30 to 40;
  reserved "old";
  extensions 100 to max;
  enum E { option allow_alias = true; A = 0; B = 1; C = 1 [deprecated = true]; }
  message N { optional N next = 1; }
}
extend M { optional int32 ext = 100; }
service S { rpc Do (M) returns (stream M.N) { option deprecated = true; } }
"""
    parsed = perform(ParseJob(Source("PROTOBUF", text), normalize=True))
    assert perform(ParseJob(Source("PROTOBUF", parsed.text), normalize=True)) == parsed
    serialized = perform(FormatJob(Source("PROTOBUF", text), "serialized"))
    assert perform(ParseJob(Source("PROTOBUF", serialized))).fingerprint != ""


def test_references_are_used_and_resolved() -> None:
    color = '{"type":"enum","name":"Color","symbols":["RED"]}'
    source = Source("AVRO", record(field("a", "Color"), field("b", "Color")), (("Color", color),))
    assert json.loads(perform(ParseJob(source)).text)["fields"][0]["type"] == "Color"
    resolved = json.loads(perform(FormatJob(source, "resolved")))
    assert resolved["fields"][0]["type"]["symbols"] == ["RED"]
    assert resolved["fields"][1]["type"] == "Color"
    other = schema(definitions={"name": TEXT})
    for name in ("other.json", "http://example.com/other.json"):
        said = schema(type="object", properties={"a": {"$ref": f"{name}#/definitions/name"}})
        perform(ParseJob(Source("JSON", said, ((name, other),))))
        changed = schema(definitions={"name": INT})
        job = CheckJob(Source("JSON", said, ((name, changed),)), ((1, Source("JSON", said, ((name, other),))),), "FULL")
        assert "TYPE_CHANGED" in perform(job)[0]


@pytest.mark.parametrize("draft", ["2019-09", "2020-12"])
def test_new_drafts_of_json_schema_are_understood(draft: str) -> None:
    head = {"$schema": f"https://json-schema.org/draft/{draft}/schema"}
    said = schema(**head, **{"$defs": {"a": {"$anchor": "x", "type": "string"}}, "$ref": "#x"})
    perform(ParseJob(Source("JSON", said)))
    tuple_ = schema(**head, type="array", prefixItems=[INT], items=False)
    wider = schema(**head, type="array", prefixItems=[INT, TEXT], items=False)
    assert messages("JSON", "BACKWARD", wider, tuple_) == []
