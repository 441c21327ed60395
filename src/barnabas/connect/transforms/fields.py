"""Transforms of fields: ExtractField, HoistField, InsertField, MaskField, ReplaceField, ValueToKey."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

from barnabas.connect.config import Config, Names, doc
from barnabas.connect.errors import DataError
from barnabas.connect.records import Record
from barnabas.connect.schemas import (
    EPOCH,
    EPOCH_DAY,
    INT32,
    INT64,
    INTEGERS,
    STRING,
    Field,
    Schema,
    Type,
    from_millis,
    struct,
    timestamp_schema,
)
from barnabas.connect.transforms.sides import (
    SidedTransform,
    as_map,
    as_struct,
    basics,
    field_value,
    for_both_sides,
    one,
)

NullDefault = Annotated[bool, doc("Use a field's default value where the field is null")]


class ExtractFieldConfig(Config):
    """Keys of ExtractField."""

    field: Annotated[str, doc("Field to extract", importance="MEDIUM")]
    field_syntax_version: Annotated[
        Literal["V1", "V2"], doc("V2: dots in the name lead to nested fields; backticks quote a name with dots")
    ] = "V1"
    replace_null_with_default: NullDefault = True


class ExtractField(SidedTransform[ExtractFieldConfig]):
    """Replace the key or value by one of its fields."""

    Config = ExtractFieldConfig

    def __init__(self, config: ExtractFieldConfig) -> None:
        super().__init__(config)
        self._path = field_path(config.field) if config.field_syntax_version == "V2" else [config.field]

    def apply(self, record: Record) -> Record:
        """Return the record with the field in place of the whole."""
        schema, data = self.schema_of(record), self.data_of(record)
        for name in self._path:
            if schema is None:
                data = None if data is None else as_map(data, "ExtractField").get(name)
                continue
            field = schema.field(name)
            if field is None:
                raise DataError(f"ExtractField: there is no field {self.config.field!r}")
            use_default = self.config.replace_null_with_default
            if data is not None:
                data = field_value(field, as_struct(schema, data, "ExtractField"), use_default=use_default)
            schema = field.schema
        return self.changed(record, schema, data)


def field_path(text: str) -> list[str]:
    """Return the names of a nested field: ``a.b`` or ``a.`b.c```."""
    names: list[str] = []
    rest = text
    while True:
        if rest.startswith("`") and (end := _closing(rest)) > 0:
            name, rest = rest[1:end].replace("\\`", "`"), rest[end + 1 :]
            names.append(name)
            if not rest:
                return names
            rest = rest[1:]
        else:
            name, dot, rest = rest.partition(".")
            names.append(name)
            if not dot:
                return names


def _closing(text: str) -> int:
    """Return where the backtick is that closes the one at the start and is followed by a dot or the end, or -1."""
    for index in range(1, len(text)):
        if text[index] == "`" and text[index - 1] != "\\" and text[index + 1 : index + 2] in ("", "."):
            return index
    return -1


class HoistFieldConfig(Config):
    """Keys of HoistField."""

    field: Annotated[str, doc("Name of the one field of the new struct", importance="MEDIUM")]


class HoistField(SidedTransform[HoistFieldConfig]):
    """Put the key or value into a struct of one field."""

    Config = HoistFieldConfig

    def apply(self, record: Record) -> Record:
        """Return the record with the wrapped data."""
        schema = self.schema_of(record)
        made = None if schema is None else self.rebuilt(schema, lambda old: struct({self.config.field: old}))
        return self.changed(record, made, {self.config.field: self.data_of(record)})


class Insertion(NamedTuple):
    """A field to insert: ``name!`` is required, ``name?`` and ``name`` are optional."""

    name: str
    optional: bool

    @classmethod
    def of(cls, text: str | None) -> Insertion | None:
        """Return what a key of the configuration says."""
        if text is None:
            return None
        return cls(text[:-1], text.endswith("?")) if text[-1:] in ("?", "!") else cls(text, True)


class InsertFieldConfig(Config):
    """Keys of InsertField."""

    topic_field: Annotated[str | None, doc("Field for the topic; end with ! to make it required")] = None
    partition_field: Annotated[str | None, doc("Field for the partition")] = None
    offset_field: Annotated[str | None, doc("Field for the offset; for sinks only")] = None
    timestamp_field: Annotated[str | None, doc("Field for the record's timestamp")] = None
    static_field: Annotated[str | None, doc("Field for a fixed value")] = None
    static_value: Annotated[str | None, doc("The fixed value")] = None
    replace_null_with_default: NullDefault = True

    def check(self) -> list[str]:
        """Return what is missing."""
        names = (self.topic_field, self.partition_field, self.offset_field, self.timestamp_field, self.static_field)
        if all(name is None for name in names):
            return ["InsertField: no field to insert is configured"]
        if self.static_field is not None and self.static_value is None:
            return [f"InsertField: static.field {self.static_field!r} needs static.value"]
        return []


class InsertField(SidedTransform[InsertFieldConfig]):
    """Add fields with the record's topic, partition, offset, timestamp or a fixed value."""

    Config = InsertFieldConfig

    def __init__(self, config: InsertFieldConfig) -> None:
        super().__init__(config)
        self._topic = Insertion.of(config.topic_field)
        self._partition = Insertion.of(config.partition_field)
        self._offset = Insertion.of(config.offset_field)
        self._timestamp = Insertion.of(config.timestamp_field)
        self._static = Insertion.of(config.static_field)

    def apply(self, record: Record) -> Record:
        """Return the record with more fields; null stays null."""
        schema, data = self.schema_of(record), self.data_of(record)
        if data is None:
            return record
        if schema is None:
            return self.changed(record, None, dict(as_map(data, "InsertField")) | self._values(record, None))
        values = as_struct(schema, data, "InsertField")
        use_default = self.config.replace_null_with_default
        kept = {each.name: field_value(each, values, use_default=use_default) for each in schema.fields}
        return self.changed(record, self.rebuilt(schema, self._schema), kept | self._values(record, schema))

    def _values(self, record: Record, schema: Schema | None) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self._topic is not None:
            made[self._topic.name] = record.topic
        if self._partition is not None and record.partition is not None:
            made[self._partition.name] = record.partition
        if self._offset is not None:
            if record.offset is None:
                raise DataError("InsertField: offset.field is for sink connectors only")
            made[self._offset.name] = record.offset
        if self._timestamp is not None and record.timestamp_ms is not None:
            stamp = record.timestamp_ms
            made[self._timestamp.name] = stamp if schema is None else from_millis(stamp)
        if self._static is not None:
            made[self._static.name] = self.config.static_value
        return made

    def _schema(self, schema: Schema) -> Schema:
        kinds = (
            (self._topic, STRING),
            (self._partition, INT32),
            (self._offset, INT64),
            (self._timestamp, timestamp_schema()),
            (self._static, STRING),
        )
        more = [
            Field(spec.name, kind.as_optional() if spec.optional else kind) for spec, kind in kinds if spec is not None
        ]
        return basics(schema, fields=(*schema.fields, *more))


