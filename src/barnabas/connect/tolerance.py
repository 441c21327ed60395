"""What happens to records that fail: retries, tolerance, dead letters with Kafka's headers, halving of sink batches.

Pure but for ``pause``, which is passed in: the caller sends the dead letters.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from barnabas.connect.definitions import ConnectorConfig, SinkConfig
from barnabas.connect.errors import ConnectError, RetriableError, Stage
from barnabas.observe.log import logger

HEADER_PREFIX: Final = "__connect.errors."
RETRY_MS_FIRST: Final = 300
TRACE_CHARACTERS_MAX: Final = 8192
T = TypeVar("T")

_log: Final = logger("connect")


class Raw(NamedTuple):
    """A record of a topic as bytes, as it was before any converter."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class DeadLetter(NamedTuple):
    """A record that failed, for the dead-letter topic: key and value as they were read."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why and where a record failed."""

    stage: Stage
    step: str  # name of the plugin that failed
    error: BaseException


@dataclass(slots=True)
class ErrorHandler:
    """Decides what a failed record means. Raises ``ConnectError`` where the connector must fail."""

    connector: str
    task: int
    config: ConnectorConfig
    pause: Callable[[float], None]  # waits for so many seconds
    redact: Callable[[str], str] = str
    dead_letters: list[DeadLetter] = field(default_factory=list)  # to be sent before the batch is committed
    skipped: int = 0

    def run(self, stage: Stage, step: str, operation: Callable[[], T]) -> T | Failure:
        """Return what the operation returns, or its failure; retriable errors are retried for a while."""
        waited_ms, delay_ms = 0, RETRY_MS_FIRST
        limit = self.config.errors_retry_timeout
        while True:
            try:
                return operation()
            except RetriableError as error:
                if limit >= 0 and waited_ms >= limit:
                    return Failure(stage, step, error)
                delay_ms = min(delay_ms, self.config.errors_retry_delay_max_ms)
                self.pause(delay_ms / 1000)
                waited_ms, delay_ms = waited_ms + delay_ms, delay_ms * 2
            except Exception as error:  # noqa: BLE001 - plugins may raise anything; it becomes the record's failure
                return Failure(stage, step, error)

    def failed(self, failure: Failure, raw: Raw | None) -> None:
        """Skip the record, with a dead letter if there is a topic for them, or raise."""
        if self.config.errors_tolerance == "none" or isinstance(failure.error, RetriableError):
            kind = RetriableError if isinstance(failure.error, RetriableError) else ConnectError
            where = "" if raw is None else f" at {raw.topic}-{raw.partition} offset {raw.offset}"
            message = f"{failure.stage} of {failure.step} failed{where}: {self.redact(describe(failure.error))}"
            raise kind(message) from failure.error
        self.skipped += 1
        if self.config.errors_log_enable:
            self._log(failure, raw)
        if raw is not None and isinstance(self.config, SinkConfig) and self.config.errors_deadletterqueue_topic_name:
            has_context = self.config.errors_deadletterqueue_context_headers_enable
            more = self._context(failure, raw) if has_context else ()
            self.dead_letters.append(DeadLetter(raw.key, raw.value, (*raw.headers, *more)))

    def _log(self, failure: Failure, raw: Raw | None) -> None:
        values: dict[str, object] = {"connector": self.connector, "stage": failure.stage, "step": failure.step}
        values["error"] = self.redact(describe(failure.error))
        if raw is not None:
            values |= {"topic": raw.topic, "partition": raw.partition, "offset": raw.offset}
            if self.config.errors_log_include_messages:
                values |= {"record_key": raw.key, "record_value": raw.value}
        _log.error("record failed", **values)

    def _context(self, failure: Failure, raw: Raw) -> Iterator[tuple[str, bytes]]:
        kind = type(failure.error)
        values = {
            "topic": raw.topic,
            "partition": str(raw.partition),
            "offset": str(raw.offset),
            "connector.name": self.connector,
            "task.id": str(self.task),
            "stage": failure.stage.value,
            "class.name": failure.step,
            "exception.class.name": f"{kind.__module__}.{kind.__qualname__}",
            "exception.message": self.redact(str(failure.error)),
            "exception.stacktrace": self.redact(trace_of(failure.error)),
        }
        return ((HEADER_PREFIX + name, value.encode()) for name, value in values.items())


def describe(error: BaseException) -> str:
    """Return an error's type and message."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def trace_of(error: BaseException) -> str:
    """Return the end of an error's traceback, bounded."""
    return "".join(traceback.format_exception(error))[-TRACE_CHARACTERS_MAX:]


def put_by_halves(
    put: Callable[[Sequence[T]], None], items: Sequence[T], failed: Callable[[T, BaseException], None]
) -> None:
    """Put all items; where a list fails, halve it until the items that fail stand alone, and report each.

    ``put`` takes all items of a list or none. ``RetriableError`` is not an item's fault and is raised.
    """
    if not items:
        return
    try:
        put(items)
    except RetriableError:
        raise
    except Exception as error:  # noqa: BLE001 - a plugin's put may raise anything
        if len(items) == 1:
            failed(items[0], error)
            return
        middle = len(items) // 2
        put_by_halves(put, items[:middle], failed)
        put_by_halves(put, items[middle:], failed)
