"""A pipeline as data: what it reads, a function from tables to a table, where the result goes, and how often.

``@pipeline`` makes one out of a function; ``pipeline_file.py`` reads them from files, ``runner.py`` runs them. Nothing
here needs Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from barnabas.spark.errors import InvalidOption

NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
OnBadRecord = Literal["stop", "dead_letter"]
Format = Literal["avro", "json", "protobuf"]
Mode = Literal["append", "update", "complete"]


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic to read or write.

    Read with ``schema`` its values are JSON and become columns, beside ``_key``, ``_topic``, ``_partition``,
    ``_offset`` and ``_timestamp``; without, the columns are those of the format. ``watermark`` names a column of
    times and how late records may come. Written, a table without a column ``value`` becomes JSON.

    With ``format`` avro, json or protobuf, values are those of a schema registry: read, their columns are those of the
    latest schema of ``subject``; written, a table becomes Avro of a schema that is registered there.
    """

    name: str
    schema: str | None = None
    format: Format | None = None
    subject: str | None = None  # by default the name with -value
    registry: str | None = None  # URL; by default that of `barnabas up`
    on_bad_record: OnBadRecord = "stop"
    dead_letters: str | None = None  # the topic; by default the name with .dead-letters
    watermark: tuple[str, str] | None = None
    start: str = "earliest"
    key: str | None = None  # when written: the column that becomes the key
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.on_bad_record not in ("stop", "dead_letter"):
            raise InvalidOption(f"on_bad_record={self.on_bad_record!r}: say stop or dead_letter")
        if self.format not in (None, "avro", "json", "protobuf"):
            raise InvalidOption(f"format={self.format!r}: say avro, json or protobuf")
        if self.format is not None and self.schema is not None:
            raise InvalidOption(f"{self}: with format={self.format} the schema is the registry's; leave schema out")

    @property
    def is_decoded(self) -> bool:
        return self.schema is not None or self.format is not None

    @property
    def subject_name(self) -> str:
        return self.subject or f"{self.name}-value"

    @property
    def dead_letter_topic(self) -> str:
        return self.dead_letters or f"{self.name}.dead-letters"

    def __str__(self) -> str:
        return f"topic {self.name}"


@dataclass(frozen=True, kw_only=True)
class Files:
    """A directory of files in one of Spark's formats."""

    path: str
    format: str = "parquet"
    schema: str | None = None  # to read them
    watermark: tuple[str, str] | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.format} files in {self.path}"


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    name: str
    reads: Mapping[str, Topic | Files]
    writes: Topic | Files
    transform: Callable[..., Any]  # takes a DataFrame for each of ``reads``, by name, and answers one
    mode: Mode = "append"
    trigger: str = "1 second"

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise InvalidOption(f"{self.name!r} is no name for a pipeline: use letters, digits, dots and dashes")
        if not self.reads:
            raise InvalidOption(f"pipeline {self.name}: say what it reads")
        if self.mode not in ("append", "update", "complete"):
            raise InvalidOption(f"pipeline {self.name}: mode={self.mode!r}: say append, update or complete")
        if isinstance(self.writes, Files) and self.mode != "append":
            raise InvalidOption(f"pipeline {self.name}: files can only be added to; say mode=append")

    @property
    def group(self) -> str:
        """The consumer group that shows how far the pipeline is."""
        return self.name


def pipeline(
    *,
    reads: Mapping[str, Topic | Files],
    writes: Topic | Files,
    name: str | None = None,
    mode: Mode = "append",
    trigger: str = "1 second",
) -> Callable[[Callable[..., Any]], Pipeline]:
    """Make a pipeline of a function whose parameters are named as what it reads."""

    def made(function: Callable[..., Any]) -> Pipeline:
        return Pipeline(
            name=name or function.__name__.replace("_", "-"),
            reads=reads,
            writes=writes,
            transform=function,
            mode=mode,
            trigger=trigger,
        )

    return made