class MaskFieldConfig(Config):
    """Keys of MaskField."""

    fields: Annotated[list[str], doc("Fields to mask")]
    replacement: Annotated[str | None, doc("Value to put instead; for numbers and strings only")] = None
    replace_null_with_default: NullDefault = True


_BLANKS: Final[tuple[tuple[type[Any], Any], ...]] = (
    (bool, False),
    (int, 0),
    (float, 0.0),
    (str, ""),
    (decimal.Decimal, decimal.Decimal(0)),
    (dt.datetime, EPOCH),
    (dt.date, EPOCH_DAY),
    (dt.time, dt.time(0)),
    (list, []),
    (dict, {}),
)


class MaskField(SidedTransform[MaskFieldConfig]):
    """Replace fields by the empty value of their type, or by a fixed one."""

    Config = MaskFieldConfig

    def apply(self, record: Record) -> Record:
        """Return the record with masked fields."""
        schema, data = self.schema_of(record), self.data_of(record)
        if schema is None:
            made = dict(as_map(data, "MaskField"))
            made |= {name: self._masked(made.get(name), None) for name in self.config.fields}
            return self.changed(record, None, made)
        values = as_struct(schema, data, "MaskField")
        made = {}
        for each in schema.fields:
            value = field_value(each, values, use_default=self.config.replace_null_with_default)
            made[each.name] = self._masked(value, each.schema) if each.name in self.config.fields else value
        return self.changed(record, schema, made)

    def _masked(self, value: Any, schema: Schema | None) -> Any:
        if value is None:
            return None
        if self.config.replacement is None:
            for kind, blank in _BLANKS:
                if isinstance(value, kind):
                    return blank.copy() if isinstance(blank, list | dict) else blank
            raise DataError(f"MaskField cannot mask a {type(value).__name__}")
        return replaced(value, self.config.replacement, schema)


