"""Every declaration against the facts of Kafka's own schemas.

``tests/data/kafka-4.3-schemas.json.gz`` holds names, types, versions, nullability, tags and defaults, and no prose.
The ``java`` test derives it anew from Kafka's client jar and compares.
"""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.model.ids import ZERO_UUID
from barnabas.wire.api import FLEXIBLE_SINCE, NEVER_FLEXIBLE, ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages import declared, request_of, response_of
from barnabas.wire.schema import TAGS_OF_OURS, Array, Field, Nested

FACTS = Path(__file__).parents[2] / "data" / "kafka-4.3-schemas.json.gz"
VERSION_MAX = 2**15 - 1
KEPT = ("name", "type", "versions", "nullableVersions", "default", "ignorable", "tag", "taggedVersions")


def derive(jar: Path) -> dict[str, Any]:
    """The facts of all message schemas in the jar, without their prose."""
    facts = {}
    with zipfile.ZipFile(jar) as archive:
        for name in sorted(archive.namelist()):
            if name.startswith("common/message/") and name.endswith(".json"):
                text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                schema = json.loads(text)
                facts[schema["name"]] = {
                    "apiKey": schema.get("apiKey"),
                    "versions": schema["validVersions"],
                    "flexible": schema.get("flexibleVersions", "none"),
                    "unstable": schema.get("latestVersionUnstable", False),
                    "fields": [_kept(field) for field in schema.get("fields", ())],
                    "structs": {
                        struct["name"]: [_kept(field) for field in struct["fields"]]
                        for struct in schema.get("commonStructs", ())
                    },
                }
    return facts


def _kept(field: dict[str, Any]) -> dict[str, Any]:
    kept = {key: field[key] for key in KEPT if key in field}
    if "fields" in field:
        kept["fields"] = [_kept(inner) for inner in field["fields"]]
    return kept


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(gzip.decompress(FACTS.read_bytes()))
    return facts


def parsed(versions: str) -> range:
    if versions == "none":
        return range(0)
    if versions.endswith("+"):
        return range(int(versions[:-1]), VERSION_MAX + 1)
    first, _, last = versions.partition("-")
    return range(int(first), int(last or first) + 1)


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def stable_versions(schemas: dict[str, Any], name: str) -> range:
    versions = parsed(schemas[name]["versions"])
    request = name.removesuffix("Response") + "Request" if name.endswith("Response") else name
    return versions[:-1] if schemas[request]["unstable"] else versions


