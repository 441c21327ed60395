"""The pytest plugin: the fixtures ``broker`` and ``schema_registry``, fresh for each test that asks for them.

Installed with the package; pytest finds it by its entry point. Everything is imported when the fixture is first
used, so projects that do not use it pay nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker
    from barnabas.testing.registry import RegistryProcess


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker in this process, in memory, on a free port: ``broker.bootstrap_servers``."""
    from barnabas.testing.broker import Broker

    with Broker() as running:
        yield running


@pytest.fixture
def schema_registry(broker: Broker) -> Iterator[RegistryProcess]:
    """A schema registry of that broker, in a process of its own: ``schema_registry.url``."""
    from barnabas.testing.registry import RegistryProcess

    with RegistryProcess(broker.bootstrap_servers) as running:
        yield running
