"""Records of ``_schemas`` have the bytes that Confluent's registry writes, and are read in any order of fields."""

from __future__ import annotations

import pytest

from barnabas.registry.records import (
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DeleteSubjectKey,
    ModeKey,
    Reference,
    SchemaKey,
    StoredSchema,
    decode,
    encode_key,
    encode_value,
    guid_of,
)


@pytest.mark.parametrize(
    ("key", "encoded"),
    [
        (SchemaKey("a", 1), b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}'),
        (ConfigKey(None), b'{"keytype":"CONFIG","subject":null,"magic":0}'),
        (ModeKey("a"), b'{"keytype":"MODE","subject":"a","magic":0}'),
        (DeleteSubjectKey("a"), b'{"keytype":"DELETE_SUBJECT","subject":"a","magic":0}'),
        (ClearSubjectKey("a"), b'{"keytype":"CLEAR_SUBJECT","subject":"a","magic":0}'),
        (ContextKey(".c"), b'{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}'),
    ],
)
def test_keys_have_one_order_of_fields_and_are_read_in_any(key: object, encoded: bytes) -> None:
    assert encode_key(key) == encoded  # type: ignore[arg-type]
    found = decode(encoded, None)
    assert found == (key, None)
    turned = b"{" + b",".join(reversed(encoded.strip(b"{}").split(b","))) + b"}"
    assert decode(turned, None) == found


def test_values_leave_out_what_is_the_default() -> None:
    plain = StoredSchema("a", 1, 7, text='"int"')
    assert encode_value(plain) == b'{"subject":"a","version":1,"id":7,"schema":"\\"int\\"","deleted":false}'
    full = StoredSchema("a", 1, 7, kind="JSON", references=(Reference("n", "b", 2),), text="{}", deleted=True)
    assert encode_value(full) == (
        b'{"subject":"a","version":1,"id":7,"schemaType":"JSON","references":[{"name":"n","subject":"b","version":2}],'
        b'"schema":"{}","deleted":true}'
    )
    for each in (plain, full):
        assert decode(encode_key(SchemaKey("a", 1)), encode_value(each)) == (SchemaKey("a", 1), each)


@pytest.mark.parametrize("key", [b"", b"x", b"[]", b'{"keytype":"NOOP","magic":0}', b'{"keytype":"OTHER"}', b"\xff"])
def test_records_without_meaning_are_passed_over(key: bytes) -> None:
    assert decode(key, b"{}") is None


def test_a_value_that_is_not_a_schema_is_passed_over() -> None:
    assert decode(encode_key(SchemaKey("a", 1)), b'{"subject":1}') is None


def test_a_guid_is_the_digest_of_text_and_references() -> None:
    """Of a text alone it is the MD5 of the text."""
    assert guid_of("a") == "0cc175b9-c0f1-b6a8-31c3-99e269772661"
    assert guid_of("a", (Reference("n", "s", 1),)) != guid_of("a")
    assert guid_of("a", (), {"properties": {"x": "1"}}) != guid_of("a", (), {})
