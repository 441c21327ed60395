"""Errors of connectors: what the caller did wrong, what may pass by itself, and what is wrong with one record."""

from __future__ import annotations

from enum import StrEnum

from barnabas.model.errors import BarnabasError


class ConnectError(BarnabasError):
    """Base of all errors of this package. A plugin raises it, or any other exception, to fail its connector."""


class RetriableError(ConnectError):
    """The same attempt may succeed later (network, locks, a restart); the worker restarts with back-off."""


class ConfigError(ConnectError):
    """The connector's configuration is invalid; ``problems`` has one message for each key that is wrong."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class DataError(ConnectError):
    """A single record cannot be converted, transformed or written."""


class UnknownPlugin(ConnectError):
    """No plugin has this name, alias or class name."""


class OffsetError(ConnectError):
    """The offsets of a request do not fit the connector."""


class Stage(StrEnum):
    """Where a record failed: Kafka Connect's names, as they stand in the headers of dead letters."""

    TASK_POLL = "TASK_POLL"
    TASK_PUT = "TASK_PUT"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"
