"""The pytest plugin: the fixture ``broker``, a fresh broker in memory for each test that asks for it.

Installed with the package; pytest finds it by its entry point. Everything is imported when the fixture is first
used, so projects that do not use it pay nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker in this process, in memory, on a free port: ``broker.bootstrap_servers``."""
    from barnabas.testing.broker import Broker

    with Broker() as running:
        yield running
