"""The data source that Spark knows as ``barnabas``: its columns, and which reader or writer does the work.

Spark finds it through the package ``pyspark_barnabas``, without being told, wherever that is installed; nothing here
does anything before a reader or writer is asked for something.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
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

from barnabas.spark.batch_reader import BatchReader, FilteringBatchReader
from barnabas.spark.errors import InvalidOption
from barnabas.spark.options import Options
from barnabas.spark.sink_options import SinkOptions
from barnabas.spark.source_options import SourceOptions
from barnabas.spark.stream_reader import StreamReader
from barnabas.spark.writers import BatchWriter, StreamWriter

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
        return columns(with_headers=Options.of(self.options).flag("includeHeaders", False))

    def reader(self, schema: StructType) -> DataSourceReader:
        self._check(schema)
        options = SourceOptions.of(self.options, is_streaming=False)
        if Options.of(self.options).flag("pushFilters", False):
            return FilteringBatchReader(options)
        return BatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        self._check(schema)
        return StreamReader(SourceOptions.of(self.options, is_streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise InvalidOption('mode("overwrite"): a log is only added to; say mode("append")')
        return BatchWriter(SinkOptions.of(self.options, schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return StreamWriter(SinkOptions.of(self.options, schema))

    def _check(self, schema: StructType) -> None:
        if schema != self.schema():
            raise InvalidOption(
                "the columns of this source are always the same, so it takes no schema: select from key, value, topic, "
                "partition, offset, timestamp, timestampType, and headers with includeHeaders=true"
            )


def columns(*, with_headers: bool) -> StructType:
    return StructType([*COLUMNS.fields, StructField("headers", HEADERS)]) if with_headers else COLUMNS
