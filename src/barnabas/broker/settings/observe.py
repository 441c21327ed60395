"""The settings that say what a broker tells of itself: its logs, and what is worth a line in them; declared once.

``broker/settings/broker.py`` takes them into its table and into its typed values. The page of numbers has settings of
its own there (``barnabas.http.port``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas.model.settings import Kind, Setting, SettingTable, setting
from barnabas.observe.lines import FORMATS, LINES

LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")


def _settings() -> Iterator[Setting]:
    yield setting(
        "barnabas.slow.request.ms",
        Kind.INT,
        1000,
        "Requests that take longer are logged; 0 means none. Waiting for records or members does not count.",
        minimum=0,
    )
    yield setting(
        "barnabas.log.format", Kind.STRING, LINES, "Log lines as text or as one JSON object each.", choices=FORMATS
    )
    yield setting("barnabas.log.level", Kind.STRING, "WARNING", "What is logged.", choices=LEVELS)
    yield setting("barnabas.log.file", Kind.STRING, None, "The file that log lines go to; without one, standard error.")
    yield setting(
        "barnabas.log.file.max.bytes",
        Kind.LONG,
        64 * 1024 * 1024,
        "At this size a log file is put aside and a new one begun.",
        minimum=1024,
    )
    yield setting("barnabas.log.file.count", Kind.INT, 5, "How many files put aside are kept.", minimum=1)
    yield setting(
        "barnabas.audit.enable",
        Kind.BOOLEAN,
        True,
        "Whether changes by administrators, refused requests and failed sign-ins are logged, by barnabas.audit.",
    )


OBSERVE_SETTINGS: Final = SettingTable(_settings())


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveSettings:
    slow_ms: int
    log_format: str
    log_level: str
    log_file: str | None
    log_file_bytes_max: int
    log_file_count: int
    has_audit: bool

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ObserveSettings:
        found = OBSERVE_SETTINGS.filled(values)
        return cls(
            slow_ms=found["barnabas.slow.request.ms"],
            log_format=found["barnabas.log.format"],
            log_level=found["barnabas.log.level"],
            log_file=found["barnabas.log.file"],
            log_file_bytes_max=found["barnabas.log.file.max.bytes"],
            log_file_count=found["barnabas.log.file.count"],
            has_audit=found["barnabas.audit.enable"],
        )
