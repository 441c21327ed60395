"""Levels of loggers as the REST API shows and sets them, under Kafka's names of levels."""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from barnabas.rest.errors import RestError

ROOT: Final = "root"
LEVELS: Final = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
}
_NAMES: Final = {level: name for name, level in LEVELS.items()}
BAD_REQUEST: Final = 400
NOT_FOUND: Final = 404


class Loggers:
    """Reads and sets levels, and remembers when."""

    def __init__(self) -> None:
        self._changed: dict[str, int] = {}

    def all(self) -> dict[str, Any]:
        """Return all loggers that have been used."""
        names = [name for name, each in logging.root.manager.loggerDict.items() if isinstance(each, logging.Logger)]
        return {name: self._shown(name) for name in sorted([*names, ROOT])}

    def get(self, name: str) -> dict[str, Any]:
        """Return one logger, or raise 404."""
        if name != ROOT and not isinstance(logging.root.manager.loggerDict.get(name), logging.Logger):
            raise RestError(NOT_FOUND, f"Logger {name} not found.")
        return self._shown(name)

    def _shown(self, name: str) -> dict[str, Any]:
        level = logging.getLogger(None if name == ROOT else name).getEffectiveLevel()
        return {"level": _NAMES.get(level, "INFO"), "last_modified": self._changed.get(name)}

    def set(self, name: str, level: str) -> list[str]:
        """Set the level of a logger and of all below it; return their names."""
        number = checked(level)
        logging.getLogger(None if name == ROOT else name).setLevel(LEVELS[number])
        below = [each for each in logging.root.manager.loggerDict if each.startswith(f"{name}.")]
        now = time.time_ns() // 1_000_000
        for each in (name, *below):
            self._changed[each] = now
        for each in below:
            logging.getLogger(each).setLevel(LEVELS[number])
        return sorted([name, *below])


def checked(level: Any) -> str:
    """Return the name of a level in capitals, or raise."""
    if not isinstance(level, str) or not level:
        raise RestError(BAD_REQUEST, "the body needs a 'level'")
    if level.upper() not in LEVELS:
        raise RestError(NOT_FOUND, f"invalid log level '{level}'.")
    return level.upper()
