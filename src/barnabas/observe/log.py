"""Log lines as ``event key=value``, safe against what clients put into ids.

Every room logs through :func:`logger`; where lines go and from which level on is set once, by the command line or a
test, with the standard library's logging. Values are quoted when they hold anything but plain printable characters,
so a client id can neither forge a line nor colour a terminal.
"""

from __future__ import annotations

import logging
from typing import Final

VALUE_CHARACTERS_MAX: Final = 200
ROOT: Final = "barnabas"
SECRETS: Final = ("password", "secret", "token", "credential", "jaas")
HIDDEN: Final = "[hidden]"


class Logger:
    """``log.info("started", port=9092)``."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(f"{ROOT}.{name}")

    def debug(self, event: str, **values: object) -> None:
        if self._logger.isEnabledFor(logging.DEBUG):
            self._logger.debug("%s", line(event, values), extra=_extra(event, values))

    def info(self, event: str, **values: object) -> None:
        if self._logger.isEnabledFor(logging.INFO):
            self._logger.info("%s", line(event, values), extra=_extra(event, values))

    def warning(self, event: str, **values: object) -> None:
        self._logger.warning("%s", line(event, values), extra=_extra(event, values))

    def error(self, event: str, **values: object) -> None:
        self._logger.error("%s", line(event, values), extra=_extra(event, values))

    def exception(self, event: str, **values: object) -> None:
        """With the traceback of the exception being handled."""
        self._logger.exception("%s", line(event, values), extra=_extra(event, values))

    def failure(self, event: str, error: BaseException | None, /, **values: object) -> None:
        """As ``error``, with the traceback of an exception that is not being handled here."""
        self._logger.error("%s", line(event, values), extra=_extra(event, values), exc_info=error)


def logger(name: str) -> Logger:
    return Logger(name)


def line(event: str, values: dict[str, object]) -> str:
    return " ".join([event, *(f"{key}={_plain(shown(key, value))}" for key, value in values.items())])


def shown(key: str, value: object) -> str:
    """A value as it may be seen: cut where it is long, and hidden where its name says that it is secret."""
    if any(word in key for word in SECRETS):
        return HIDDEN
    text = str(value)
    return text if len(text) <= VALUE_CHARACTERS_MAX else text[:VALUE_CHARACTERS_MAX] + "…"


def _extra(event: str, values: dict[str, object]) -> dict[str, object]:
    """For those who write lines in another form: see ``lines``."""
    return {"event": event, "values": values}


def _plain(text: str) -> str:
    if text and all(character.isprintable() and character not in " =\"'" for character in text):
        return text
    return '"' + "".join(character if _is_safe(character) else _escaped(character) for character in text) + '"'


def _is_safe(character: str) -> bool:
    return character.isprintable() and character not in '"\\'


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode() if character not in '"\\' else "\\" + character
