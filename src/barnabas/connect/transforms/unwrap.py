"""ExtractNewRecordState: the row of a change event instead of its envelope, for sinks that know rows only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from barnabas.connect.config import Config, Names, doc
from barnabas.connect.plugins import Transform, transform
from barnabas.connect.records import Record
from barnabas.connect.schemas import STRING, Field, Schema, infer

DELETED = "__deleted"


class ExtractNewRecordStateConfig(Config):
    """Keys of Debezium's transform that are understood."""

    delete_tombstone_handling_mode: Annotated[
        Literal["drop", "tombstone", "rewrite", "delete-to-tombstone"],
        doc("What a delete becomes: nothing, the tombstone after it, the old row with __deleted, or a tombstone"),
    ] = "tombstone"
    add_fields: Annotated[Names, doc("Fields of the envelope to add, such as op or source.lsn")] = ()
    add_fields_prefix: Annotated[str, doc("Text before the names of added fields")] = "__"


@transform("ExtractNewRecordState", aliases=["io.debezium.transforms.ExtractNewRecordState"])
class ExtractNewRecordState(Transform[ExtractNewRecordStateConfig]):
    """Return the row after a change. Records that are no envelopes pass unchanged."""

    Config = ExtractNewRecordStateConfig

    def apply(self, record: Record) -> Record | None:
        """Return the row; None for what is dropped."""
        mode, value = self.config.delete_tombstone_handling_mode, record.value
        if value is None:
            return record if mode == "tombstone" else None
        if not isinstance(value, Mapping) or not value.keys() >= {"op", "before", "after"}:
            return record
        if value["op"] == "t":
            return None
        if value["after"] is not None:
            return self._row(record, "after", is_deleted=False)
        if mode == "rewrite":
            return self._row(record, "before", is_deleted=True)
        return record.copy(value=None, value_schema=None) if mode == "delete-to-tombstone" else None

    def _row(self, record: Record, side: str, *, is_deleted: bool) -> Record:
        row = dict(record.value[side])
        added = {self._name(path): _at(record.value, path) for path in self.config.add_fields}
        if self.config.delete_tombstone_handling_mode == "rewrite":
            added[DELETED] = "true" if is_deleted else "false"
        return record.copy(value=row | added, value_schema=self._schema(record.value_schema, side, added))

    def _name(self, path: str) -> str:
        return self.config.add_fields_prefix + path.replace(".", "_")

    def _schema(self, envelope: Schema | None, side: str, added: Mapping[str, Any]) -> Schema | None:
        field = None if envelope is None else envelope.field(side)
        if field is None:
            return None
        more = tuple(Field(name, STRING if name == DELETED else infer(value)) for name, value in added.items())
        return replace(field.schema, fields=(*field.schema.fields, *more), optional=False)


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