def structs_of(fields: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for field in fields:
        if "fields" in field:
            yield field["type"].removeprefix("[]"), field["fields"]
            yield from structs_of(field["fields"])


def expected_default(fact: dict[str, Any]) -> Any:
    kind, default = fact["type"], fact.get("default")
    if default == "null" or kind == "records":
        return None
    if kind.startswith("[]"):
        return ()
    match kind:
        case "string":
            return default or ""
        case "bytes":
            return b""
        case "bool":
            return str(default).lower() == "true"
        case "uuid":
            return ZERO_UUID
        case "float64":
            return float(default or 0)
        case _ if kind[0].isupper():
            return "struct"
        case _:
            return int(str(default or 0), 0)


def default_of(field: Field) -> Any:
    default = field.default_value()
    return "struct" if isinstance(default, Message) else default


def assert_field(field: Field, fact: dict[str, Any], versions: range) -> None:
    assert field.name == snake_case(fact["name"])
    assert field.type.name == fact["type"]
    assert default_of(field) == expected_default(fact), field.name
    tagged = parsed(fact.get("taggedVersions", "none"))
    for version in versions:
        assert field.is_in(version) == (version in parsed(fact["versions"])), (field.name, version)
        if not field.is_in(version):
            assert field.ignorable == (fact.get("ignorable") in (True, "true")), field.name
            continue
        assert field.is_nullable(version) == (version in parsed(fact.get("nullableVersions", "none"))), field.name
        assert field.is_tagged(version) == (version in tagged), field.name
    if field.tag is not None or tagged:
        assert field.tag == fact["tag"]


def versions_of_structs(cls: type[Message], versions: range) -> dict[type[Message], set[int]]:
    """In which versions each nested struct can occur at all: only there do its fields have to agree."""
    found: dict[type[Message], set[int]] = {}
    todo = [(cls, set(versions))]
    while todo:
        owner, reached = todo.pop()
        new = reached - found.get(owner, set())
        if not new:
            continue
        found[owner] = found.get(owner, set()) | new
        for field in owner.fields:
            kind = field.type.element if isinstance(field.type, Array) else field.type
            if isinstance(kind, Nested):
                todo.append((kind.target, {version for version in new if field.is_in(version)}))
    return found


def test_a_declaration_says_what_kafkas_schema_says(message_class: type[Message], schemas: dict[str, Any]) -> None:
    schema = schemas[message_class.__name__]
    versions = stable_versions(schemas, message_class.__name__)
    assert message_class.versions == versions
    assert message_class.api_key == schema["apiKey"]
    flexible = parsed(schema["flexible"])
    assert message_class.flexible_since == (flexible.start if flexible else NEVER_FLEXIBLE)
    structs = {message_class.__name__: schema["fields"], **schema["structs"], **dict(structs_of(schema["fields"]))}
    for common in schema["structs"].values():
        structs |= dict(structs_of(common))
    reached = versions_of_structs(message_class, versions)
    assert len(reached) == len({cls.__name__ for cls in reached})
    for cls, in_versions in reached.items():
        span = range(min(in_versions), max(in_versions) + 1)
        facts = [
            fact for fact in structs[cls.__name__] if any(version in parsed(fact["versions"]) for version in versions)
        ]
        fields = [field for field in cls.fields if field.tag is None or field.tag < TAGS_OF_OURS]
        assert [field.name for field in fields] == [snake_case(fact["name"]) for fact in facts]
        for field, fact in zip(fields, facts, strict=True):
            assert_field(field, fact, span)


def test_every_api_of_kafka_has_its_number_and_its_flexible_version(schemas: dict[str, Any]) -> None:
    requests = {name: schema for name, schema in schemas.items() if name.endswith("Request")}
    named = {schema["apiKey"]: snake_case(name.removesuffix("Request")).upper() for name, schema in requests.items()}
    assert named == {int(api_key): api_key.name for api_key in ApiKey}
    for schema in requests.values():
        flexible = parsed(schema["flexible"])
        assert FLEXIBLE_SINCE[schema["apiKey"]] == (flexible.start if flexible else NEVER_FLEXIBLE)


def test_every_api_of_kafka_is_declared_but_for_those_of_features_that_are_not_there() -> None:
    missing = {api_key.name for api_key in ApiKey if api_key not in declared()}
    left_out = re.compile(r"SHARE|STREAMS_GROUP|DELEGATION_TOKEN|TELEMETRY")
    before_kraft = {"LEADER_AND_ISR", "STOP_REPLICA", "UPDATE_METADATA", "CONTROLLED_SHUTDOWN"}
    assert {name for name in missing if not left_out.search(name)} <= before_kraft


def test_request_and_response_of_an_api_have_the_same_versions() -> None:
    for api_key in declared():
        request, response = request_of(api_key), response_of(api_key)
        assert request.api_key is response.api_key is api_key
        assert request.versions == response.versions
        assert request.flexible_since == response.flexible_since == FLEXIBLE_SINCE[api_key]


def test_what_is_not_declared_is_not_found() -> None:
    with pytest.raises(LookupError, match="STREAMS_GROUP_HEARTBEAT"):
        request_of(ApiKey.STREAMS_GROUP_HEARTBEAT)


def test_every_reference_to_a_struct_is_settled(message_class: type[Message]) -> None:
    for cls in versions_of_structs(message_class, message_class.versions):
        for field in cls.fields:
            kind = field.type.element if isinstance(field.type, Array) else field.type
            assert not isinstance(kind, Nested) or issubclass(kind.target, Message)


@pytest.mark.java
def test_the_facts_are_those_of_kafkas_jar(schemas: dict[str, Any]) -> None:
    from tools.kafka_jars import KAFKA_VERSION, kafka_libraries

    assert derive(kafka_libraries() / f"kafka-clients-{KAFKA_VERSION}.jar") == schemas
