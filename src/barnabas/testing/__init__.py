"""For tests, ours and yours: a broker in the test's process or in one of its own, and a simulated world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker, BrokerProcess

__all__ = ["Broker", "BrokerProcess"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from barnabas.testing import broker

        return getattr(broker, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
