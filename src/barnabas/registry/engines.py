"""Parses, compares and formats schemas of every kind. Pure functions; a worker process calls them, never the service.

Each kind has a module that parses and one that compares; here is what they have in common: references, the levels of
compatibility, and the messages of a failed check.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from barnabas.registry.incompatibility import Incompatibility, InvalidSchema
from barnabas.registry.records import AVRO, JSON, PROTOBUF

MESSAGES_MAX: Final = 100  # of one comparison
LENIENT: Final = "LENIENT"


class Source(msgspec.Struct, frozen=True):
    kind: str
    text: str
    references: tuple[tuple[str, str], ...] = ()  # names and texts, imported ones before those that import them


class Parsed(msgspec.Struct, frozen=True):
    text: str  # canonical
    fingerprint: str  # the same for texts that mean the same


class ParseJob(msgspec.Struct, frozen=True, tag="parse"):
    source: Source
    normalize: bool = False
    is_new: bool = True  # checked more strictly than a schema that is stored already


class CheckJob(msgspec.Struct, frozen=True, tag="check"):
    """Compare a new schema with earlier ones, in ascending order of their versions."""

    source: Source
    earlier: tuple[tuple[int, Source], ...]
    level: str
    policy: str = "STRICT"


class FormatJob(msgspec.Struct, frozen=True, tag="format"):
    source: Source
    format: str


Job = ParseJob | CheckJob | FormatJob


def perform(job: Job) -> Any:
    """Raises InvalidSchema."""
    match job:
        case ParseJob():
            return parse(job)
        case CheckJob():
            return check(job)
        case FormatJob():
            return formatted(job)


def parse(job: ParseJob) -> Parsed:
    schema = _parsed(job.source, is_new=job.is_new)
    if job.source.kind == PROTOBUF:
        return Parsed(schema.canonical(normalize=job.normalize), _digest(schema.fingerprint))
    if job.source.kind == JSON:
        from barnabas.registry import json_schema

        if job.is_new:
            schema.check()
        text = json_schema.canonical(schema, normalize=job.normalize)
        return Parsed(text, _digest(json_schema.canonical(schema, normalize=True).encode()))
    from barnabas.registry import avro_schema

    text = avro_schema.canonical(schema, normalize=job.normalize)
    return Parsed(text, _digest(avro_schema.canonical(schema, normalize=True).encode()))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _parsed(source: Source, *, is_new: bool = False) -> Any:
    if source.kind == AVRO:
        from barnabas.registry import avro_schema

        return avro_schema.parse(source.text, [text for _, text in source.references], checks_defaults=is_new)
    if source.kind == JSON:
        from barnabas.registry.json_schema import JsonSchema

        return JsonSchema(source.text, dict(source.references))
    if source.kind == PROTOBUF:
        from barnabas.registry.protobuf_schema import ProtobufSchema

        return ProtobufSchema(source.text, dict(source.references))
    raise InvalidSchema(f"the schema type {source.kind!r} is not known: it is AVRO, JSON or PROTOBUF")


def check(job: CheckJob) -> list[str]:
    """Messages about the newest earlier version that is incompatible; none if all are compatible."""
    if job.level == "NONE":
        return []
    earlier = job.earlier if job.level.endswith("_TRANSITIVE") else job.earlier[-1:]
    if not earlier:
        return []
    new = _parsed(job.source)
    for version, source in reversed(earlier):
        messages = _messages(job, new, source)
        if messages:
            return [
                *messages[:MESSAGES_MAX],
                f"{{oldSchemaVersion: {version}}}",
                f"{{oldSchema: '{source.text}'}}",
                f"{{compatibility: '{job.level}'}}",
            ]
    return []


def _messages(job: CheckJob, new: Any, source: Source) -> list[str]:
    if source.kind != job.source.kind:
        other = Incompatibility("TYPE_MISMATCH", "/", f"the schema type was {source.kind} and is {job.source.kind}")
        return [str(other)]
    old = _parsed(source)
    compare = _comparison(job)
    direction = job.level.removesuffix("_TRANSITIVE")
    found: list[Incompatibility] = []
    if direction in ("BACKWARD", "FULL"):
        found += compare(new, old)
    if direction in ("FORWARD", "FULL"):
        found += compare(old, new)
    return [str(each) for each in dict.fromkeys(found)]


def _comparison(job: CheckJob) -> Callable[[Any, Any], Sequence[Incompatibility]]:
    """A function of the schema that reads and the schema that wrote."""
    if job.source.kind == AVRO:
        from barnabas.registry import avro_compatibility

        return avro_compatibility.incompatibilities
    if job.source.kind == PROTOBUF:
        from barnabas.registry import protobuf_compatibility

        return protobuf_compatibility.incompatibilities
    from barnabas.registry import json_compatibility

    lenient = job.policy == LENIENT
    return lambda reader, writer: json_compatibility.incompatibilities(reader, writer, lenient=lenient)


def formatted(job: FormatJob) -> str:
    """The text in a format of the API: ``serialized`` for Protobuf, ``resolved`` for Avro; else as it is kept."""
    schema = _parsed(job.source)
    if job.source.kind == PROTOBUF and job.format == "serialized":
        return str(schema.serialized)
    if job.source.kind == AVRO and job.format == "resolved":
        from barnabas.registry import avro_schema

        return avro_schema.resolved(schema)
    return job.source.text
