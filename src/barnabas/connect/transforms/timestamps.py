"""TimestampConverter: points in time as text, Unix time, Date, Time or Timestamp, each to each."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Final, Literal

from barnabas.connect.config import Config, doc
from barnabas.connect.errors import DataError
from barnabas.connect.records import Record
from barnabas.connect.schemas import (
    DATE,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Type,
    date_schema,
    from_millis,
    time_from_millis,
    time_schema,
    time_to_millis,
    timestamp_schema,
    to_millis,
)
from barnabas.connect.transforms.date_format import DateFormat, format_problems
from barnabas.connect.transforms.sides import (
    SidedTransform,
    as_map,
    as_struct,
    basics,
    field_value,
    for_both_sides,
)

TargetType = Literal["string", "unix", "Date", "Time", "Timestamp"]
_SCHEMAS: Final = {
    "string": STRING,
    "unix": INT64,
    "Date": date_schema(),
    "Time": time_schema(),
    "Timestamp": timestamp_schema(),
}
# Of a precision: how many units make a second.
_UNITS: Final = {"seconds": 1, "milliseconds": 1000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}


class TimestampConverterConfig(Config):
    """Keys of TimestampConverter."""

    target_type: Annotated[TargetType, doc("Type to convert to")]
    field: Annotated[str, doc("Field with the timestamp; empty: the whole key or value")] = ""
    format: Annotated[str, doc("Format of text, as Java's SimpleDateFormat")] = ""
    unix_precision: Annotated[
        Literal["seconds", "milliseconds", "microseconds", "nanoseconds"], doc("Unit of Unix time")
    ] = "milliseconds"
    replace_null_with_default: Annotated[bool, doc("Use a field's default value where the field is null")] = True

    def check(self) -> list[str]:
        """Return whether there is a format where one is needed."""
        if not self.format.strip():
            return ["TimestampConverter: target.type=string needs a format"] if self.target_type == "string" else []
        return format_problems("format", self.format)


class TimestampConverter(SidedTransform[TimestampConverterConfig]):
    """Convert a timestamp to another type."""

    Config = TimestampConverterConfig

    def __init__(self, config: TimestampConverterConfig) -> None:
        super().__init__(config)
        self._format = DateFormat(config.format) if config.format.strip() else None

    def apply(self, record: Record) -> Record:
        """Return the record with the converted timestamp."""
        schema, data = self.schema_of(record), self.data_of(record)
        name = self.config.field
        if schema is None:
            if data is None or not name:
                return self.changed(record, None, self._converted(data, None))
            values = dict(as_map(data, "TimestampConverter"))
            return self.changed(record, None, values | {name: self._converted(values.get(name), None)})
        if not name:
            made = self.rebuilt(schema, self._target)
            return self.changed(record, made, self._converted(data, schema))
        made = self.rebuilt(schema, self._schema)
        return self.changed(record, made, None if data is None else self._struct(schema, data))

    def _struct(self, schema: Schema, data: Any) -> dict[str, Any]:
        values = as_struct(schema, data, "TimestampConverter")
        made = {}
        for each in schema.fields:
            value = field_value(each, values, use_default=self.config.replace_null_with_default)
            made[each.name] = self._converted(value, each.schema) if each.name == self.config.field else value
        return made

    def _target(self, schema: Schema) -> Schema:
        target = _SCHEMAS[self.config.target_type]
        return target.as_optional() if schema.optional else target

    def _schema(self, schema: Schema) -> Schema:
        fields = tuple(
            Field(each.name, self._target(each.schema)) if each.name == self.config.field else each
            for each in schema.fields
        )
        default = None if schema.default is None else self._struct(schema, schema.default)
        return basics(schema, fields=fields, optional=schema.optional, default=default)

    def _converted(self, value: Any, schema: Schema | None) -> Any:
        return None if value is None else self._from_millis(self._to_millis(value, schema))

    def _to_millis(self, value: Any, schema: Schema | None) -> int:
        if (
            schema is not None
            and schema.name not in (DATE, TIME, TIMESTAMP)
            and schema.type
            not in (
                Type.STRING,
                Type.INT64,
            )
        ):
            raise DataError(f"TimestampConverter: a {schema.type} is not a timestamp")
        match value:
            case dt.datetime():
                return to_millis(value)
            case dt.date():
                return to_millis(dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC))
            case dt.time():
                return time_to_millis(value)
            case str():
                if self._format is None:
                    raise DataError("TimestampConverter: text as input needs a format")
                return to_millis(self._format.parse(value))
            case int() if not isinstance(value, bool):
                return _truncated(value * 1000, _UNITS[self.config.unix_precision])
        raise DataError(f"TimestampConverter: a {type(value).__name__} is not a timestamp")

    def _from_millis(self, millis: int) -> Any:
        match self.config.target_type:
            case "string":
                assert self._format is not None, "checked in the configuration"
                return self._format.format(from_millis(millis))
            case "unix":
                return _truncated(millis * _UNITS[self.config.unix_precision], 1000)
            case "Date":
                return from_millis(millis).date()
            case "Time":
                return time_from_millis(millis)
            case "Timestamp":
                return from_millis(millis)


def _truncated(number: int, divisor: int) -> int:
    """Return the quotient rounded towards zero, as Java does."""
    return number // divisor if number >= 0 else -(-number // divisor)


TimestampConverterKey, TimestampConverterValue = for_both_sides(TimestampConverter)