def replaced(value: Any, replacement: str, schema: Schema | None) -> Any:
    """Return a fixed text as the type of the value that it replaces."""
    try:
        match value:
            case bool():
                pass
            case int():
                bits = INTEGERS.get(schema.type, 64) if schema is not None else 64
                number = int(replacement)
                if -(1 << bits - 1) <= number < 1 << bits - 1:
                    return number
            case float():
                return float(replacement)
            case str():
                return replacement
            case decimal.Decimal():
                return decimal.Decimal(replacement)
    except (ValueError, decimal.InvalidOperation) as error:
        raise DataError(f"MaskField: {replacement!r} is not a number") from error
    raise DataError(f"MaskField cannot replace a {type(value).__name__} by {replacement!r}")


class ReplaceFieldConfig(Config):
    """Keys of ReplaceField."""

    exclude: Annotated[Names, doc("Fields to remove; wins over include")] = ()
    include: Annotated[Names, doc("Fields to keep; empty: all")] = ()
    renames: Annotated[Names, doc("Pairs old:new of fields to rename")] = ()
    replace_null_with_default: NullDefault = True

    def check(self) -> list[str]:
        """Return the pairs that are none."""
        return [
            f"Invalid value {pair} for configuration renames: expected old:new"
            for pair in self.renames
            if len(pair.split(":")) != 2
        ]


class ReplaceField(SidedTransform[ReplaceFieldConfig]):
    """Remove, keep or rename fields."""

    Config = ReplaceFieldConfig

    def __init__(self, config: ReplaceFieldConfig) -> None:
        super().__init__(config)
        self._renames = dict(pair.split(":") for pair in config.renames)

    def _is_kept(self, name: str) -> bool:
        return name not in self.config.exclude and (not self.config.include or name in self.config.include)

    def apply(self, record: Record) -> Record:
        """Return the record with the fields that are kept, under their new names."""
        schema, data = self.schema_of(record), self.data_of(record)
        if data is None:
            return record
        names = self._renames
        if schema is None:
            values = as_map(data, "ReplaceField")
            made = {names.get(name, name): value for name, value in values.items() if self._is_kept(name)}
            return self.changed(record, None, made)
        values = as_struct(schema, data, "ReplaceField")
        use_default = self.config.replace_null_with_default
        made = {
            names.get(each.name, each.name): field_value(each, values, use_default=use_default)
            for each in schema.fields
            if self._is_kept(each.name)
        }
        return self.changed(record, self.rebuilt(schema, self._schema), made)

    def _schema(self, schema: Schema) -> Schema:
        kept = [each for each in schema.fields if self._is_kept(each.name)]
        return basics(
            schema, fields=tuple(Field(self._renames.get(each.name, each.name), each.schema) for each in kept)
        )


class ValueToKeyConfig(Config):
    """Keys of ValueToKey."""

    fields: Annotated[list[str], doc("Fields of the value that make the key")]
    replace_null_with_default: NullDefault = True


@one
class ValueToKey(SidedTransform[ValueToKeyConfig]):
    """Make the key of fields of the value."""

    Config = ValueToKeyConfig

    def apply(self, record: Record) -> Record:
        """Return the record with a new key."""
        if record.value_schema is None:
            values = as_map(record.value, "ValueToKey")
            return record.copy(key={name: values.get(name) for name in self.config.fields}, key_schema=None)
        values = as_struct(record.value_schema, record.value, "ValueToKey")
        schema = self.rebuilt(record.value_schema, self._schema)
        use_default = self.config.replace_null_with_default
        key: Mapping[str, Any] = {
            each.name: field_value(each, values, use_default=use_default) for each in schema.fields
        }
        return record.copy(key=key, key_schema=schema)

    def _schema(self, schema: Schema) -> Schema:
        found = {name: schema.field(name) for name in self.config.fields}
        for name, each in found.items():
            if each is None:
                raise DataError(f"ValueToKey: the value has no field {name!r}")
        return Schema(Type.STRUCT, fields=tuple(each for each in found.values() if each is not None))


ExtractFieldKey, ExtractFieldValue = for_both_sides(ExtractField)
HoistFieldKey, HoistFieldValue = for_both_sides(HoistField)
InsertFieldKey, InsertFieldValue = for_both_sides(InsertField)
MaskFieldKey, MaskFieldValue = for_both_sides(MaskField)
ReplaceFieldKey, ReplaceFieldValue = for_both_sides(ReplaceField)
