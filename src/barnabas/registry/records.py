"""Records of the topic ``_schemas`` as Confluent's registry writes them: JSON keys in one order of fields, JSON values.

Keys are read in any order of their fields, since other registries write another one; what a record means is its key,
not the key's bytes. Records of unknown kinds are kept out of the state and left in the topic.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

TOPIC: Final = "_schemas"
AVRO: Final = "AVRO"
JSON: Final = "JSON"
PROTOBUF: Final = "PROTOBUF"
KINDS: Final = (AVRO, JSON, PROTOBUF)

_encode: Final = msgspec.json.Encoder().encode


class Reference(msgspec.Struct, frozen=True):
    name: str
    subject: str
    version: int


class StoredSchema(msgspec.Struct, frozen=True, omit_defaults=True, rename={"kind": "schemaType", "text": "schema"}):
    """One version of a subject; the value of a SCHEMA record."""

    subject: str
    version: int
    id: int
    md5: str | None = None
    kind: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: dict[str, Any] | None = None
    ruleSet: dict[str, Any] | None = None  # noqa: N815
    text: str = ""
    deleted: bool = False

    @property
    def guid(self) -> str:
        return guid_of(self.text, self.references, self.metadata, self.ruleSet)


class SchemaKey(msgspec.Struct, frozen=True):
    subject: str
    version: int


class ConfigKey(msgspec.Struct, frozen=True):
    subject: str | None


class ModeKey(msgspec.Struct, frozen=True):
    subject: str | None


class DeleteSubjectKey(msgspec.Struct, frozen=True):
    subject: str


class ClearSubjectKey(msgspec.Struct, frozen=True):
    subject: str | None


class ContextKey(msgspec.Struct, frozen=True):
    context: str


Key = SchemaKey | ConfigKey | ModeKey | DeleteSubjectKey | ClearSubjectKey | ContextKey


class _AnyKey(msgspec.Struct):
    keytype: str
    subject: str | None = None
    version: int = 0
    context: str = ""


_decode_key: Final = msgspec.json.Decoder(_AnyKey).decode
_decode_schema: Final = msgspec.json.Decoder(StoredSchema).decode
_decode_any: Final = msgspec.json.Decoder(dict[str, Any]).decode


def decode(key: bytes | None, value: bytes | None) -> tuple[Key, StoredSchema | dict[str, Any] | None] | None:
    """What a record says; None for one without meaning to the state: a NOOP, another kind, not JSON."""
    try:
        found = _decode_key(key or b"")
        match found.keytype:
            case "SCHEMA" if found.subject is not None:
                return SchemaKey(found.subject, found.version), _decode_schema(value) if value else None
            case "CONFIG":
                return ConfigKey(found.subject or None), _decode_any(value) if value else None
            case "MODE":
                return ModeKey(found.subject or None), _decode_any(value) if value else None
            case "DELETE_SUBJECT" if found.subject is not None:
                return DeleteSubjectKey(found.subject), _decode_any(value) if value else None
            case "CLEAR_SUBJECT":
                return ClearSubjectKey(found.subject or None), _decode_any(value) if value else None
            case "CONTEXT":
                return ContextKey(found.context), _decode_any(value) if value else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return None


def encode_key(key: Key) -> bytes:
    match key:
        case SchemaKey():
            said: dict[str, Any] = {"keytype": "SCHEMA", "subject": key.subject, "version": key.version, "magic": 1}
        case ConfigKey():
            said = {"keytype": "CONFIG", "subject": key.subject, "magic": 0}
        case ModeKey():
            said = {"keytype": "MODE", "subject": key.subject, "magic": 0}
        case DeleteSubjectKey():
            said = {"keytype": "DELETE_SUBJECT", "subject": key.subject, "magic": 0}
        case ClearSubjectKey():
            said = {"keytype": "CLEAR_SUBJECT", "subject": key.subject, "magic": 0}
        case ContextKey():
            said = {"keytype": "CONTEXT", "tenant": "default", "context": key.context, "magic": 0}
    return _encode(said)


def encode_value(value: StoredSchema | dict[str, Any] | None) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, StoredSchema):
        return _encode(value)
    said: dict[str, Any] = {"subject": value.subject, "version": value.version, "id": value.id}
    if value.md5 is not None:
        said["md5"] = value.md5
    if value.kind != AVRO:
        said["schemaType"] = value.kind
    if value.references:
        said["references"] = value.references
    if value.metadata is not None:
        said["metadata"] = value.metadata
    if value.ruleSet is not None:
        said["ruleSet"] = value.ruleSet
    return _encode({**said, "schema": value.text, "deleted": value.deleted})


def guid_of(
    text: str,
    references: tuple[Reference, ...] = (),
    metadata: dict[str, Any] | None = None,
    rule_set: dict[str, Any] | None = None,
) -> str:
    """The same for the same schema in every registry: the digest that Confluent's registry calculates."""
    digest = hashlib.md5(text.encode(), usedforsecurity=False)
    for reference in references:
        digest.update(reference.name.encode())
        digest.update(reference.subject.encode())
        digest.update(reference.version.to_bytes(4, "big", signed=True))
    if metadata is not None:
        digest.update(b"\1")
        _digest_metadata(digest, metadata)
    if rule_set is not None:
        digest.update(b"\1" + _encode(rule_set))
    shown = digest.hexdigest()
    return f"{shown[:8]}-{shown[8:12]}-{shown[12:16]}-{shown[16:20]}-{shown[20:]}"


def _digest_metadata(digest: Any, metadata: dict[str, Any]) -> None:
    for key, values in sorted((metadata.get("tags") or {}).items()):
        digest.update(key.encode())
        for each in sorted(values):
            digest.update(str(each).encode())
    for key, value in sorted((metadata.get("properties") or {}).items()):
        digest.update(key.encode() + str(value).encode())
    for each in sorted(metadata.get("sensitive") or ()):
        digest.update(str(each).encode())
