"""Kafka's predicates: HasHeaderKey, RecordIsTombstone, TopicNameMatches."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from barnabas.connect.config import Config, doc
from barnabas.connect.plugins import Predicate, predicate
from barnabas.connect.records import Record

PACKAGE: Final = "org.apache.kafka.connect.transforms.predicates"


class HasHeaderKeyConfig(Config):
    """Keys of HasHeaderKey."""

    name: Annotated[str, doc("Name of the header", importance="MEDIUM")]


@predicate(f"{PACKAGE}.HasHeaderKey")
class HasHeaderKey(Predicate[HasHeaderKeyConfig]):
    """The record has a header of this name."""

    Config = HasHeaderKeyConfig

    def test(self, record: Record) -> bool:
        """Return whether there is one."""
        return any(header.key == self.config.name for header in record.headers)


@predicate(f"{PACKAGE}.RecordIsTombstone")
class RecordIsTombstone(Predicate[Any]):
    """The record has no value."""

    def test(self, record: Record) -> bool:
        """Return whether the value is null."""
        return record.value is None


class TopicNameMatchesConfig(Config):
    """Keys of TopicNameMatches."""

    pattern: Annotated[str, doc("Regular expression for the whole name of the topic", importance="MEDIUM")]

    def check(self) -> list[str]:
        """Return whether the pattern is a regular expression."""
        return regex_problems("pattern", self.pattern)


def regex_problems(key: str, pattern: str) -> list[str]:
    """Return a message if a pattern is not a regular expression."""
    try:
        re.compile(pattern)
    except re.error as error:
        return [f"Invalid value {pattern} for configuration {key}: not a regular expression: {error}"]
    return []


@predicate(f"{PACKAGE}.TopicNameMatches")
class TopicNameMatches(Predicate[TopicNameMatchesConfig]):
    """The topic's name matches a pattern."""

    Config = TopicNameMatchesConfig

    def __init__(self, config: TopicNameMatchesConfig) -> None:
        super().__init__(config)
        self._pattern = re.compile(config.pattern)

    def test(self, record: Record) -> bool:
        """Return whether the whole name matches."""
        return self._pattern.fullmatch(record.topic) is not None
