"""From which level on each logger writes, by Kafka's words for levels; read and changed while a broker runs.

The names are those of the loggers that exist, and ``root`` for the one above all of them. What is changed here lasts
until the process ends; where lines go is ``lines``'.
"""

from __future__ import annotations

import logging
from typing import Final

from barnabas.observe.log import ROOT

ROOT_NAME: Final = "root"
TRACE: Final = 5
LEVELS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
}


def levels() -> dict[str, str]:
    """The level in force of every logger."""
    return {name: _word(_logger(name).getEffectiveLevel()) for name in _names()}


def is_logger(name: str) -> bool:
    return name in _names()


def set_level(name: str, level: str | None) -> None:
    """None: as the logger above it."""
    assert is_logger(name), name
    _logger(name).setLevel(logging.NOTSET if level is None else LEVELS[level])


def _names() -> list[str]:
    known = logging.Logger.manager.loggerDict
    return [ROOT_NAME, *sorted(name for name in known if name.startswith(f"{ROOT}."))]


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(ROOT if name == ROOT_NAME else name)


def _word(number: int) -> str:
    """The finest level that is not finer than the number."""
    return next((word for word, level in LEVELS.items() if level <= number), "TRACE")
