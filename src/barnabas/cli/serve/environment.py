"""Broker settings from environment variables: ``BARNABAS_SET_LOG_RETENTION_HOURS=1`` is ``log.retention.hours=1``.

Pure: the environment is an argument. A variable with the prefix that names no setting is an error, as a misspelt name
in a file is. Variables win over the file and the development profile; the options of the command line win over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from barnabas.broker.settings.broker import ALIASES, BROKER_SETTINGS
from barnabas.broker.settings.security import LISTENER_PREFIX, SECURITY_SETTINGS
from barnabas.model.settings import InvalidSetting

PREFIX: Final = "BARNABAS_SET_"


def settings_of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    known = {variable(name): name for name in (*(setting.name for setting in BROKER_SETTINGS), *ALIASES)}
    found = {}
    for each in sorted(environment):
        if each.startswith(PREFIX):
            name = known.get(each) or _of_listener(each)
            if name is None:
                raise InvalidSetting(f"{each} in the environment names no setting{_suggestion(each, known)}")
            found[name] = environment[each]
    return found


def variable(name: str) -> str:
    """The variable that gives a setting."""
    return PREFIX + name.upper().replace(".", "_")


def _of_listener(each: str) -> str | None:
    """``listener.name.<listener>.<setting>``: the listener may hold underscores, so the setting is found first."""
    start = variable(LISTENER_PREFIX)
    if not each.startswith(start):
        return None
    rest = each.removeprefix(start)
    for setting in SECURITY_SETTINGS:
        listener = rest.removesuffix("_" + setting.attribute.upper())
        if listener and listener != rest:
            return f"{LISTENER_PREFIX}{listener.lower()}.{setting.name}"
    return None


def _suggestion(each: str, known: Iterable[str]) -> str:
    near = get_close_matches(each, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""
