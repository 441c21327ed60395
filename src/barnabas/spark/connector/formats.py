"""``option("value.format", "avro")``: keys and values of a schema registry as columns of source and sink.

Of a source, ``value`` is a struct of the subject's latest schema, and a record that cannot be decoded stops the query,
becomes null, or goes to a topic for dead letters. Of a sink, a struct becomes Avro of a schema made of its columns, or
of ``value.schema``. The registry is asked on the driver; executors ask it for writers' schemas only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.errors import Undecodable
from barnabas.client.serdes.columns import ColumnReader, Malformed
from barnabas.client.serdes.columns_avro import AvroEncoder
from barnabas.client.serdes.registry import LOCAL_URL
from barnabas.spark.connector.options import Options
from barnabas.spark.errors import InvalidOption
from barnabas.spark.registry import (
    RegistryAccess,
    decoded,
    encoder_of_type,
    made_encoder,
    made_reader,
    spark_arrow_type,
    spark_type,
)

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import DataType, StructType

SIDES: Final = ("key", "value")
FORMATS: Final = ("binary", "avro", "json", "protobuf")
ON_BAD_RECORD: Final = ("stop", "null", "dead_letter")


@dataclass(frozen=True)
class SourceFormats:
    """How a source decodes keys and values; the columns that are not named stay binary."""

    access: RegistryAccess
    readers: Mapping[str, ColumnReader]
    on_bad_record: str
    dead_letters: str | None  # topic
    settings: Mapping[str, str]  # of the producer of dead letters

    @classmethod
    def of(cls, given: Mapping[str, str]) -> SourceFormats | None:
        """None if no format is asked for; asks the registry for the readers' schemas."""
        options = Options.of(given)
        sides = _sides(options)
        if not sides:
            return None
        on_bad_record = options.choice("onBadRecord", ON_BAD_RECORD, "stop")
        topic = options.text("subscribe") or ""
        dead_letters = options.text("deadLetterTopic") or (f"{topic}.dead-letters" if topic else None)
        if on_bad_record == "dead_letter" and (dead_letters is None or "," in dead_letters):
            raise InvalidOption("onBadRecord=dead_letter: set deadLetterTopic to the topic for dead letters")
        access = _access(options)
        readers = {side: _reader(options, access, side, topic) for side in sides}
        settings = {
            name.removeprefix("kafka."): value
            for name, value in options.values.items()
            if name.startswith(("kafka.bootstrap.", "kafka.security.", "kafka.sasl.", "kafka.ssl."))
        }
        return cls(access, readers, on_bad_record, dead_letters, settings)

    def spark_type(self, side: str) -> DataType:
        return spark_type(self.readers[side].type)

    def apply(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """The batch with decoded columns; dead letters are written before it is returned."""
        import pyarrow as pa

        malformed: dict[int, str] = {}
        made = batch
        for side, reader in self.readers.items():
            column, wrong = decoded(self.access, reader, batch.column(side))
            malformed |= {row: f"the {side} cannot be decoded: {reason}" for row, reason in wrong}
            kind = spark_arrow_type(reader.type)
            index = made.schema.get_field_index(side)
            made = made.set_column(index, pa.field(side, kind), column.cast(kind, safe=False))
        return self._without_malformed(made, batch, sorted(malformed.items())) if malformed else made

    def _without_malformed(
        self, made: pyarrow.RecordBatch, raw: pyarrow.RecordBatch, malformed: Malformed
    ) -> pyarrow.RecordBatch:
        import pyarrow as pa

        if self.on_bad_record == "null":
            return made
        if self.on_bad_record == "stop":
            row, reason = malformed[0]
            raise Undecodable(
                f"topic {raw.column('topic')[row].as_py()}, partition {raw.column('partition')[row].as_py()}, offset "
                f"{raw.column('offset')[row].as_py()}: {reason}. Set onBadRecord=dead_letter to put such records aside."
            )
        assert self.dead_letters is not None
        from barnabas.spark.connector.dead_letters import send_dead_letters

        send_dead_letters(raw, malformed, self.dead_letters, self.settings)
        bad = {row for row, _ in malformed}
        return made.filter(pa.array([row not in bad for row in range(made.num_rows)]))


@dataclass(frozen=True)
class SinkFormats:
    """How a sink encodes keys and values that are structs."""

    encoders: Mapping[str, AvroEncoder]

    @classmethod
    def of(cls, given: Mapping[str, str], schema: StructType) -> SinkFormats | None:
        """None if no format is asked for; registers the schemas."""
        options = Options.of(given)
        sides = _sides(options)
        if not sides:
            return None
        access = _access(options)
        return cls({side: _encoder(options, access, side, schema) for side in sides})

    def apply(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        import pyarrow as pa

        for side, encoder in self.encoders.items():
            index = batch.schema.get_field_index(side)
            if index >= 0:
                batch = batch.set_column(index, pa.field(side, pa.binary()), encoder.encode(batch.column(index)))
        return batch


def _reader(options: Options, access: RegistryAccess, side: str, topic: str) -> ColumnReader:
    subject, schema = _subject(options, side, topic), options.text(f"{side}.schema")
    if subject is None and schema is None:
        raise InvalidOption(f"{side}.format: set {side}.subject or {side}.schema, or subscribe to one topic")
    reader = made_reader(access, subject, schema, options.number(f"{side}.version"))
    wanted = options.text(f"{side}.format")
    if reader.kind != wanted:
        raise InvalidOption(f"{side}.format={wanted}: the schema of {subject} is of the kind {reader.kind}")
    return reader


def _encoder(options: Options, access: RegistryAccess, side: str, schema: StructType) -> AvroEncoder:
    from pyspark.sql.pandas.types import to_arrow_type

    if options.text(f"{side}.format") != "avro":
        raise InvalidOption(f"{side}.format={options.text(f'{side}.format')}: a sink writes avro, or binary columns")
    subject = _subject(options, side, options.text("topic") or "")
    if subject is None:
        raise InvalidOption(f"{side}.format: set {side}.subject, or the option topic")
    if side not in schema.fieldNames():
        raise InvalidOption(f"{side}.format: there is no column {side}")
    text = options.text(f"{side}.schema")
    if text is not None:
        return made_encoder(access, subject, text)
    return encoder_of_type(access, subject, to_arrow_type(schema[side].dataType, timezone="UTC"))


def _sides(options: Options) -> list[str]:
    return [side for side in SIDES if options.choice(f"{side}.format", FORMATS, "binary") != "binary"]


def _access(options: Options) -> dict[str, str]:
    access: dict[str, Any] = {"url": options.text("registry.url") or LOCAL_URL}
    return access | {name: options.text(f"registry.{name}") or "" for name in ("username", "password")}


def _subject(options: Options, side: str, topic: str) -> str | None:
    given = options.text(f"{side}.subject")
    return given or (f"{topic}-{side}" if topic and "," not in topic else None)
