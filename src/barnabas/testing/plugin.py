"""The pytest plugin: the fixtures ``broker``, ``schema_registry`` and ``drive``, fresh for each test that uses them.

Installed with the package; pytest finds it by its entry point. Everything is imported when the fixture is first
used, so projects that do not use it pay nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from barnabas.streams import App, Driver
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


class Drive(Protocol):
    """Type of the fixture ``drive``; the options are those of :func:`barnabas.streams.drive`."""

    def __call__(self, app: App, **options: Any) -> Driver:
        """Run an application until the end of the test."""


@pytest.fixture
def drive() -> Iterator[Drive]:
    """Run Streams applications until the end of the test: ``driver = drive(app)``, or ``drive(app, on="spark")``."""
    from barnabas.streams import drive as driving

    with ExitStack() as running:

        def start(app: App, **options: Any) -> Driver:
            return running.enter_context(driving(app, **options))

        yield start
