"""Decides what may be added to ``_schemas``: each function takes the state and a request and returns records. Pure.

The caller has parsed the schema and compared it with earlier versions before; here are ids, versions, modes, deletes
and references. A refusal is a RestError.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from barnabas.registry import errors
from barnabas.registry.names import DEFAULT_CONTEXT, context_of, normal, parse
from barnabas.registry.records import (
    AVRO,
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DeleteSubjectKey,
    Key,
    ModeKey,
    Reference,
    SchemaKey,
    StoredSchema,
    guid_of,
)
from barnabas.registry.state import State
from barnabas.rest.errors import RestError

LEVELS: Final = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
IMPORTING: Final = ("IMPORT", "FORWARD")
ID_MAX: Final = 2**31 - 1

Record: TypeAlias = "tuple[Key, StoredSchema | dict[str, Any] | None]"


class Draft(msgspec.Struct, frozen=True):
    """A schema that is to be registered or looked up, with its canonical text."""

    subject: str
    text: str
    kind: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = None
    id: int = -1  # chosen by the caller in the mode IMPORT
    version: int = 0

    @property
    def guid(self) -> str:
        return guid_of(self.text, self.references, self.metadata, self.rule_set)


class Written(NamedTuple):
    """What a request answers, and the records that must be in the topic before it does."""

    answer: Any
    records: list[Record]


def check_register_mode(state: State, subject: str, *, has_id: bool) -> None:
    mode = state.mode_in_scope(subject)
    where = f"Subject {subject} in context {context_of(subject)}"
    if mode.startswith("READONLY"):
        raise errors.not_permitted(f"{where} is in read-only mode")
    if has_id and mode not in IMPORTING:
        raise errors.not_permitted(f"{where} is not in import mode")
    if not has_id and mode != "READWRITE":
        raise errors.not_permitted(f"{where} is not in read-write mode")


def same_version(state: State, draft: Draft, *, deleted: bool = False) -> StoredSchema | None:
    """The version of the subject with the same text, references and metadata; the newest if there are several."""
    found = state.by_guid(draft.guid, context=context_of(draft.subject))
    of_subject = [each for each in found if each.subject == draft.subject and (deleted or not each.deleted)]
    same_kind = [each for each in of_subject if each.kind == draft.kind]
    return max(same_kind, key=lambda each: each.version, default=None)


def register(state: State, draft: Draft) -> Written:
    """A new version; the caller has found none that is the same."""
    context = context_of(draft.subject)
    is_import = state.mode_in_scope(draft.subject) in IMPORTING
    check_register_mode(state, draft.subject, has_id=draft.id >= 0)
    versions = state.versions(draft.subject)
    next_version = versions[-1].version + 1 if versions else 1
    if draft.version > 0 and draft.version != next_version and not is_import:
        raise errors.invalid_schema(f"version {draft.version} is not one more than the previous version")
    known = [each for each in state.by_guid(draft.guid, context=context) if each.kind == draft.kind]
    schema_id = draft.id
    if schema_id >= 0:
        _check_id(state, draft, context)
    elif known:
        schema_id = known[0].id
    else:
        schema_id = state.max_id(context) + 1
        if schema_id > ID_MAX:
            raise errors.store_failed("all schema ids are used")
    schema = StoredSchema(
        subject=draft.subject,
        version=draft.version or next_version,
        id=schema_id,
        kind=draft.kind,
        references=draft.references,
        metadata=draft.metadata,
        ruleSet=draft.rule_set,
        text=draft.text,
    )
    records: list[Record] = []
    if context != DEFAULT_CONTEXT and context not in state.contexts:
        records.append((ContextKey(context), {"tenant": "default", "context": context}))
    # A soft-deleted version of the same schema gives way to the new one, unless another schema refers to it.
    records += [
        (SchemaKey(draft.subject, each.version), None)
        for each in versions
        if each.deleted
        and each.id == schema_id
        and each.version < schema.version
        and not state.referrers(draft.subject, each.version, deleted=True)
    ]
    return Written(schema, [*records, (SchemaKey(schema.subject, schema.version), schema)])


def _check_id(state: State, draft: Draft, context: str) -> None:
    for each in state.by_id(draft.id, context=context):
        if context_of(each.subject) == context and each.guid != draft.guid:
            raise errors.not_permitted(
                f"Overwrite new schema with id {draft.id} in context {context} is not permitted."
            )


def check_references(state: State, draft: Draft) -> None:
    """Every schema that the draft refers to must exist and not be soft-deleted."""
    context = context_of(draft.subject)
    for each in draft.references:
        if state.version(normal(each.subject, context=context), each.version) is None:
            raise errors.invalid_schema(
                f"no schema exists for the reference {each.name!r}: {each.subject} {each.version}"
            )


def _check_writable(state: State, subject: str) -> None:
    if state.mode_in_scope(subject).startswith("READONLY"):
        raise errors.not_permitted(f"Subject {subject} in context {context_of(subject)} is in read-only mode")


def delete_version(state: State, subject: str, version: int, *, permanent: bool) -> Written:
    found = state.version(subject, version, deleted=True) if version > 0 else state.version(subject, -1)
    if found is None:
        if not state.has_subject(subject, deleted=True):
            raise errors.subject_not_found(subject)
        raise errors.version_not_found(version)
    if found.deleted and not permanent:
        raise errors.version_soft_deleted(subject, found.version)
    _check_writable(state, subject)
    if state.referrers(subject, found.version, deleted=permanent):
        raise errors.reference_exists(subject, found.version)
    key = SchemaKey(subject, found.version)
    if not permanent:
        return Written(found.version, [(key, replace(found, deleted=True))])
    if not found.deleted:
        raise errors.version_not_soft_deleted(subject, found.version)
    records: list[Record] = [(key, None)]
    if len(state.versions(subject)) == 1:
        records += _without_settings(state, subject)
    return Written(found.version, records)


def delete_subject(state: State, subject: str, *, permanent: bool) -> Written:
    versions = state.versions(subject)
    if not versions:
        raise errors.subject_not_found(subject)
    live = [each for each in versions if not each.deleted]
    if not live and not permanent:
        raise errors.subject_soft_deleted(subject)
    _check_writable(state, subject)
    gone = versions if permanent else live
    for each in gone:
        if any(other.subject != subject for other in state.referrers(subject, each.version, deleted=permanent)):
            raise errors.reference_exists(subject, each.version)
    if live and permanent:
        raise errors.subject_not_soft_deleted(subject)
    numbers = [each.version for each in gone]
    if not permanent:
        return Written(numbers, [(DeleteSubjectKey(subject), {"subject": subject, "version": numbers[-1]})])
    # In descending order: a version may refer to an earlier one of its subject.
    records: list[Record] = [(SchemaKey(subject, each), None) for each in reversed(numbers)]
    return Written(numbers, records + _without_settings(state, subject))


def _without_settings(state: State, subject: str) -> list[Record]:
    records: list[Record] = []
    if state.mode(subject) is not None:
        records.append((ModeKey(subject), None))
    if state.config(subject) is not None:
        records.append((ConfigKey(subject), None))
    return records


def set_config(state: State, subject: str | None, changes: Mapping[str, Any]) -> Written:
    """Settings that are not named stay; one that is null is removed."""
    level = changes.get("compatibilityLevel")
    if level is not None and level not in LEVELS:
        raise errors.invalid_level(level, LEVELS)
    config = {**(state.config(subject) or {}), **changes}
    config = {name: value for name, value in config.items() if value is not None}
    return Written(config, [(ConfigKey(subject), config)])


def delete_config(state: State, subject: str | None) -> Written:
    config = state.config(subject)
    if config is None:
        if subject is None:
            return Written({}, [])
        raise errors.no_subject_config(subject) if state.has_subject(subject) else errors.subject_not_found(subject)
    return Written(config, [(ConfigKey(subject), None)])


def set_mode(state: State, subject: str | None, mode: str, *, force: bool) -> Written:
    mode = mode.upper()
    if mode not in MODES:
        raise errors.invalid_mode(mode, MODES)
    records: list[Record] = []
    if mode == "IMPORT" and state.mode_in_scope(subject) != "IMPORT" and not force:
        under = state.subjects_under(subject)
        if any(state.has_subject(each) for each in under):
            raise errors.not_permitted("Cannot import since found existing subjects")
        for name in under:
            for each in state.versions(name):
                if state.referrers(name, each.version, deleted=True):
                    raise errors.reference_exists(name, each.version)
                records.append((SchemaKey(name, each.version), None))
        records.append((ClearSubjectKey(subject), {"subject": subject}))
    return Written({"mode": mode}, [*records, (ModeKey(subject), {"mode": mode})])


def delete_mode(state: State, subject: str | None, *, recursive: bool) -> Written:
    mode = state.mode(subject)
    if mode is None:
        if subject is None:
            return Written({"mode": state.mode_in_scope(None)}, [])
        raise errors.no_subject_mode(subject) if state.has_subject(subject) else errors.subject_not_found(subject)
    records: list[Record] = [(ModeKey(subject), None)]
    if recursive and subject is not None and not parse(subject).name:
        records += [(ModeKey(each), None) for each in state.subjects_under(subject) if state.mode(each) is not None]
    return Written({"mode": mode}, records)


def delete_context(state: State, context: str) -> Written:
    if context not in state.contexts or context == DEFAULT_CONTEXT:
        raise errors.subject_not_found(f":{context}:")
    if state.subjects_under(f":{context}:"):
        raise RestError(errors.UNPROCESSABLE, f"the context {context} has subjects", code=errors.CONTEXT_NOT_EMPTY)
    return Written(None, [(ContextKey(context), None)])
