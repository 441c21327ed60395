"""What the tests over real sockets share: one broker for a module, a connection for a test, and its conscience.

A test that makes a handler fail, or leaves a task with an exception behind, fails itself, whatever the client saw.
"""

from __future__ import annotations

import itertools
import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from talk import Talk

    from barnabas.testing import Broker

# The clients beside this file, and the harness of `bench`, are not installed anywhere.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

_numbers = itertools.count(1)


class NamedBroker:
    """A broker that somebody else started: all that is known of it is where it listens."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers


@pytest.fixture(scope="module")
def shared_broker() -> Iterator[Broker | NamedBroker]:
    """Barnabas in this process, or what ``BARNABAS_TEST_BOOTSTRAP`` names; tests of our clients run with either."""
    named = os.environ.get("BARNABAS_TEST_BOOTSTRAP")
    if named:
        yield NamedBroker(named)
        return
    from barnabas.testing import Broker

    with Broker() as running:
        yield running


@pytest.fixture
def talk(shared_broker: Broker) -> Iterator[Talk]:
    from talk import Talk

    with Talk(shared_broker.bootstrap_servers) as connection:
        yield connection


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Topic names that no other test has."""
    return lambda: f"topic-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def name(new_name: Callable[[], str]) -> str:
    return new_name()


@pytest.fixture(autouse=True)
def _no_handler_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.WARNING, logger="barnabas")
    yield
    for when in ("setup", "call"):
        for record in caplog.get_records(when):  # type: ignore[arg-type]
            text = f"{record.getMessage()}\n{record.exc_text or ''}"
            assert "handler failed" not in text, text
            assert record.name != "asyncio", text
