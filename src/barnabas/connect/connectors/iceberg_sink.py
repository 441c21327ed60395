"""The Iceberg sink: a change table for each topic, appended to exactly once. Needs pyiceberg, and no Java.

Tasks write Parquet files; the driver adds them to the table in one commit. The commit also sets the table's property
``barnabas.SINK`` to the number of the batch, so a batch that comes again is recognised, and its files are deleted.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NamedTuple

from msgspec import Meta

from barnabas.connect.arrow import arrow_type
from barnabas.connect.config import Config, doc
from barnabas.connect.connectors.changes import ChangeRow, change_row
from barnabas.connect.errors import ConnectError, DataError, RetriableError
from barnabas.connect.plugins import Context, Sink, connector
from barnabas.connect.records import Batch, Record
from barnabas.connect.schemas import DECIMAL, Schema, Type, scale_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog

CATALOG: Final = "iceberg.catalog."
DIGITS_MAX: Final = 38
_NOT_IN_NAMES: Final = re.compile(r"\W", re.ASCII)


class IcebergConfig(Config):
    """Keys of the Iceberg sink; ``iceberg.catalog.*`` are properties of pyiceberg's catalog."""

    any_prefix: ClassVar[tuple[str, ...]] = (CATALOG,)

    iceberg_catalog: Annotated[str, doc("Name of the catalog; readers of a catalog in SQL must use the same")] = (
        "default"
    )
    iceberg_namespace: Annotated[str, doc("Namespace of the tables", importance="HIGH")] = "default"
    iceberg_table: Annotated[
        str, doc("Name of the table; empty: the topic's name, with _ for other characters than letters and digits")
    ] = ""
    tombstones: Annotated[
        Literal["ignore", "delete"],
        doc("Records without a value: ignore them, as after deletes of change capture, or write a delete"),
    ] = "ignore"
    file_bytes_max: Annotated[int, doc("Bytes in memory from which on a file is written"), Meta(ge=1)] = (
        128 * 1024 * 1024
    )
    poll_interval_ms: Annotated[int, doc("Milliseconds between two commits"), Meta(ge=1)] = 60_000


class DataFile(NamedTuple):
    """A Parquet file that a task has written."""

    table: str
    path: str
    schema: bytes  # Arrow's schema, serialised


