"""Where log lines go and what they look like: text or JSON, to standard error or to a file that is rotated.

The command line calls :func:`write_logs` once. What is logged, and how values are made harmless, is ``log``'s.
"""

from __future__ import annotations

import json
import logging
from logging.handlers import RotatingFileHandler
from typing import Any, Final

from barnabas.observe.log import ROOT, shown

LINES: Final = "lines"
JSON: Final = "json"
FORMATS: Final = (LINES, JSON)
AUDIT: Final = f"{ROOT}.audit"
TEXT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"


class JsonFormatter(logging.Formatter):
    """One object a line: time, level, logger, event, and what the event carries."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03d"

    def format(self, record: logging.LogRecord) -> str:
        found: dict[str, object] = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "event": getattr(record, "event", None) or record.getMessage(),
        }
        for key, value in getattr(record, "values", {}).items():
            is_plain = value is None or isinstance(value, bool | int | float)
            found[key if key not in found else f"{key}_"] = value if is_plain else shown(key, value)
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        return json.dumps(found, ensure_ascii=True)


class TextFormatter(logging.Formatter):
    """A traceback may quote what a client sent: its lines are indented, so that none of them looks like one of ours."""

    def __init__(self) -> None:
        super().__init__(TEXT)

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return "\n".join(f"  {line}" for line in super().formatException(ei).splitlines())


def write_logs(
    *,
    form: str = LINES,
    level: str = "WARNING",
    path: str | None = None,
    file_bytes_max: int = 64 * 1024 * 1024,
    file_count: int = 5,
    has_audit: bool = True,
) -> None:
    """OSError if the file cannot be written. A second call takes the place of the first."""
    handler: logging.Handler
    if path is None:
        handler = logging.StreamHandler()
    else:
        handler = RotatingFileHandler(path, maxBytes=file_bytes_max, backupCount=file_count, encoding="utf-8")
    handler.setFormatter(JsonFormatter() if form == JSON else TextFormatter())
    root = logging.getLogger(ROOT)
    for old in root.handlers:
        old.close()
    root.handlers = [handler]
    root.setLevel(level)
    root.propagate = False
    # What somebody did is told whatever the level of the rest is, unless nobody wants to know.
    logging.getLogger(AUDIT).setLevel(logging.INFO if has_audit else logging.CRITICAL)
