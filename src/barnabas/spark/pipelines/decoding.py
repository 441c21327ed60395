"""Values as columns and columns as values, and what becomes of a record that cannot be decoded.

Either the query stops with the record's topic, partition and offset, or the record goes to a topic for dead letters
with the same facts in its headers. JSON is read by Spark's own expressions; values of a schema registry by
``from_registry``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from barnabas.client.serdes.registry import LOCAL_URL
from barnabas.spark.errors import InvalidOption
from barnabas.spark.pipelines.pipeline import Topic
from barnabas.spark.registry import from_registry, registry_error

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BROKEN: Final = "_broken"
SHOWN_MAX: Final = 200  # characters of a value in a message
_PLACE: Final = ("topic", "partition", "offset", "timestamp", "key")


def decoded(frame: DataFrame, topic: Topic) -> DataFrame:
    """The columns of the schema, and where each record came from. Broken records stop the query or are left out."""
    if not topic.is_decoded:
        return _with_watermark(frame, topic)
    parsed = frame.withColumn("_parsed", _parse(topic))
    broken = _is_broken(topic)
    if topic.on_bad_record == "dead_letter":
        parsed = parsed.where(~broken)
    else:
        checked = sql.when(broken, sql.raise_error(_sentence(topic))).otherwise(sql.col("_parsed"))
        parsed = parsed.withColumn("_parsed", checked)
    names = [name for name in parsed.select("_parsed.*").columns if name != BROKEN]
    columns = [sql.col("_parsed")[name].alias(name) for name in names]
    places = [sql.col(name).alias(f"_{name}") for name in _PLACE]
    return _with_watermark(parsed.select(*columns, *places), topic)


def dead_letters(frame: DataFrame, topic: Topic) -> DataFrame:
    """The broken records, with where they came from and the reason as headers."""
    parsed = frame.withColumn("_parsed", _parse(topic)).where(_is_broken(topic))
    reason = sql.when(sql.col("value").isNull(), "it has no value").otherwise(_reason(topic))
    facts = {
        "topic": sql.col("topic"),
        "partition": sql.col("partition"),
        "offset": sql.col("offset"),
        "reason": reason,
    }
    headers = sql.array(
        *(
            sql.struct(
                sql.lit(f"barnabas.{name}").alias("key"), sql.encode(column.cast("string"), "UTF-8").alias("value")
            )
            for name, column in facts.items()
        )
    )
    return parsed.select("key", "value", headers.alias("headers"), sql.lit(topic.dead_letter_topic).alias("topic"))


def encoded(frame: DataFrame, topic: Topic) -> DataFrame:
    """Rows as records: as they are if they have a column value, else as JSON of all columns."""
    if "value" in frame.columns:
        return frame
    shown = [name for name in frame.columns if not name.startswith("_")]
    value = (sql.to_json(sql.struct(*shown)) if topic.format is None else sql.struct(*shown)).alias("value")
    if topic.key is None:
        return frame.select(value)
    if topic.key not in frame.columns:
        raise InvalidOption(f"the key of {topic} shall be {topic.key}, which is none of {', '.join(frame.columns)}")
    return frame.select(sql.col(topic.key).cast("string").alias("key"), value)


def _schema(topic: Topic) -> StructType:
    parsed = StructType.fromDDL(topic.schema or "")
    assert isinstance(parsed, StructType)
    return parsed


def _parse(topic: Topic) -> Column:
    if topic.format is not None:
        return from_registry(
            sql.col("value"), topic.subject_name, registry=topic.registry or LOCAL_URL, on_bad_record="null"
        )
    schema = StructType([*_schema(topic).fields, StructField(BROKEN, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BROKEN}
    return sql.from_json(sql.col("value").cast("string"), schema, options)


def _reason(topic: Topic) -> Column:
    """Why a record that has a value cannot be decoded."""
    if topic.format is None:
        return sql.lit(f"it is not JSON of {topic.schema}")
    return registry_error(sql.col("value"), topic.subject_name, registry=topic.registry or LOCAL_URL)


def _is_broken(topic: Topic) -> Column:
    if topic.format is not None:
        return sql.col("_parsed").isNull()
    return sql.col("_parsed").isNull() | sql.col("_parsed")[BROKEN].isNotNull()


def _sentence(topic: Topic) -> Column:
    shown = sql.coalesce(sql.substring(sql.col("value").cast("string"), 1, SHOWN_MAX), sql.lit("no value at all"))
    what = f"JSON of {topic.schema}" if topic.format is None else f"{topic.format} of the subject {topic.subject_name}"
    return sql.concat(
        sql.lit("a record cannot be decoded: topic "),
        sql.col("topic"),
        sql.lit(", partition "),
        sql.col("partition").cast("string"),
        sql.lit(", offset "),
        sql.col("offset").cast("string"),
        sql.lit(f": it is not {what}: "),
        shown,
        sql.lit(". Say on_bad_record=dead_letter to put such records aside."),
    )


def _with_watermark(frame: DataFrame, topic: Topic) -> DataFrame:
    return frame if topic.watermark is None else frame.withWatermark(*topic.watermark)
