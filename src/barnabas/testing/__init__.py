"""For tests, ours and yours: a broker in the test's process or in one of its own, a cluster, and a simulated world."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker, BrokerProcess
    from barnabas.testing.cluster import Cluster
    from barnabas.testing.registry import RegistryProcess

__all__ = ["Broker", "BrokerProcess", "Cluster", "RegistryProcess"]

_MODULES: Final = {
    "Broker": "broker",
    "BrokerProcess": "broker",
    "Cluster": "cluster",
    "RegistryProcess": "registry",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
