"""Ids, versions, deletes, references, settings and modes: what may be written, and what the state is afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from barnabas.registry import writes
from barnabas.registry.records import Reference, StoredSchema, encode_key, encode_value
from barnabas.registry.state import State
from barnabas.registry.writes import Draft, Written
from barnabas.rest.errors import RestError


def apply(state: State, written: Written) -> Any:
    for key, value in written.records:
        state.apply(encode_key(key), encode_value(value))
    return written.answer


def register(state: State, subject: str, text: str = '"int"', **more: Any) -> StoredSchema:
    schema: StoredSchema = apply(state, writes.register(state, Draft(subject, text, **more)))
    return schema


@contextmanager
def refused(code: int) -> Iterator[None]:
    with pytest.raises(RestError) as found:
        yield
    assert found.value.code == code


def test_ids_are_global_from_one_and_versions_per_subject() -> None:
    state = State()
    assert (register(state, "a").id, register(state, "b").id) == (1, 1)
    second = register(state, "a", '"long"')
    assert (second.id, second.version) == (2, 2)
    assert [each.subject for each in state.by_id(1)] == ["a", "b"]
    assert state.max_id() == 2


def test_references_are_part_of_what_a_schema_is() -> None:
    state = State()
    register(state, "base")
    one = register(state, "user", '"x"', references=(Reference("x", "base", 1),))
    other = register(state, "user", '"x"')
    assert one.id != other.id
    assert [each.subject for each in state.referrers("base", 1)] == ["user"]
    with refused(42206):
        writes.delete_version(state, "base", 1, permanent=False)
    with refused(42201):
        writes.check_references(state, Draft("user", "", references=(Reference("x", "base", 9),)))


def test_contexts_have_ids_and_references_of_their_own() -> None:
    state = State()
    register(state, "a")
    register(state, ":.c:base", '"long"')
    found = register(state, ":.c:user", '"x"', references=(Reference("x", "base", 1),))
    assert found.id == 2
    assert state.referrers(":.c:base", 1) == [found]
    assert state.all_contexts() == [".", ".c"]
    assert state.subjects(":.c:") == [":.c:base", ":.c:user"]
    assert state.subjects("a") == ["a"]
    assert state.by_id(2)[0].subject == ":.c:user", "an id that the default context lacks is looked for elsewhere"


def test_a_version_is_deleted_softly_and_then_for_good() -> None:
    state = State()
    register(state, "a")
    register(state, "a", '"long"')
    with refused(40407):
        writes.delete_version(state, "a", 1, permanent=True)
    assert apply(state, writes.delete_version(state, "a", 1, permanent=False)) == 1
    assert [each.version for each in state.versions("a", deleted=False)] == [2]
    with refused(40406):
        writes.delete_version(state, "a", 1, permanent=False)
    assert state.by_id(1), "records that carry the id can still be read"
    assert apply(state, writes.delete_version(state, "a", 1, permanent=True)) == 1
    assert not state.by_id(1)
    with refused(40402):
        writes.delete_version(state, "a", 1, permanent=True)
    with refused(40401):
        writes.delete_version(state, "nothing", 1, permanent=False)


def test_a_subject_is_deleted_softly_and_then_for_good() -> None:
    state = State()
    register(state, "a")
    register(state, "a", '"long"')
    apply(state, writes.set_config(state, "a", {"compatibilityLevel": "FULL"}))
    with refused(40405):
        writes.delete_subject(state, "a", permanent=True)
    assert apply(state, writes.delete_subject(state, "a", permanent=False)) == [1, 2]
    assert state.subjects() == []
    assert state.subjects(deleted=True) == state.subjects(deleted_only=True) == ["a"]
    with refused(40404):
        writes.delete_subject(state, "a", permanent=False)
    third = register(state, "a", '"string"')
    assert (third.version, third.id) == (3, 3)
    apply(state, writes.delete_subject(state, "a", permanent=False))
    assert apply(state, writes.delete_subject(state, "a", permanent=True)) == [1, 2, 3]
    assert state.config("a") is None
    with refused(40401):
        writes.delete_subject(state, "a", permanent=True)


def test_a_schema_that_was_deleted_comes_back_as_a_new_version_with_its_id() -> None:
    state = State()
    first = register(state, "a")
    apply(state, writes.delete_version(state, "a", 1, permanent=False))
    assert writes.same_version(state, Draft("a", '"int"')) is None
    again = register(state, "a")
    assert (again.id, again.version) == (first.id, 2)
    assert [each.version for each in state.versions("a")] == [2], "the deleted version gave way"


def test_settings_are_inherited_from_the_context_and_the_whole() -> None:
    state = State()
    assert state.config_in_scope("a")["compatibilityLevel"] == "BACKWARD"
    apply(state, writes.set_config(state, None, {"compatibilityLevel": "FULL", "normalize": True}))
    apply(state, writes.set_config(state, ":.c:", {"compatibilityLevel": "NONE"}))
    assert state.config_in_scope("a") == {"compatibilityLevel": "FULL", "normalize": True}
    assert state.config_in_scope(":.c:a") == {"compatibilityLevel": "NONE", "normalize": True}
    apply(state, writes.delete_config(state, None))
    assert state.config_in_scope("a")["compatibilityLevel"] == "BACKWARD"
    with refused(42203):
        writes.set_config(state, None, {"compatibilityLevel": "SIDEWAYS"})


def test_modes_decide_what_may_be_registered() -> None:
    state = State()
    register(state, "a")
    with refused(42205):
        writes.set_mode(state, "a", "IMPORT", force=False)
    with refused(42204):
        writes.set_mode(state, "a", "ASLEEP", force=False)
    apply(state, writes.set_mode(state, None, "READONLY", force=False))
    with refused(42205):
        register(state, "b")
    with refused(42205):
        writes.delete_subject(state, "a", permanent=False)
    apply(state, writes.set_mode(state, "b", "IMPORT", force=False))
    assert register(state, "b", '"x"', id=77, version=5).id == 77
    with refused(42205):
        register(state, "b", '"y"', id=77)
    with refused(42205):
        register(state, "b", '"z"')
    assert apply(state, writes.delete_mode(state, "b", recursive=False)) == {"mode": "IMPORT"}
    with refused(40409):
        writes.delete_mode(state, "b", recursive=False)


def test_the_order_in_which_a_compacted_topic_has_its_records_does_not_matter_to_a_deleted_subject() -> None:
    """The delete of a subject stays in the topic when the versions before it are gone and new ones follow."""
    before = State()
    register(before, "a")
    records = writes.delete_subject(before, "a", permanent=False).records
    state = State()
    for key, value in records:
        state.apply(encode_key(key), encode_value(value))
    register(state, "a", '"long"')
    assert [each.version for each in state.versions("a", deleted=False)] == [1]
