"""Transforms of structure: Flatten and SetSchemaMetadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from barnabas.connect.config import Config, doc
from barnabas.connect.errors import DataError
from barnabas.connect.records import Record
from barnabas.connect.schemas import Field, Schema, Type
from barnabas.connect.transforms.sides import (
    SidedTransform,
    as_map,
    as_struct,
    basics,
    field_value,
    for_both_sides,
)


class FlattenConfig(Config):
    """Keys of Flatten."""

    delimiter: Annotated[str, doc("Text between the names of nested fields")] = "."


class Flatten(SidedTransform[FlattenConfig]):
    """Make nested fields fields of the top level, with names such as ``a.b``."""

    Config = FlattenConfig

    def apply(self, record: Record) -> Record:
        """Return the flat record; null stays null."""
        schema, data = self.schema_of(record), self.data_of(record)
        if data is None:
            return record
        flat: dict[str, Any] = {}
        if schema is None:
            self._flatten(as_map(data, "Flatten"), "", flat)
            return self.changed(record, None, flat)
        made = self.rebuilt(schema, self._schema)
        flat = {each.name: None for each in made.fields}
        self._flatten_struct(schema, as_struct(schema, data, "Flatten"), "", flat)
        return self.changed(record, made, flat)

    def _name(self, prefix: str, name: str) -> str:
        return f"{prefix}{self.config.delimiter}{name}" if prefix else name

    def _flatten(self, data: Mapping[str, Any], prefix: str, flat: dict[str, Any]) -> None:
        for key, value in data.items():
            if isinstance(value, Mapping):
                self._flatten(value, self._name(prefix, key), flat)
            else:
                flat[self._name(prefix, key)] = value

    def _flatten_struct(self, schema: Schema, data: Any, prefix: str, flat: dict[str, Any]) -> None:
        if data is None:
            return
        for each in schema.fields:
            name, value = self._name(prefix, each.name), field_value(each, data, use_default=True)
            if each.schema.type is Type.STRUCT:
                self._flatten_struct(each.schema, value, name, flat)
            else:
                flat[name] = value

    def _schema(self, schema: Schema) -> Schema:
        fields: list[Field] = []
        self._add_fields(schema, "", fields, optional=schema.optional, default=schema.default)
        return basics(schema, fields=tuple(fields))

    def _add_fields(self, schema: Schema, prefix: str, made: list[Field], *, optional: bool, default: Any) -> None:
        for each in schema.fields:
            name = self._name(prefix, each.name)
            is_optional = optional or each.schema.optional
            own = each.schema.default
            if own is None and default is not None:
                own = field_value(each, default, use_default=True)
            if each.schema.type is Type.STRUCT:
                self._add_fields(each.schema, name, made, optional=is_optional, default=own)
            elif each.schema.type is Type.MAP:
                raise DataError("Flatten: a field whose schema is a map cannot be made flat")
            else:
                made.append(Field(name, replace(each.schema, optional=is_optional, default=own)))


class SetSchemaMetadataConfig(Config):
    """Keys of SetSchemaMetadata."""

    schema_name: Annotated[str | None, doc("New name of the schema", importance="HIGH")] = None
    schema_version: Annotated[int | None, doc("New version of the schema", importance="HIGH")] = None
    replace_null_with_default: Annotated[bool, doc("Use a field's default value where the field is null")] = True

    def check(self) -> list[str]:
        """Return whether anything is set."""
        is_empty = self.schema_name is None and self.schema_version is None
        return ["SetSchemaMetadata: set schema.name or schema.version"] if is_empty else []


class SetSchemaMetadata(SidedTransform[SetSchemaMetadataConfig]):
    """Set name and version of the schema."""

    Config = SetSchemaMetadataConfig

    def apply(self, record: Record) -> Record:
        """Return the record with the renamed schema."""
        schema, data = self.schema_of(record), self.data_of(record)
        if schema is None:
            if data is None:
                return record
            raise DataError("SetSchemaMetadata needs a schema, and the record has none")
        made = self.rebuilt(schema, self._schema)
        if schema.type is Type.STRUCT and data is not None:
            use_default = self.config.replace_null_with_default
            data = {each.name: field_value(each, data, use_default=use_default) for each in schema.fields}
        return self.changed(record, made, data)

    def _schema(self, schema: Schema) -> Schema:
        name, version = self.config.schema_name, self.config.schema_version
        return replace(schema, name=name or schema.name, version=schema.version if version is None else version)


FlattenKey, FlattenValue = for_both_sides(Flatten)
SetSchemaMetadataKey, SetSchemaMetadataValue = for_both_sides(SetSchemaMetadata)
