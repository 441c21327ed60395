"""Transforms that choose the topic or drop the record: Filter, RegexRouter, TimestampRouter."""

from __future__ import annotations

import re
from typing import Annotated, Any

from barnabas.connect.config import Config, doc
from barnabas.connect.errors import DataError
from barnabas.connect.plugins import Transform
from barnabas.connect.records import Record
from barnabas.connect.schemas import from_millis
from barnabas.connect.transforms.date_format import DateFormat, format_problems
from barnabas.connect.transforms.predicates import regex_problems
from barnabas.connect.transforms.sides import one


@one
class Filter(Transform[Any]):
    """Drop every record; used with a predicate."""

    def apply(self, record: Record) -> None:
        """Drop the record."""
        return


class RegexRouterConfig(Config):
    """Keys of RegexRouter."""

    regex: Annotated[str, doc("Regular expression for the whole name of the topic")]
    replacement: Annotated[str, doc("New name; $1 is the first group")]

    def check(self) -> list[str]:
        """Return whether the pattern is a regular expression."""
        return regex_problems("regex", self.regex)


@one
class RegexRouter(Transform[RegexRouterConfig]):
    """Rename the topic by a pattern."""

    Config = RegexRouterConfig

    def __init__(self, config: RegexRouterConfig) -> None:
        super().__init__(config)
        self._pattern = re.compile(re.sub(r"\(\?<([A-Za-z])", r"(?P<\1", config.regex))
        self._replacement = python_replacement(config.replacement, self._pattern.groups)

    def apply(self, record: Record) -> Record:
        """Return the record for the new topic, if the name matches."""
        match = self._pattern.fullmatch(record.topic)
        return record if match is None else record.copy(topic=match.expand(self._replacement))


def python_replacement(java: str, groups: int) -> str:
    """Return a replacement of Java (``$1``, ``${name}``, ``\\$``) as one of Python."""

    def translated(match: re.Match[str]) -> str:
        escaped, name, number, other = match.groups()
        if escaped is not None:
            return escaped.replace("\\", r"\\")
        if name is not None:
            return rf"\g<{name}>"
        if number is not None:
            # Java takes as many digits as make a group that exists.
            cut = next((i for i in range(len(number), 1, -1) if int(number[:i]) <= groups), 1)
            return rf"\g<{number[:cut]}>{number[cut:]}"
        return str(other).replace("\\", r"\\")

    return re.sub(r"\\(.)|\$\{(\w+)\}|\$(\d+)|(.)", translated, java, flags=re.DOTALL)


class TimestampRouterConfig(Config):
    """Keys of TimestampRouter."""

    topic_format: Annotated[str, doc("New name; ${topic} and ${timestamp} are replaced")] = "${topic}-${timestamp}"
    timestamp_format: Annotated[str, doc("Format of the timestamp, as Java's SimpleDateFormat")] = "yyyyMMdd"

    def check(self) -> list[str]:
        """Return whether the format is one."""
        return format_problems("timestamp.format", self.timestamp_format)


@one
class TimestampRouter(Transform[TimestampRouterConfig]):
    """Add the record's time to the topic."""

    Config = TimestampRouterConfig

    def __init__(self, config: TimestampRouterConfig) -> None:
        super().__init__(config)
        self._format = DateFormat(config.timestamp_format)

    def apply(self, record: Record) -> Record:
        """Return the record for the topic of its time."""
        if record.timestamp_ms is None:
            raise DataError("TimestampRouter: the record has no timestamp")
        stamp = self._format.format(from_millis(record.timestamp_ms))
        topic = self.config.topic_format.replace("${topic}", record.topic).replace("${timestamp}", stamp)
        return record.copy(topic=topic)