@connector("iceberg-sink", aliases=["org.apache.iceberg.connect.IcebergSinkConnector"])
class IcebergSink(Sink[IcebergConfig]):
    """Appends records to change tables."""

    Config = IcebergConfig
    every: ClassVar[str] = "60 s"

    def __init__(self, config: IcebergConfig, context: Context) -> None:
        super().__init__(config, context)
        self._made: Catalog | None = None
        self._rows: dict[str, list[ChangeRow]] = {}
        self._files: list[DataFile] = []

    def open(self, batch: Batch) -> None:
        """Begin a task without rows."""
        self._rows, self._files = {}, []

    def put(self, records: Sequence[Record]) -> None:
        """Keep rows until there are enough for a file; those that do not fit into columns are refused."""
        rows: dict[str, list[ChangeRow]] = {}
        for record in records:
            row = change_row(record, with_tombstones=self.config.tombstones == "delete")
            if row is not None:
                rows.setdefault(self._table(record.topic), []).append(row)
        for some in rows.values():
            _arrow_table(some)
        for table, some in rows.items():
            kept = self._rows.setdefault(table, [])
            kept += some
            if _arrow_table(kept[-len(some) :]).nbytes * len(kept) > self.config.file_bytes_max * len(some):
                self._write(table, self._rows.pop(table))

    def _table(self, topic: str) -> str:
        name = self.config.iceberg_table or _NOT_IN_NAMES.sub("_", topic)
        return f"{self.config.iceberg_namespace}.{name}"

    def flush(self, batch: Batch) -> list[DataFile]:
        """Write the remaining rows; return the files of the task."""
        for table, rows in sorted(self._rows.items()):
            self._write(table, rows)
        self._rows = {}
        return self._files

    def _write(self, table: str, rows: Sequence[ChangeRow]) -> None:
        import pyarrow.parquet as pq

        data = _arrow_table(rows)
        catalog = self._catalog()
        catalog.create_namespace_if_not_exists(self.config.iceberg_namespace)
        place = catalog.create_table_if_not_exists(table, data.schema)
        path = f"{place.location()}/data/{uuid.uuid4()}.parquet"
        with place.io.new_output(path).create() as stream:
            pq.write_table(data, stream)
        self._files.append(DataFile(table, path, data.schema.serialize().to_pybytes()))

    def commit(self, flushed: Sequence[Any], batch: Batch) -> None:
        """Add the files of all tasks to their tables, unless that was done before."""
        from pyiceberg.exceptions import CommitFailedException

        files: dict[str, list[DataFile]] = {}
        for some in flushed:
            for file in some:
                files.setdefault(file.table, []).append(file)
        for table, added in sorted(files.items()):
            try:
                self._add(table, added, batch)
            except CommitFailedException as error:
                raise RetriableError(f"Iceberg: another writer has changed {table} meanwhile: {error}") from error

    def _add(self, name: str, files: Sequence[DataFile], batch: Batch) -> None:
        import pyarrow as pa

        table, marker = self._catalog().load_table(name), f"barnabas.{batch.sink}"
        if int(table.properties.get(marker, -1)) >= batch.id:
            for file in files:
                table.io.delete(file.path)
            return
        with table.transaction() as transaction:
            with transaction.update_schema() as update:
                for schema in {file.schema for file in files}:
                    update.union_by_name(pa.ipc.read_schema(pa.py_buffer(schema)))
            number = str(batch.id)
            transaction.add_files([file.path for file in files], snapshot_properties={marker: number})
            transaction.set_properties({marker: number})

    def _catalog(self) -> Catalog:
        if self._made is None:
            try:
                from pyiceberg.catalog import load_catalog
            except ImportError as error:
                raise ConnectError("Iceberg needs pyiceberg: pip install 'barnabas[iceberg]'") from error
            given = {key.removeprefix(CATALOG): value for key, value in self.context.extra.items()}
            self._made = load_catalog(self.config.iceberg_catalog, **given)
        return self._made

    def close(self) -> None:
        """Close the catalog."""
        if self._made is not None:
            self._made.close()
            self._made = None


def _arrow_table(rows: Sequence[ChangeRow]) -> pa.Table:
    """Return rows as Arrow columns; a column that only some rows have is null in the others."""
    import pyarrow as pa

    schemas: dict[str, Schema] = {}
    for row in rows:
        schemas |= row.schemas
    wanted = pa.schema([pa.field(name, _type(schema), nullable=True) for name, schema in schemas.items()])
    try:
        return pa.Table.from_pylist([row.values for row in rows], schema=wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        raise DataError(f"the values do not fit into columns: {error}") from error


def _type(schema: Schema) -> pa.DataType:
    """Return an Arrow type that Iceberg has: microseconds, and no integers below 32 bits."""
    import pyarrow as pa

    named = {
        "io.debezium.time.Date": pa.date32(),
        "io.debezium.time.Time": pa.time64("us"),
        "io.debezium.time.MicroTime": pa.time64("us"),
        "io.debezium.time.Timestamp": pa.timestamp("us"),
        "io.debezium.time.MicroTimestamp": pa.timestamp("us"),
    }
    if schema.name in named:
        return named[schema.name]
    if schema.name == DECIMAL:
        return pa.decimal128(DIGITS_MAX, scale_of(schema))
    if schema.name == "io.debezium.data.VariableScaleDecimal" or schema.type in (Type.STRUCT, Type.MAP):
        return pa.string()
    if schema.type is Type.ARRAY and schema.items is not None:
        return pa.string() if schema.items.type in (Type.STRUCT, Type.MAP) else pa.list_(_type(schema.items))
    found = arrow_type(schema)
    if pa.types.is_timestamp(found):
        return pa.timestamp("us", tz="UTC" if schema.name is None else None)
    if pa.types.is_time(found):
        return pa.time64("us")
    return pa.int32() if pa.types.is_integer(found) and found.bit_width < 32 else found
