"""What may change of a broker's listeners while it runs, as a pure question about its settings before and after.

Listeners for clients come, go and move; keys and trust of one that stays are renewed. All else about a listener is
settled when it opens, and those by which nodes reach each other stay where they are. ``own_settings`` asks here before
a change is made; ``listeners`` compares shapes to see which listeners to close and which to open.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.endpoints import Endpoint
from barnabas.broker.settings.security import KEY_SETTINGS, LISTENER_PREFIX, PROTOCOL_MAP, Protocol
from barnabas.model.settings import InvalidSetting

LATER = "put it into the broker's file and restart it"


class Shape(NamedTuple):
    """What of a listener stays the same as long as it is open."""

    endpoint: Endpoint
    protocol: Protocol
    fixed: tuple[tuple[str, str], ...]  # what is set for this listener alone, but for its keys


def shapes(settings: BrokerSettings) -> dict[str, Shape]:
    """By the name of the listener, in the order of ``listeners``."""
    texts = sorted({**settings.given, **settings.dynamic}.items())
    found = {}
    for endpoint in settings.endpoints:
        prefix = f"{LISTENER_PREFIX}{endpoint.name.lower()}."
        own = [(full.removeprefix(prefix), text) for full, text in texts if full.startswith(prefix)]
        found[endpoint.name] = Shape(
            endpoint,
            settings.security.listeners[endpoint.name].protocol,
            tuple((name, text) for name, text in own if name not in KEY_SETTINGS),
        )
    return found


def listener_of(name: str) -> str | None:
    """The listener that a setting is for, if it is for one alone."""
    if not name.startswith(LISTENER_PREFIX):
        return None
    return name.removeprefix(LISTENER_PREFIX).partition(".")[0].upper()


def is_about_listeners(name: str) -> bool:
    return name in ("listeners", PROTOCOL_MAP) or name.startswith(LISTENER_PREFIX)


def check_change(old: BrokerSettings, new: BrokerSettings) -> None:
    """InvalidSetting unless a running broker may go from one to the other."""
    before, after = shapes(old), shapes(new)
    for name in {**before, **after}:
        if new.cluster.is_for_controllers(name) and before.get(name) != after.get(name):
            raise InvalidSetting(
                f"listeners: {name} is for controllers and stays as it is while the node runs; {LATER}"
            )
    for name in before.keys() & after.keys():
        _check_kept(name, before[name], after[name])
    inter_broker = new.cluster.inter_broker_listener_name or ""
    if inter_broker in before and before[inter_broker].endpoint != after[inter_broker].endpoint:
        raise InvalidSetting(
            f"listeners: brokers reach each other by {inter_broker}, which does not move while this one runs; {LATER}"
        )


def _check_kept(name: str, before: Shape, after: Shape) -> None:
    if before.protocol is not after.protocol:
        raise InvalidSetting(
            f"listener {name} keeps its security protocol while the broker runs: add a listener of another name, or "
            f"{LATER}"
        )
    changed = {setting for setting, _ in set(before.fixed) ^ set(after.fixed)}
    if changed:
        raise InvalidSetting(
            f"listener {name} keeps {', '.join(sorted(changed))} while the broker runs: add a listener of another "
            f"name, or {LATER}"
        )
