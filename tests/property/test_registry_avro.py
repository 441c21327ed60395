"""The Avro rules agree with the checker of Apache's own library about any two schemas."""

from __future__ import annotations

import json
from typing import Any

from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.schema import parse as parse_by_apache
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.registry.avro_compatibility import incompatibilities
from barnabas.registry.avro_schema import canonical, parse

PRIMITIVES = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "bytes", "string"])
SYMBOLS = st.lists(st.sampled_from(["A", "B", "C"]), min_size=1, max_size=3, unique=True)


def enums() -> st.SearchStrategy[Any]:
    return st.builds(
        lambda name, symbols: {"type": "enum", "name": name, "symbols": symbols}, st.sampled_from(["E", "F"]), SYMBOLS
    )


def fixed() -> st.SearchStrategy[Any]:
    return st.builds(lambda size: {"type": "fixed", "name": "X", "size": size}, st.integers(1, 3))


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda values: {"type": "map", "values": values}, inner),
        st.builds(
            lambda kind: ["null", kind], inner.filter(lambda kind: kind != "null" and not isinstance(kind, list))
        ),
        st.lists(PRIMITIVES, min_size=1, max_size=3, unique=True),
    )


KINDS = st.recursive(PRIMITIVES, containers, max_leaves=3)


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """At most one definition of each name, as a schema must have it."""
    kinds = draw(st.lists(KINDS, max_size=3))
    if draw(st.booleans()):
        kinds.append(draw(enums()))
    if draw(st.booleans()):
        kinds.append(draw(fixed()))
    names = draw(st.permutations(["a", "b", "c", "d", "e"]))
    fields: list[dict[str, Any]] = []
    for name, kind in zip(names, kinds, strict=False):
        field = {"name": name, "type": kind}
        if draw(st.booleans()) and kind == "int":
            field["default"] = 1
        if draw(st.booleans()) and isinstance(kind, list) and kind[0] == "null":
            field["default"] = None
        fields.append(field)
    return {"type": "record", "name": "R", "fields": fields}


@given(st.one_of(records(), KINDS), st.one_of(records(), KINDS))
@settings(max_examples=300)
def test_two_schemas_are_compatible_if_the_library_says_so(reader: Any, writer: Any) -> None:
    texts = json.dumps(reader), json.dumps(writer)
    ours = incompatibilities(parse(texts[0]), parse(texts[1]))
    theirs = ReaderWriterCompatibilityChecker().get_compatibility(parse_by_apache(texts[0]), parse_by_apache(texts[1]))
    assert (not ours) is (theirs.compatibility is SchemaCompatibilityType.compatible), (ours, theirs.messages)


@given(st.one_of(records(), KINDS))
def test_the_kept_text_means_the_same_and_stays_as_it_is(said: Any) -> None:
    text = canonical(parse(json.dumps(said)))
    assert canonical(parse(text)) == text
    assert not incompatibilities(parse(text), parse(json.dumps(said)))
