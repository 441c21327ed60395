"""The data source that Spark knows as ``barnabas``: its columns, and which reader or writer does the work.

Spark finds it through the package ``pyspark_barnabas``, without being told, wherever that is installed; nothing here
does anything before a reader or writer is asked for something. Spark keeps half a dozen processes of Python that know
this class, each for one of its methods: so each method imports what it needs, and no process holds it all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.spark.connector.options import Options, has_formats
from barnabas.spark.errors import InvalidOption

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )

    from barnabas.spark.connector.formats import SinkFormats, SourceFormats

FORMAT: Final = "barnabas"
HEADERS: Final = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
COLUMNS: Final = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)


class BarnabasSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        found = columns(with_headers=Options.of(self.options).flag("includeHeaders", False))
        formats = self._formats()
        if formats is None:
            return found
        return StructType(
            [
                StructField(field.name, formats.spark_type(field.name)) if field.name in formats.readers else field
                for field in found.fields
            ]
        )

    def _formats(self) -> SourceFormats | None:
        if not has_formats(self.options):
            return None
        from barnabas.spark.connector.formats import SourceFormats

        return SourceFormats.of(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        from barnabas.spark.connector.batch_reader import BatchReader, FilteringBatchReader
        from barnabas.spark.connector.source_options import SourceOptions

        self._check(schema)
        options = SourceOptions.of(self.options, is_streaming=False)
        if Options.of(self.options).flag("pushFilters", False):
            return FilteringBatchReader(options, self._formats())
        return BatchReader(options, self._formats())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from barnabas.spark.connector.source_options import SourceOptions
        from barnabas.spark.connector.stream_reader import StreamReader

        self._check(schema)
        return StreamReader(SourceOptions.of(self.options, is_streaming=True), self._formats())

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from barnabas.spark.connector.sink_options import SinkOptions
        from barnabas.spark.connector.writers import BatchWriter

        if overwrite:
            raise InvalidOption('mode("overwrite"): a log is only added to; say mode("append")')
        return BatchWriter(SinkOptions.of(self.options, schema), self._sink_formats(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from barnabas.spark.connector.sink_options import SinkOptions
        from barnabas.spark.connector.writers import StreamWriter

        return StreamWriter(SinkOptions.of(self.options, schema), self._sink_formats(schema))

    def _sink_formats(self, schema: StructType) -> SinkFormats | None:
        if not has_formats(self.options):
            return None
        from barnabas.spark.connector.formats import SinkFormats

        return SinkFormats.of(self.options, schema)

    def _check(self, schema: StructType) -> None:
        if schema != self.schema():
            raise InvalidOption(
                "the columns of this source are always the same, so it takes no schema: select from key, value, topic, "
                "partition, offset, timestamp, timestampType, and headers with includeHeaders=true. With value.format "
                "the schema of value is that of the registry: set value.version if its latest version has changed"
            )


def columns(*, with_headers: bool) -> StructType:
    return StructType([*COLUMNS.fields, StructField("headers", HEADERS)]) if with_headers else COLUMNS
