"""What a source reads, from where to where and how much at once: the options of Spark's Kafka source as one value.

Batch and streaming differ in what they allow; everything else is the same. Pure; ``positions.py`` turns a start or an
end into offsets.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.ids import TopicPartition
from barnabas.spark.connector.offsets import EARLIEST, LATEST, parse, parse_assignment
from barnabas.spark.connector.options import Options
from barnabas.spark.errors import InvalidOption

log = logging.getLogger("barnabas.spark")

TRIGGER_DELAY_MS: Final = 15 * 60_000
POLL_TIMEOUT_MS: Final = 120_000
STRATEGIES: Final = ("assign", "subscribe", "subscribePattern")
STREAM_ONLY: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
STARTS: Final = ("startingOffsets", "startingOffsetsByTimestamp", "startingTimestamp")
BATCH_ONLY: Final = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
# Spark's tasks read whole ranges, so chunks may be large. Readers see what was committed, unless told otherwise: the
# sink of this connector writes in transactions.
CLIENT_DEFAULTS: Final = {
    "client.id": "barnabas-spark",
    "isolation.level": "read_committed",
    "max.partition.fetch.bytes": str(4 * 1024 * 1024),
    "enable.auto.commit": "false",
    "auto.offset.reset": "none",
    "allow.auto.create.topics": "false",
}


@dataclass(frozen=True, slots=True)
class Edge:
    """Where reading starts or ends: an edge of the log, offsets, or times."""

    kind: Literal["earliest", "latest", "offsets", "times", "time"]
    offsets: Mapping[TopicPartition, int] | None = None  # offsets with -1 and -2, or times in milliseconds
    time_ms: int = 0

    @property
    def is_fixed(self) -> bool:
        """The same whenever it is looked at, but for what retention takes away."""
        if self.kind == "offsets":
            return all(offset != LATEST for offset in (self.offsets or {}).values())
        return self.kind == "earliest"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    settings: Mapping[str, str]  # of the client
    topics: tuple[str, ...]
    pattern: str | None
    assigned: tuple[TopicPartition, ...]
    start: Edge
    end: Edge
    when_no_offset_for_time: Literal["error", "latest"]
    fail_on_data_loss: bool
    include_headers: bool
    count_max: int | None  # of offsets in a batch
    count_min: int | None
    delay_ms_max: int  # how long a batch waits for count_min
    partitions_min: int | None
    partition_records_max: int | None
    poll_timeout_ms: int
    retries: int
    retry_pause_ms: int
    partitions_ttl_ms: int
    group: str

    @classmethod
    def of(cls, given: Mapping[str, str], *, is_streaming: bool) -> SourceOptions:
        options = Options.of(given)
        chosen = [name for name in STRATEGIES if options.has(name)]
        if len(chosen) != 1:
            said = f"not {' and '.join(chosen)} together" if chosen else "none of them is there"
            raise InvalidOption(f"say what to read by one of assign, subscribe and subscribePattern: {said}")
        if is_streaming:
            options.refuse(BATCH_ONLY, "a stream has no end; read a batch, or stop the query")
        else:
            for name in filter(options.has, STREAM_ONLY):
                log.warning("%s means nothing to a batch, which reads all that there is: it is not looked at", name)
        start = _start(options, is_streaming=is_streaming)
        count_max, count_min = options.number("maxOffsetsPerTrigger"), options.number("minOffsetsPerTrigger")
        if count_max is not None and count_min is not None and count_min > count_max:
            raise InvalidOption(f"minOffsetsPerTrigger={count_min} is above maxOffsetsPerTrigger={count_max}")
        settings = options.client(ConsumerSettings, CLIENT_DEFAULTS)
        when_none = options.choice("startingOffsetsByTimestampStrategy", ("error", "latest"), "error")
        ttl_ms = options.number("partition.metadata.cache.ttl.ms", -1, minimum=-1)
        return cls(
            settings=settings,
            topics=_topics(options),
            pattern=_pattern(options),
            assigned=tuple(parse_assignment(options.text("assign") or "")) if chosen == ["assign"] else (),
            start=start,
            end=_end(options),
            when_no_offset_for_time="error" if when_none == "error" else "latest",
            fail_on_data_loss=options.flag("failOnDataLoss", True),
            include_headers=options.flag("includeHeaders", False),
            count_max=count_max,
            count_min=count_min,
            delay_ms_max=options.duration_ms("maxTriggerDelay", TRIGGER_DELAY_MS),
            partitions_min=options.number("minPartitions"),
            partition_records_max=options.number("maxRecordsPerPartition"),
            poll_timeout_ms=options.number("kafkaConsumer.pollTimeoutMs", POLL_TIMEOUT_MS) or POLL_TIMEOUT_MS,
            retries=options.number("fetchOffset.numRetries", 3, minimum=0) or 0,
            retry_pause_ms=options.number("fetchOffset.retryIntervalMs", 10, minimum=0) or 0,
            partitions_ttl_ms=-1 if ttl_ms is None else ttl_ms,
            group=settings.get("group.id") or _group(options),
        )

    @property
    def what(self) -> str:
        """What is read, for messages."""
        if self.pattern is not None:
            return f"topics that match {self.pattern!r}"
        return ", ".join(self.topics or map(str, self.assigned))


def _topics(options: Options) -> tuple[str, ...]:
    text = options.text("subscribe")
    if text is None:
        return ()
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise InvalidOption("subscribe is empty: name topics, with commas between them")
    return names


def _pattern(options: Options) -> str | None:
    text = options.text("subscribePattern")
    if text is None:
        return None
    try:
        re.compile(text)
    except re.error as error:
        raise InvalidOption(f"subscribePattern={text!r} is no regular expression: {error}") from None
    return text


def _start(options: Options, *, is_streaming: bool) -> Edge:
    edge = _edge(options, "starting", "latest" if is_streaming else "earliest")
    if not is_streaming:
        if edge.kind == "latest":
            raise InvalidOption("startingOffsets=latest: a batch would be empty; say earliest, offsets or a time")
        if edge.kind == "offsets" and LATEST in (edge.offsets or {}).values():
            raise InvalidOption("startingOffsets: -1 (latest) would make a batch empty; say an offset, or -2")
    return edge


def _end(options: Options) -> Edge:
    edge = _edge(options, "ending", "latest")
    if edge.kind == "earliest" or (edge.kind == "offsets" and EARLIEST in (edge.offsets or {}).values()):
        raise InvalidOption("endingOffsets: earliest would make a batch empty; say latest, or offsets")
    return edge


def _edge(options: Options, word: str, default: str) -> Edge:
    """By one time, by times, by offsets: the first of them that is there counts."""
    time_ms = options.number(f"{word}Timestamp", minimum=0)
    if time_ms is not None:
        return Edge("time", time_ms=time_ms)
    times = options.text(f"{word}OffsetsByTimestamp")
    if times is not None:
        return Edge("times", parse(f"{word}OffsetsByTimestamp", times))
    text = options.text(f"{word}Offsets", default) or default
    if text.lower() == "earliest":
        return Edge("earliest")
    if text.lower() == "latest":
        return Edge("latest")
    return Edge("offsets", parse(f"{word}Offsets", text))


def _group(options: Options) -> str:
    """A name that a query keeps from one start to the next: what it reads and from where, by a short hash."""
    prefix = options.text("groupIdPrefix") or "spark-kafka-source"
    said = {name: options.text(name) for name in (*STRATEGIES, *STARTS) if options.has(name)}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    return f"{prefix}-{digest[:12]}"
