"""Records as Arrow columns: the schema of values as an Arrow schema, and values as a table. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.connect.errors import DataError
from barnabas.connect.schemas import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type, scale_of

if TYPE_CHECKING:
    import pyarrow as pa

DECIMAL_DIGITS: Final = 38


def arrow_type(schema: Schema) -> pa.DataType:
    """Return the Arrow type of a schema."""
    import pyarrow as pa

    match schema.name:
        case s if s == DECIMAL:
            return pa.decimal128(DECIMAL_DIGITS, scale_of(schema))
        case s if s == DATE:
            return pa.date32()
        case s if s == TIME:
            return pa.time32("ms")
        case s if s == TIMESTAMP:
            return pa.timestamp("ms", tz="UTC")
    match schema.type:
        case Type.STRUCT:
            return pa.struct([arrow_field(each.name, each.schema) for each in schema.fields])
        case Type.ARRAY:
            assert schema.items is not None
            return pa.list_(arrow_type(schema.items))
        case Type.MAP:
            assert schema.keys is not None
            assert schema.items is not None
            return pa.map_(arrow_type(schema.keys), arrow_type(schema.items))
    plain = {
        Type.BOOLEAN: pa.bool_(),
        Type.INT8: pa.int8(),
        Type.INT16: pa.int16(),
        Type.INT32: pa.int32(),
        Type.INT64: pa.int64(),
        Type.FLOAT32: pa.float32(),
        Type.FLOAT64: pa.float64(),
        Type.BYTES: pa.binary(),
        Type.STRING: pa.string(),
    }
    return plain[schema.type]


def arrow_field(name: str, schema: Schema) -> pa.Field:
    """Return the Arrow field of a schema."""
    import pyarrow as pa

    return pa.field(name, arrow_type(schema), nullable=schema.optional)


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of a struct's schema."""
    import pyarrow as pa

    if schema.type is not Type.STRUCT:
        raise DataError(f"only structs become columns, not {schema.type}")
    return pa.schema([arrow_field(each.name, each.schema) for each in schema.fields])


def to_table(values: Sequence[Any], schema: Schema | None) -> pa.Table:
    """Return structs or objects as a table; without a schema the columns are inferred from all values."""
    import pyarrow as pa

    for value in values:
        if not isinstance(value, Mapping):
            raise DataError(f"only structs and objects become rows, not {type(value).__name__}")
    wanted = arrow_schema(schema) if schema is not None else None
    try:
        return pa.Table.from_pylist(list(values), schema=wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(f"the values do not fit into columns: {error}") from error
