"""A connector's converters and transforms put together: records to bytes for sources, bytes to records for sinks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from barnabas.connect.connector_config import Parts, StepConfig, problems
from barnabas.connect.converters import Converted, Converter
from barnabas.connect.definitions import ConnectorConfig
from barnabas.connect.errors import ConfigError, Stage
from barnabas.connect.plugins import Predicate, Transform
from barnabas.connect.records import Header, Record
from barnabas.connect.tolerance import ErrorHandler, Failure, Raw


class Outgoing(NamedTuple):
    """A record of a source as bytes."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int | None


@dataclass(slots=True)
class _Step:
    name: str
    transform: Transform[Any]
    predicate: Predicate[Any] | None
    negate: bool


Watch = Callable[[str, Record | None], None]  # told of the record after each step


class Chain:
    """Converters and transforms of one connector. Built from a valid configuration with references resolved."""

    def __init__(self, parts: Parts) -> None:
        found = problems(parts)
        if found:
            raise ConfigError(*found)
        self.common: ConnectorConfig = parts.common_kind.read(parts.common)
        self._key = _converter(parts.converters["key.converter"], is_key=True)
        self._value = _converter(parts.converters["value.converter"], is_key=False)
        self._header = _converter(parts.converters["header.converter"], is_key=False)
        predicates = {name: step.plugin.cls(_config(step)) for name, step in parts.predicates.items()}
        self._steps = [
            _Step(
                step.plugin.name,
                step.plugin.cls(_config(step)),
                None if step.predicate is None else predicates[step.predicate],
                step.negate,
            )
            for step in parts.transforms
        ]

    def transform(
        self, record: Record, errors: ErrorHandler, raw: Raw | None, watch: Watch | None = None
    ) -> Record | None:
        """Return the record after all transforms; None if one drops it or it fails and that is tolerated."""
        current: Record | None = record
        for step in self._steps:
            made = errors.run(Stage.TRANSFORMATION, step.name, lambda: _applied(step, current))  # noqa: B023 - called at once
            if isinstance(made, Failure):
                errors.failed(made, raw)
                return None
            current = made
            if watch is not None:
                watch(step.name, current)
            if current is None:
                return None
        return current

    def to_bytes(self, record: Record, errors: ErrorHandler) -> Outgoing | None:
        """Return a source's record as bytes; None if that fails and is tolerated."""
        topic = record.topic
        parts = (
            (Stage.KEY_CONVERTER, self._key, record.key_schema, record.key),
            (Stage.VALUE_CONVERTER, self._value, record.value_schema, record.value),
        )
        made: list[bytes | None] = []
        for stage, converter, schema, data in parts:
            result = errors.run(stage, type(converter).__name__, lambda: converter.to_bytes(topic, schema, data))  # noqa: B023
            if isinstance(result, Failure):
                errors.failed(result, None)
                return None
            made.append(result)
        headers = errors.run(Stage.HEADER_CONVERTER, type(self._header).__name__, lambda: self._headers(record))
        if isinstance(headers, Failure):
            errors.failed(headers, None)
            return None
        return Outgoing(topic, record.partition, made[0], made[1], headers, record.timestamp_ms)

    def _headers(self, record: Record) -> tuple[tuple[str, bytes | None], ...]:
        return tuple(
            (header.key, self._header.to_bytes(record.topic, header.schema, header.value)) for header in record.headers
        )

    def from_bytes(self, raw: Raw, errors: ErrorHandler) -> Record | None:
        """Return the record of a sink; None if that fails and is tolerated."""
        made: list[Converted] = []
        for stage, converter, data in (
            (Stage.KEY_CONVERTER, self._key, raw.key),
            (Stage.VALUE_CONVERTER, self._value, raw.value),
        ):
            result = errors.run(stage, type(converter).__name__, lambda: converter.from_bytes(raw.topic, data))  # noqa: B023
            if isinstance(result, Failure):
                errors.failed(result, raw)
                return None
            made.append(result)
        headers = errors.run(
            Stage.HEADER_CONVERTER,
            type(self._header).__name__,
            lambda: [_header(self._header, raw.topic, key, data) for key, data in raw.headers],
        )
        if isinstance(headers, Failure):
            errors.failed(headers, raw)
            return None
        return Record(
            topic=raw.topic,
            value=made[1].value,
            key=made[0].value,
            headers=headers,
            partition=raw.partition,
            timestamp_ms=raw.timestamp_ms,
            key_schema=made[0].schema,
            value_schema=made[1].schema,
            offset=raw.offset,
        )


def _header(converter: Converter, topic: str, key: str, data: bytes | None) -> Header:
    found = converter.from_bytes(topic, data)
    return Header(key, found.value, found.schema)


def _applied(step: _Step, record: Record | None) -> Record | None:
    assert record is not None
    if step.predicate is not None and step.predicate.test(record) == step.negate:
        return record
    return step.transform.apply(record)


def _config(step: StepConfig) -> Any:
    return step.plugin.cls.Config.read(step.given)


def _converter(step: StepConfig, *, is_key: bool) -> Converter:
    made: Converter = step.plugin.cls(_config(step), is_key=is_key)
    return made
