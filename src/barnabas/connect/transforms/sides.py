"""Transforms that exist twice, for keys and for values, and what they share: reading fields and rebuilding schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final, Literal, TypeVar

from barnabas.connect.config import C
from barnabas.connect.errors import DataError
from barnabas.connect.plugins import MARK, Mark, Transform
from barnabas.connect.records import Record
from barnabas.connect.schemas import Field, Schema, Type

PACKAGE: Final = "org.apache.kafka.connect.transforms"
SCHEMAS_MAX: Final = 16  # schemas whose transformed form is kept, as in Kafka
T = TypeVar("T")


class SidedTransform(Transform[C]):
    """A transform of a record's key or of its value."""

    side: ClassVar[Literal["key", "value"]] = "value"

    def __init__(self, config: C) -> None:
        super().__init__(config)
        self._schemas: dict[int, tuple[Schema, Schema]] = {}

    def schema_of(self, record: Record) -> Schema | None:
        """Return the schema of the record's side."""
        return record.value_schema if self.side == "value" else record.key_schema

    def data_of(self, record: Record) -> Any:
        """Return the data of the record's side."""
        return record.value if self.side == "value" else record.key

    def changed(self, record: Record, schema: Schema | None, data: Any) -> Record:
        """Return the record with another schema and data on its side."""
        return record.copy(**{self.side: data, f"{self.side}_schema": schema})

    def rebuilt(self, schema: Schema, build: Callable[[Schema], Schema]) -> Schema:
        """Return ``build(schema)``, from a small cache."""
        known = self._schemas.get(id(schema))
        if known is None or known[0] is not schema:
            if len(self._schemas) >= SCHEMAS_MAX:
                self._schemas.clear()
            known = self._schemas[id(schema)] = (schema, build(schema))
        return known[1]


def for_both_sides(cls: type[SidedTransform[Any]]) -> tuple[type[Any], type[Any]]:
    """Return the plugins ``Name$Key`` and ``Name$Value`` of a transform."""
    made = []
    for side in ("key", "value"):
        name = f"{cls.__name__}${side.capitalize()}"
        kind = type(name, (cls,), {"side": side, "__module__": cls.__module__, "__doc__": cls.__doc__})
        setattr(kind, MARK, Mark(f"{PACKAGE}.{name}", "transformation"))
        made.append(kind)
    return made[0], made[1]


def one(cls: type[T]) -> type[T]:
    """Make a transform that has no sides a plugin."""
    setattr(cls, MARK, Mark(f"{PACKAGE}.{cls.__name__}", "transformation"))
    return cls


def as_map(data: Any, purpose: str) -> Mapping[str, Any]:
    """Return the data if it is a map or a struct; raise ``DataError`` if not."""
    if not isinstance(data, Mapping):
        kind = "null" if data is None else type(data).__name__
        raise DataError(f"{purpose} needs an object or a struct, not {kind}")
    return data


def as_struct(schema: Schema, data: Any, purpose: str) -> Mapping[str, Any]:
    """Return the data if schema and data are of a struct; raise ``DataError`` if not."""
    if schema.type is not Type.STRUCT:
        raise DataError(f"{purpose} needs a struct, not {schema.type}")
    return as_map(data, purpose)


def field_value(field: Field, data: Mapping[str, Any], *, use_default: bool) -> Any:
    """Return a field's value, or the default of its schema instead of null."""
    value = data.get(field.name)
    return field.schema.default if value is None and use_default else value


def basics(schema: Schema, **changes: Any) -> Schema:
    """Return name, version, doc and parameters of a schema with another content; neither optional nor a default."""
    return replace(schema, **({"optional": False, "default": None} | changes))
