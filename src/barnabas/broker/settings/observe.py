"""The settings that say what a broker tells of itself: its logs, and what is worth a line in them; declared once.

``broker/settings/broker.py`` takes them into its table and into its typed values. The page of numbers has settings of
its own there (``barnabas.http.port``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.model.declared import Declared, named
from barnabas.model.settings import Kind
from barnabas.observe.lines import FORMATS, LINES

LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveSettings(Declared):
    slow_ms: int = named(
        "barnabas.slow.request.ms",
        Kind.INT,
        1000,
        "Requests that take longer are logged; 0 means none. Waiting for records or members does not count.",
        minimum=0,
    )
    log_format: str = named(
        "barnabas.log.format", Kind.STRING, LINES, "Log lines as text or as one JSON object each.", choices=FORMATS
    )
    log_level: str = named("barnabas.log.level", Kind.STRING, "WARNING", "What is logged.", choices=LEVELS)
    log_file: str | None = named(
        "barnabas.log.file", Kind.STRING, None, "The file that log lines go to; without one, standard error."
    )
    log_file_bytes_max: int = named(
        "barnabas.log.file.max.bytes",
        Kind.LONG,
        64 * 1024 * 1024,
        "At this size a log file is put aside and a new one begun.",
        minimum=1024,
    )
    log_file_count: int = named("barnabas.log.file.count", Kind.INT, 5, "How many files put aside are kept.", minimum=1)
    has_audit: bool = named(
        "barnabas.audit.enable",
        Kind.BOOLEAN,
        True,
        "Whether changes by administrators, refused requests and failed sign-ins are logged, by barnabas.audit.",
    )
