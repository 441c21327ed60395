"""What ``_schemas`` says so far: subjects and their versions, ids, settings and modes. Pure; fed record by record.

Versions and settings are found by their subject, schemas by id, by digest and by the versions that refer to them. Each
context has ids of its own, from 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from barnabas.registry.names import ANY_CONTEXT, DEFAULT_CONTEXT, SubjectName, context_of, normal, parse
from barnabas.registry.records import (
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DeleteSubjectKey,
    Key,
    ModeKey,
    SchemaKey,
    StoredSchema,
    decode,
)

E = TypeVar("E")

DEFAULT_LEVEL: Final = "BACKWARD"
DEFAULT_MODE: Final = "READWRITE"


class State:
    def __init__(self) -> None:
        self.next_offset = 0  # of the first record that was not applied yet
        self.contexts: set[str] = set()
        self._versions: dict[str, dict[int, StoredSchema]] = {}
        self._by_id: dict[tuple[str, int], dict[SchemaKey, None]] = {}
        self._by_guid: dict[tuple[str, str], dict[SchemaKey, None]] = {}
        self._referrers: dict[SchemaKey, set[SchemaKey]] = {}
        self._max_ids: dict[str, int] = {}
        self._configs: dict[str | None, dict[str, Any]] = {}
        self._modes: dict[str | None, str] = {}

    # --- records --------------------------------------------------------------------------------------------------

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """A record of the topic, in its order."""
        found = decode(key, value)
        if found is not None:
            self.apply_entry(*found)

    def apply_entry(self, key: Key, value: StoredSchema | dict[str, Any] | None) -> None:
        match key:
            case SchemaKey():
                self._put(key, value if isinstance(value, StoredSchema) else None)
            case ConfigKey():
                config = (
                    {name: each for name, each in value.items() if name != "subject"}
                    if isinstance(value, dict)
                    else None
                )
                _put_or_drop(self._configs, key.subject, config)
            case ModeKey():
                mode = value.get("mode") if isinstance(value, dict) else None
                _put_or_drop(self._modes, key.subject, None if mode is None else str(mode))
            case DeleteSubjectKey() if isinstance(value, dict):
                self._delete_up_to(key.subject, int(value.get("version", 0)))
            case ClearSubjectKey():
                self._clear(key.subject)
            case ContextKey():
                (self.contexts.discard if value is None else self.contexts.add)(key.context)

    def _put(self, key: SchemaKey, schema: StoredSchema | None) -> None:
        versions = self._versions.setdefault(key.subject, {})
        before = versions.pop(key.version, None)
        if before is not None:
            self._forget(key, before)
        if schema is not None:
            is_newest = not versions or key.version > next(reversed(versions))
            versions[key.version] = schema
            if not is_newest:
                self._versions[key.subject] = dict(sorted(versions.items()))
            self._remember(key, schema)
        elif not versions:
            del self._versions[key.subject]

    def _remember(self, key: SchemaKey, schema: StoredSchema) -> None:
        context = context_of(key.subject)
        if context != DEFAULT_CONTEXT:
            self.contexts.add(context)
        self._max_ids[context] = max(self._max_ids.get(context, 0), schema.id)
        self._by_id.setdefault((context, schema.id), {})[key] = None
        self._by_guid.setdefault((context, schema.guid), {})[key] = None
        if schema.references:
            for target in self.targets(schema):
                self._referrers.setdefault(target, set()).add(key)

    def _forget(self, key: SchemaKey, schema: StoredSchema) -> None:
        context = context_of(key.subject)
        _drop(self._by_id, (context, schema.id), key)
        _drop(self._by_guid, (context, schema.guid), key)
        for target in self.targets(schema):
            referrers = self._referrers[target]
            referrers.discard(key)
            if not referrers:
                del self._referrers[target]

    def _delete_up_to(self, subject: str, version: int) -> None:
        for each in self.versions(subject, deleted=False):
            if each.version <= version:
                self._versions[subject][each.version] = _deleted(each)

    def _clear(self, subject: str | None) -> None:
        for name in self.subjects_under(subject):
            for each in [entry for entry in self.versions(name) if entry.deleted]:
                self._put(SchemaKey(name, each.version), None)

    # --- questions ------------------------------------------------------------------------------------------------

    def subjects(self, prefix: str = ":*:", *, deleted: bool = False, deleted_only: bool = False) -> list[str]:
        """Names in order; of those whose versions are all soft-deleted only if they are asked for."""
        wanted = parse(prefix)
        found = []
        for subject, versions in self._versions.items():
            context, name = parse(subject)
            if wanted.context not in (ANY_CONTEXT, context) or not name.startswith(wanted.name):
                continue
            is_deleted = all(each.deleted for each in versions.values())
            if is_deleted is deleted_only or (deleted and not deleted_only):
                found.append(subject)
        return sorted(found)

    def subjects_under(self, subject: str | None) -> list[str]:
        """The subject, or all of the context that it names, or all; soft-deleted ones too."""
        if subject is None:
            return list(self._versions)
        context, name = parse(subject)
        if name:
            return [subject] if subject in self._versions else []
        return [each for each in self._versions if context_of(each) == context]

    def has_subject(self, subject: str, *, deleted: bool = False) -> bool:
        return any(deleted or not each.deleted for each in self._versions.get(subject, {}).values())

    def versions(self, subject: str, *, deleted: bool = True) -> list[StoredSchema]:
        """All versions in ascending order; without the soft-deleted ones if ``deleted`` is false."""
        return [each for each in self._versions.get(subject, {}).values() if deleted or not each.deleted]

    def version(self, subject: str, version: int, *, deleted: bool = False) -> StoredSchema | None:
        """One version, -1 for the latest."""
        if version < 0:
            found = self.versions(subject, deleted=deleted)
            return found[-1] if found else None
        entry = self._versions.get(subject, {}).get(version)
        return entry if entry is not None and (deleted or not entry.deleted) else None

    def by_id(self, schema_id: int, *, context: str = DEFAULT_CONTEXT) -> list[StoredSchema]:
        """All versions with this id; of another context if the given one has none."""
        keys = self._by_id.get((context, schema_id))
        if keys is None and context == DEFAULT_CONTEXT:
            others = (self._by_id.get((each, schema_id)) for each in sorted(self.contexts))
            keys = next((each for each in others if each is not None), None)
        return [] if keys is None else [self._versions[key.subject][key.version] for key in keys]

    def by_guid(self, guid: str, *, context: str | None = None) -> list[StoredSchema]:
        contexts = [context] if context is not None else [DEFAULT_CONTEXT, *sorted(self.contexts)]
        keys = [key for each in contexts for key in self._by_guid.get((each, guid), ())]
        return [self._versions[key.subject][key.version] for key in keys]

    def max_id(self, context: str = DEFAULT_CONTEXT) -> int:
        return self._max_ids.get(context, 0)

    def targets(self, schema: StoredSchema) -> Iterator[SchemaKey]:
        """What a schema refers to directly; a name without a context is in the schema's own."""
        context = context_of(schema.subject)
        for each in schema.references:
            yield SchemaKey(normal(each.subject, context=context), each.version)

    def referrers(self, subject: str, version: int, *, deleted: bool = False) -> list[StoredSchema]:
        """Versions that refer to this one directly, by subject and version."""
        keys = sorted(self._referrers.get(SchemaKey(subject, version), ()), key=lambda key: (key.subject, key.version))
        found = [self._versions[key.subject][key.version] for key in keys]
        return [each for each in found if deleted or not each.deleted]

    # --- settings -------------------------------------------------------------------------------------------------

    def config(self, subject: str | None) -> dict[str, Any] | None:
        """The subject's own settings (None: the global ones), without those that it inherits."""
        return self._configs.get(subject)

    def config_in_scope(self, subject: str | None) -> dict[str, Any]:
        """The settings that apply: the subject's own, then its context's, then the global ones."""
        found: dict[str, Any] = {"compatibilityLevel": DEFAULT_LEVEL}
        for scope in self._scopes(subject):
            found |= self._configs.get(scope) or {}
        return found

    def mode(self, subject: str | None) -> str | None:
        return self._modes.get(subject)

    def mode_in_scope(self, subject: str | None) -> str:
        mode = DEFAULT_MODE
        for scope in self._scopes(subject):
            mode = self._modes.get(scope) or mode
        return mode if self._modes.get(None) != "READONLY_OVERRIDE" else "READONLY_OVERRIDE"

    def _scopes(self, subject: str | None) -> list[str | None]:
        """From the widest to the narrowest."""
        if subject is None:
            return [None]
        context, name = parse(subject)
        scopes: list[str | None] = [None]
        if context != DEFAULT_CONTEXT:
            scopes.append(str(SubjectName(context, "")))
        return [*scopes, subject] if name else scopes

    def all_contexts(self) -> list[str]:
        return [DEFAULT_CONTEXT, *sorted(self.contexts - {DEFAULT_CONTEXT})]


def _drop(index: dict[E, dict[SchemaKey, None]], entry: E, key: SchemaKey) -> None:
    del index[entry][key]
    if not index[entry]:
        del index[entry]


def _put_or_drop(table: dict[str | None, Any], subject: str | None, value: Any) -> None:
    if value is None:
        table.pop(subject, None)
    else:
        table[subject] = value


def _deleted(schema: StoredSchema) -> StoredSchema:
    return replace(schema, deleted=True)
