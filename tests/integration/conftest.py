"""What the tests over real sockets share: one broker for a module, a connection for a test, and its conscience.

A test that makes a handler fail, or leaves a task with an exception behind, fails itself, whatever the client saw.
"""

from __future__ import annotations

import itertools
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from capturing import Capture
    from certificates import Authority
    from rights import Granted
    from talk import Raw, Talk
    from tools.postgres_server import PostgresServer

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
def raw(shared_broker: Broker) -> Iterator[Raw]:
    """A connection that sends whatever it is given."""
    from talk import Raw

    with Raw(shared_broker.bootstrap_servers) as connection:
        yield connection


@pytest.fixture
def others_are_undisturbed(shared_broker: Broker) -> Iterator[None]:
    """Whatever the test did, a good client is served at once after it."""
    from hostile_frames import QUICK_SECONDS_MAX
    from talk import Talk

    from barnabas.wire.messages.metadata import MetadataRequest

    yield
    started = time.monotonic()
    with Talk(shared_broker.bootstrap_servers) as good:
        assert good.ask(MetadataRequest(topics=[])).brokers
    assert time.monotonic() - started < QUICK_SECONDS_MAX


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Issues certificates for the tests of a module."""
    from certificates import Authority

    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def guarded(authority: Authority) -> Iterator[Broker]:
    """A broker that asks for rights."""
    from rights import TOPIC, guarded_settings, signed_in

    from barnabas.testing import Broker

    with Broker(settings=guarded_settings(authority)) as running, signed_in(running, "admin") as admin:
        admin.create(TOPIC)
        yield running


@pytest.fixture(scope="module")
def admin(guarded: Broker) -> Iterator[Talk]:
    from rights import signed_in

    with signed_in(guarded, "admin") as talk:
        yield talk


@pytest.fixture
def alice(guarded: Broker) -> Iterator[Talk]:
    from rights import signed_in

    with signed_in(guarded, "alice") as talk:
        yield talk


@pytest.fixture
def grant(admin: Talk) -> Iterator[Granted]:
    """Rules for alice, which are gone after the test."""
    from rights import Granted

    granted = Granted(admin)
    granted.nothing()
    yield granted
    granted.nothing()


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


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server with logical replication."""
    from tools.postgres_server import PostgresServer

    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    """A database of the test's own."""
    return postgres.database(f"db{next(_numbers)}")


@pytest.fixture
def sql(postgres: PostgresServer, database: str) -> Iterator[Callable[..., Any]]:
    """A function that runs a statement in that database."""
    with postgres.connect(database) as session:
        yield lambda text, *values: session.execute(text.encode(), values or None)


@pytest.fixture
def capture(postgres: PostgresServer, database: str) -> Iterator[Callable[..., Capture]]:
    """A function that starts change capture of that database."""
    from capturing import Capture, released

    made: list[Capture] = []

    def start(**config: str) -> Capture:
        made.append(Capture(postgres, database, **config))
        return made[-1]

    yield start
    for each in made:
        each.close()
    with postgres.connect(database) as session:
        released(session)
        session.execute(
            "select pg_drop_replication_slot(slot_name) from pg_replication_slots where database = %s", (database,)
        )
