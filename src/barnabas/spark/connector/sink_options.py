"""What a sink writes and how surely: the options of Spark's Kafka sink, and ours for exactly once, as one value.

Also which columns a table must have to be written. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType, TimestampType

from barnabas.client.settings.producer import ProducerSettings
from barnabas.spark.connector.options import Options
from barnabas.spark.errors import InvalidOption

EXACTLY_ONCE: Final = "exactly_once"
AT_LEAST_ONCE: Final = "at_least_once"
STOP: Final = "stop"
KEEP: Final = "keep"
SINK_PREFIX: Final = "spark-sink"
# A transaction is open from a task's first record until the driver has all tasks; a driver that never comes back holds
# up readers of committed records for so long.
CLIENT_DEFAULTS: Final = {
    "client.id": "barnabas-spark",
    "linger.ms": "0",
    "transaction.timeout.ms": "300000",
}
_TEXT: Final = (BinaryType, StringType)
_COLUMNS: Final[Mapping[str, tuple[tuple[type[DataType], ...], str]]] = {
    "key": (_TEXT, "a string or binary"),
    "value": (_TEXT, "a string or binary"),
    "topic": ((StringType,), "a string"),
    "partition": ((IntegerType,), "an int"),
    "headers": ((ArrayType,), "array<struct<key: string, value: binary>>"),
    "timestamp": ((TimestampType,), "a timestamp"),
    "offsets": ((StringType,), "a string"),
}


@dataclass(frozen=True, slots=True)
class SinkOptions:
    settings: Mapping[str, str]  # of the client
    topic: str | None  # instead of a column
    guarantee: Literal["exactly_once", "at_least_once"]
    prefix: str  # of transactional ids
    sink_id: str | None  # together with batch_id: a batch of a stream, written through foreachBatch
    batch_id: int | None
    on_replay: Literal["stop", "keep"]  # if a batch is replayed with other content after its commit
    columns: tuple[str, ...]
    offsets_group: str | None = None  # group that the offsets in the column offsets are committed to
    application_id: str | None = None  # instead of prefix and query in transactional ids
    is_decided: bool = False  # the driver stores the transactions of a batch before it commits the first one

    @classmethod
    def of(cls, given: Mapping[str, str], schema: StructType) -> SinkOptions:
        options = Options.of(given)
        settings = options.client(ProducerSettings, CLIENT_DEFAULTS)
        if "transactional.id" in settings:
            raise InvalidOption("kafka.transactional.id: every task has its own; say transactionalIdPrefix")
        guarantee = options.choice("deliveryGuarantee", (EXACTLY_ONCE, AT_LEAST_ONCE), EXACTLY_ONCE)
        sink_id, batch_id = options.text("sinkId"), options.number("batchId", minimum=0)
        if (sink_id is None) != (batch_id is None):
            raise InvalidOption("sinkId and batchId go together: the one names the stream, the other its batch")
        topic = options.text("topic") or None
        on_replay = options.choice("onReplay", (STOP, KEEP), STOP)
        if guarantee == EXACTLY_ONCE and settings.get("enable.idempotence", "true").lower() == "false":
            raise InvalidOption("deliveryGuarantee=exactly_once needs kafka.enable.idempotence")
        offsets_group = options.text("offsetsGroup") or None
        if offsets_group is not None and guarantee == AT_LEAST_ONCE:
            raise InvalidOption("offsetsGroup needs deliveryGuarantee=exactly_once")
        application_id = options.text("applicationId") or None
        is_decided = options.flag("decidedCommits", False)
        if is_decided and application_id is None:
            raise InvalidOption("decidedCommits needs applicationId")
        left_out = set() if options.flag("includeTimestamp", False) else {"timestamp"}
        left_out |= set() if offsets_group is not None else {"offsets"}
        return cls(
            settings=settings,
            topic=topic,
            guarantee="exactly_once" if guarantee == EXACTLY_ONCE else "at_least_once",
            prefix=options.text("transactionalIdPrefix") or SINK_PREFIX,
            sink_id=sink_id,
            batch_id=batch_id,
            on_replay="keep" if on_replay == KEEP else "stop",
            columns=_columns(schema, topic, left_out, _formatted(options)),
            offsets_group=offsets_group,
            application_id=application_id,
            is_decided=is_decided,
        )


def _formatted(options: Options) -> set[str]:
    """Columns that are encoded with a schema registry, and so may be structs."""
    return {side for side in ("key", "value") if (options.text(f"{side}.format") or "binary") != "binary"}


def _columns(schema: StructType, topic: str | None, left_out: set[str], formatted: set[str]) -> tuple[str, ...]:
    """The columns that are written; others are ignored, as Spark's own sink does."""
    names = [name for name in schema.fieldNames() if name not in left_out]
    if "value" not in names:
        raise InvalidOption(f"the column value is missing among {', '.join(names)}: select what to write as value")
    if topic is None and "topic" not in names:
        raise InvalidOption("say the option topic, or have a column topic")
    for name, (kinds, what) in _COLUMNS.items():
        if name in names and name not in formatted and not isinstance(schema[name].dataType, kinds):
            raise InvalidOption(f"the column {name} is {schema[name].dataType.simpleString()}: it must be {what}")
    if "headers" in names:
        _check_headers(schema["headers"].dataType)
    return tuple(name for name in _COLUMNS if name in names and not (name == "topic" and topic is not None))


def _check_headers(kind: DataType) -> None:
    element = kind.elementType if isinstance(kind, ArrayType) else None
    fields = {field.name: type(field.dataType) for field in element.fields} if isinstance(element, StructType) else {}
    if fields != {"key": StringType, "value": BinaryType}:
        raise InvalidOption(f"the column headers is {kind.simpleString()}: it must be {_COLUMNS['headers'][1]}")
