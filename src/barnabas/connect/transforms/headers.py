"""Transforms of headers: DropHeaders, HeaderFrom, InsertHeader."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from barnabas.connect.config import Config, doc
from barnabas.connect.errors import DataError
from barnabas.connect.plugins import Transform
from barnabas.connect.records import Header, Record
from barnabas.connect.schemas import INT8, INT16, INT32, INT64, STRING, Schema, infer
from barnabas.connect.transforms.sides import (
    SidedTransform,
    as_map,
    as_struct,
    basics,
    field_value,
    for_both_sides,
    one,
)


class DropHeadersConfig(Config):
    """Keys of DropHeaders."""

    headers: Annotated[list[str], doc("Names of headers to remove")]


@one
class DropHeaders(Transform[DropHeadersConfig]):
    """Remove headers by name."""

    Config = DropHeadersConfig

    def apply(self, record: Record) -> Record:
        """Return the record without these headers."""
        return record.copy(headers=[each for each in record.headers if each.key not in self.config.headers])


class InsertHeaderConfig(Config):
    """Keys of InsertHeader."""

    header: Annotated[str, doc("Name of the header")]
    value_literal: Annotated[str, doc("Value of the header for every record")]


@one
class InsertHeader(Transform[InsertHeaderConfig]):
    """Add a header with a fixed value."""

    Config = InsertHeaderConfig

    def __init__(self, config: InsertHeaderConfig) -> None:
        super().__init__(config)
        self._header = Header(config.header, *literal(config.value_literal))

    def apply(self, record: Record) -> Record:
        """Return the record with one more header."""
        return record.copy(headers=[*record.headers, self._header])


def literal(text: str) -> tuple[Any, Schema | None]:
    """Return value and schema of a literal: a number, ``true``, ``false``, ``null``, a list or an object, else text."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text, STRING
    if isinstance(value, int) and not isinstance(value, bool):
        for schema, bits in ((INT8, 8), (INT16, 16), (INT32, 32), (INT64, 64)):
            if -(1 << bits - 1) <= value < 1 << bits - 1:
                return value, schema
    return (None, None) if value is None else (value, infer(value))


class HeaderFromConfig(Config):
    """Keys of HeaderFrom."""

    fields: Annotated[list[str], doc("Fields to copy or move to headers")]
    headers: Annotated[list[str], doc("Names of the headers, in the order of the fields")]
    operation: Annotated[Literal["move", "copy"], doc("move removes the fields, copy keeps them")]
    replace_null_with_default: Annotated[bool, doc("Use a field's default value where the field is null")] = True

    def check(self) -> list[str]:
        """Return whether there are as many headers as fields."""
        equal = len(self.fields) == len(self.headers)
        return [] if equal else ["HeaderFrom: name as many headers as fields"]


class HeaderFrom(SidedTransform[HeaderFromConfig]):
    """Copy or move fields to headers."""

    Config = HeaderFromConfig

    def apply(self, record: Record) -> Record:
        """Return the record with more headers and, for ``move``, fewer fields."""
        schema, data = self.schema_of(record), self.data_of(record)
        pairs = list(zip(self.config.fields, self.config.headers, strict=True))
        is_move = self.config.operation == "move"
        if schema is None:
            values = dict(as_map(data, "HeaderFrom"))
            headers = [*record.headers, *(Header(header, values.get(field)) for field, header in pairs)]
            kept = {name: value for name, value in values.items() if not is_move or name not in self.config.fields}
            return self.changed(record, None, kept).copy(headers=headers)
        struct = as_struct(schema, data, "HeaderFrom")
        use_default = self.config.replace_null_with_default
        headers = list(record.headers)
        for name, header in pairs:
            field = schema.field(name)
            if field is None:
                raise DataError(f"HeaderFrom: there is no field {name!r}")
            headers.append(Header(header, field_value(field, struct, use_default=use_default), field.schema))
        if not is_move:
            return record.copy(headers=headers)
        made = self.rebuilt(schema, self._schema)
        kept = {each.name: field_value(each, struct, use_default=use_default) for each in made.fields}
        return self.changed(record, made, kept).copy(headers=headers)

    def _schema(self, schema: Schema) -> Schema:
        return basics(schema, fields=tuple(each for each in schema.fields if each.name not in self.config.fields))


HeaderFromKey, HeaderFromValue = for_both_sides(HeaderFrom)
