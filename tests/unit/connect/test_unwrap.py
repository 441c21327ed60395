"""ExtractNewRecordState turns change events into rows, deletes and tombstones."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.connect.records import Record
from barnabas.connect.schemas import INT32, STRING, struct
from barnabas.connect.transforms.unwrap import ExtractNewRecordState

ROW = struct({"id": INT32}, optional=True)
SCHEMA = struct({"before": ROW, "after": ROW, "op": STRING, "source": struct({"lsn": INT32})})


def event(op: str, before: Any, after: Any) -> Record:
    value = {"before": before, "after": after, "op": op, "source": {"lsn": 7}}
    return Record("t", value, {"id": 1}, value_schema=SCHEMA)


def unwrap(record: Record, **config: str) -> Record | None:
    given = {key.replace("_", "."): value for key, value in config.items()}
    return ExtractNewRecordState(ExtractNewRecordState.Config.read(given)).apply(record)


def test_a_change_becomes_its_row_with_the_schema_of_the_row() -> None:
    made = unwrap(event("u", None, {"id": 1}), add_fields="op,source.lsn")
    assert made is not None
    assert made.value == {"id": 1, "__op": "u", "__source_lsn": 7}
    assert made.value_schema is not None
    assert [field.name for field in made.value_schema.fields] == ["id", "__op", "__source_lsn"]


@pytest.mark.parametrize(
    ("mode", "of_delete", "of_tombstone"),
    [
        ("drop", None, None),
        ("tombstone", None, "kept"),
        ("delete-to-tombstone", "tombstone", None),
        ("rewrite", {"id": 1, "__deleted": "true"}, None),
    ],
)
def test_deletes_and_tombstones_follow_the_mode(mode: str, of_delete: Any, of_tombstone: Any) -> None:
    made = unwrap(event("d", {"id": 1}, None), delete_tombstone_handling_mode=mode)
    if of_delete == "tombstone":
        assert made is not None
        assert (made.key, made.value, made.value_schema) == ({"id": 1}, None, None)
    else:
        assert (made and made.value) == of_delete
    kept = unwrap(Record("t", None, {"id": 1}), delete_tombstone_handling_mode=mode)
    assert (kept is not None) == (of_tombstone == "kept")


def test_other_records_pass_and_truncates_do_not() -> None:
    record = Record("t", {"id": 1})
    assert unwrap(record) is record
    assert unwrap(event("t", None, None)) is None
