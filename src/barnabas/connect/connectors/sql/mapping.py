"""Records to rows: the table, the primary key and the columns of a record. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.connect.connectors.sql.settings import SqlSinkConfig
from barnabas.connect.connectors.sql.values import plain
from barnabas.connect.errors import DataError
from barnabas.connect.records import Record
from barnabas.connect.schemas import INT32, INT64, STRING, Schema, Type, infer

KAFKA_COLUMNS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")
IDENTIFIER_LENGTH_MAX: Final = 63
_TOPIC: Final = re.compile(r"\$\{topic\}")


@dataclass(frozen=True, slots=True)
class SqlRow:
    """A row to write, or with ``is_delete`` one to delete, of which only the key counts."""

    table: str
    key: tuple[str, ...]  # columns of the primary key
    values: dict[str, Any]
    schemas: dict[str, Schema]
    is_delete: bool = False

    @property
    def key_values(self) -> tuple[Any, ...]:
        """Return the values of the primary key."""
        return tuple(self.values[name] for name in self.key)


def row_of(record: Record, config: SqlSinkConfig) -> SqlRow:
    """Return the row of a record; raise ``DataError`` if it does not fit the configuration."""
    table = _TOPIC.sub(lambda _: record.topic, config.table_name_format)
    if not table or "\0" in table:
        raise DataError(f"{table!r} is not a table's name")
    key, values, schemas = _key(record, config)
    if record.value is None:
        if not config.delete_enabled:
            raise DataError("a record without a value needs delete.enabled=true and pk.mode=record_key")
        return SqlRow(table, tuple(key), key, schemas, is_delete=True)
    if not isinstance(record.value, Mapping):
        raise DataError(f"the value must be a struct or an object, not {type(record.value).__name__}")
    fields = {field.name: field.schema for field in record.value_schema.fields} if record.value_schema else {}
    for name, value in record.value.items():
        is_wanted = not config.fields_whitelist or name in config.fields_whitelist
        if name not in key and (is_wanted or name in values):
            schema = fields.get(name)
            values[name] = plain(schema, value)
            schemas[name] = schema if schema is not None else infer(value)
    if any(value is None for value in key.values()):
        raise DataError(f"a column of the primary key is null: {', '.join(key)}")
    return SqlRow(table, tuple(key), key | values, schemas)


def _key(record: Record, config: SqlSinkConfig) -> tuple[dict[str, Any], dict[str, Any], dict[str, Schema]]:
    """Return the columns of the primary key, further columns, and the schemas of both."""
    names = config.pk_fields
    match config.pk_mode:
        case "kafka":
            columns = names or KAFKA_COLUMNS
            given = dict(zip(columns, (record.topic, record.partition, record.offset), strict=True))
            return given, {}, dict(zip(columns, (STRING, INT32, INT64), strict=True))
        case "record_key":
            return _from_key(record, names)
        case "record_value" if isinstance(record.value, Mapping):
            fields = {each.name: each.schema for each in record.value_schema.fields} if record.value_schema else {}
            chosen = names or tuple(record.value)
            _require(chosen, record.value, "value")
            schemas = {name: fields.get(name) or infer(record.value[name]) for name in chosen}
            return {name: plain(fields.get(name), record.value[name]) for name in chosen}, {}, schemas
    return {}, {}, {}


def _from_key(record: Record, names: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Schema]]:
    key, schema = record.key, record.key_schema
    if key is None:
        raise DataError("pk.mode=record_key needs records with keys")
    if isinstance(key, Mapping):
        fields = {each.name: each.schema for each in schema.fields} if schema is not None else {}
        chosen = tuple(names) or tuple(key)
        _require(chosen, key, "key")
        schemas = {name: fields.get(name) or infer(key[name]) for name in chosen}
        return {name: plain(fields.get(name), key[name]) for name in chosen}, {}, schemas
    if len(names) != 1:
        raise DataError("the key is a single value: pk.fields must have one name")
    if schema is not None and schema.type in (Type.ARRAY, Type.MAP):
        raise DataError(f"a key of type {schema.type} cannot be a primary key")
    return {names[0]: plain(schema, key)}, {}, {names[0]: schema or infer(key)}


def _require(names: Sequence[str], fields: Mapping[str, Any], where: str) -> None:
    missing = [name for name in names if name not in fields]
    if missing:
        raise DataError(f"the {where} has no field {', '.join(missing)}, which pk.fields names")
