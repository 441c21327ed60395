"""Values of a schema registry in Spark, without a jar: ``from_registry(col("value"), "orders-value")`` and back.

The schema is looked up when the expression is made, on the driver; executors ask the registry only for schemas that
records were written with. Avro is decoded by compiled code, whole columns at a time; JSON and Protobuf row by row.
"""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from barnabas.client.errors import Undecodable
from barnabas.client.serdes.column_readers import reader_of, reader_of_subject
from barnabas.client.serdes.columns import ColumnReader, Malformed, TypedColumns
from barnabas.client.serdes.columns_avro import AvroEncoder, schema_of_arrow
from barnabas.client.serdes.registry import LOCAL_URL, Registry, Schema
from barnabas.spark.errors import InvalidOption

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

T = TypeVar("T")

COLUMNS_KEPT_MAX: Final = 64
RegistryAccess = Mapping[str, str]  # url, and username and password where they are needed
_columns: dict[tuple[int, bytes], TypedColumns] = {}


def from_registry(
    column: Column | str,
    subject: str | None = None,
    *,
    schema: str | None = None,
    version: int | None = None,
    registry: str | RegistryAccess = LOCAL_URL,
    on_bad_record: Literal["stop", "null"] = "stop",
) -> Column:
    """Decode a binary column in Confluent's wire format; the result is a struct of the reader's schema.

    The reader's schema is ``schema`` (Avro), or the ``version`` of the ``subject``, by default the latest. A record
    that cannot be decoded stops the query, or becomes null; :func:`registry_error` returns the reason.
    """
    access = access_of(registry)
    reader = made_reader(access, subject, schema, version)
    stops = on_bad_record == "stop"
    kind = spark_arrow_type(reader.type)

    def decode(values: pyarrow.Array) -> pyarrow.Array:
        found, malformed = decoded(access, reader, values)
        if malformed and stops:
            raise Undecodable(f"a record cannot be decoded: {malformed[0][1]}")
        return found.cast(kind, safe=False)

    return _udf(decode, spark_type(reader.type))(column)


def registry_error(
    column: Column | str,
    subject: str | None = None,
    *,
    schema: str | None = None,
    version: int | None = None,
    registry: str | RegistryAccess = LOCAL_URL,
) -> Column:
    """The reason for which :func:`from_registry` cannot decode a record, or null if it can."""
    from pyspark.sql.types import StringType

    access = access_of(registry)
    reader = made_reader(access, subject, schema, version)

    def explain(values: pyarrow.Array) -> pyarrow.Array:
        import pyarrow as pa

        reasons = dict(decoded(access, reader, values)[1])
        return pa.array([reasons.get(row) for row in range(len(values))], pa.string())

    return _udf(explain, StringType())(column)


def to_registry(
    column: Column | str, subject: str, *, schema: str | None = None, registry: str | RegistryAccess = LOCAL_URL
) -> Column:
    """Encode a struct as Avro in Confluent's wire format.

    ``schema`` is registered under ``subject`` first; without it the subject's latest version is used.
    """
    from pyspark.sql.types import BinaryType

    encoder = made_encoder(access_of(registry), subject, schema)

    def encode(values: pyarrow.Array) -> pyarrow.Array:
        return encoder.encode(values)

    return _udf(encode, BinaryType())(column)


def _udf(function: Callable[[Any], Any], kind: DataType) -> Callable[[Any], Column]:
    import pyarrow
    import pyspark.sql.functions

    # Spark reads the parameter types of an Arrow function at run time.
    function.__annotations__ = {"values": pyarrow.Array, "return": pyarrow.Array}
    functions: Any = pyspark.sql.functions
    made: Callable[[Any], Column] = functions.arrow_udf(function, returnType=kind)
    return made


def access_of(registry: str | RegistryAccess) -> RegistryAccess:
    return {"url": registry} if isinstance(registry, str) else dict(registry)


def connected(access: RegistryAccess) -> Registry:
    return Registry(access["url"], username=access.get("username", ""), password=access.get("password", ""))


def made_reader(
    access: RegistryAccess, subject: str | None, schema: str | None, version: int | None = None
) -> ColumnReader:
    """The reader of an Avro schema, or of a subject's version."""
    registry = connected(access)
    if schema is not None:
        return waited(reader_of(registry, Schema(schema)))
    if subject is None:
        raise InvalidOption("from_registry needs a subject, such as 'orders-value', or a schema")
    return waited(reader_of_subject(registry, subject, version))


def made_encoder(access: RegistryAccess, subject: str, schema: str | None) -> AvroEncoder:
    """The encoder of a schema, which is registered if it is not yet a version of the subject; else of its latest."""
    registry = connected(access)
    if schema is not None:
        return AvroEncoder(schema, waited(registry.register(subject, Schema(schema))))
    found = waited(registry.version(subject))
    if found.schema.kind != "AVRO" or found.schema.references:
        raise InvalidOption(f"{subject}: rows can be encoded with Avro schemas without references only")
    return AvroEncoder(found.schema.text, found.id)


def encoder_of_type(access: RegistryAccess, subject: str, kind: pyarrow.DataType) -> AvroEncoder:
    """The encoder of a schema that is made of a column's type."""
    name = "".join(letter if letter.isalnum() else "_" for letter in subject)
    return made_encoder(access, subject, schema_of_arrow(kind, name if name[:1].isalpha() else f"r_{name}"))


def decoded(access: RegistryAccess, reader: ColumnReader, values: pyarrow.Array) -> tuple[pyarrow.Array, Malformed]:
    """A column decoded; what this process has learned of schemas is kept."""
    key = (os.getpid(), pickle.dumps((sorted(access.items()), reader)))
    columns = _columns.get(key)
    if columns is None:
        if len(_columns) >= COLUMNS_KEPT_MAX:
            del _columns[next(iter(_columns))]
        columns = _columns[key] = TypedColumns(connected(access), reader)
    return waited(columns.decode(values))


def waited(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def spark_type(kind: pyarrow.DataType) -> DataType:
    """The type of Spark for a type of the reader."""
    from pyspark.sql.pandas.types import from_arrow_type

    found: DataType = from_arrow_type(spark_arrow_type(kind))
    return found


def spark_arrow_type(kind: pyarrow.DataType) -> pyarrow.DataType:
    """The Arrow type that Spark has for a type: times of day are numbers, and nothing is finer than a microsecond."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, spark_arrow_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(spark_arrow_type(kind.key_type), spark_arrow_type(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", spark_arrow_type(kind.value_type)))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=kind.tz)
    if pa.types.is_time32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_time64(kind) else kind
