"""Levels of loggers are seen and changed while a broker runs, as Kafka's BROKER_LOGGER resources are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from barnabas.cli.main import main
from barnabas.cli.shims import kafka_configs
from barnabas.client.admin.client import Admin
from barnabas.client.admin.configs import Change, ConfigEntry, Operation, Resource, ResourceKind
from barnabas.client.settings.client import Settings
from barnabas.model.errors import ApiError
from barnabas.testing import Broker

LOGGERS = Resource(ResourceKind.BROKER_LOGGER, "1")
AUDIT = "barnabas.audit"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    levels = {name: logging.getLogger(name).level for name in ("barnabas", AUDIT)}
    with Broker() as running:
        yield running
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def ask(broker: Broker, *changes: Change, resource: Resource = LOGGERS) -> ApiError | None:
    async def work() -> ApiError | None:
        async with Admin(Settings.of({"bootstrap.servers": broker.bootstrap_servers})) as admin:
            return (await admin.alter_configs({resource: changes}))[resource]

    return asyncio.run(work())


def levels(broker: Broker) -> dict[str, ConfigEntry]:
    async def work() -> dict[str, ConfigEntry]:
        async with Admin(Settings.of({"bootstrap.servers": broker.bootstrap_servers})) as admin:
            found = (await admin.describe_configs([LOGGERS]))[LOGGERS]
            assert not isinstance(found, ApiError)
            return found

    return asyncio.run(work())


def test_a_level_is_set_and_let_go(broker: Broker) -> None:
    assert ask(broker, Change("root", "ERROR"), Change(AUDIT, "DEBUG")) is None
    shown = levels(broker)
    assert (shown["root"].value, shown[AUDIT].value) == ("ERROR", "DEBUG")
    assert not shown[AUDIT].is_read_only
    assert logging.getLogger(AUDIT).isEnabledFor(logging.DEBUG)
    assert ask(broker, Change(AUDIT, None, Operation.DELETE)) is None
    assert levels(broker)[AUDIT].value == "ERROR", "as the logger above it"
    assert not logging.getLogger(AUDIT).isEnabledFor(logging.WARNING)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (Change("barnabas.nothing", "INFO"), "there is no logger"),
        (Change("root", "LOUD"), "must be one of"),
        (Change("root", None, Operation.DELETE), "always has a level"),
        (Change("root", "INFO", Operation.APPEND), "set or deleted"),
    ],
)
def test_what_is_no_logger_or_no_level_is_refused(broker: Broker, change: Change, reason: str) -> None:
    before = levels(broker)["root"].value
    error = ask(broker, Change(AUDIT, "FATAL"), change)
    assert error is not None
    assert reason in error.message
    assert levels(broker)["root"].value == before
    assert levels(broker)[AUDIT].value != "FATAL", "all or none"


def test_the_levels_of_another_broker_are_not_here(broker: Broker) -> None:
    async def work() -> ApiError | None:
        async with Admin(Settings.of({"bootstrap.servers": broker.bootstrap_servers})) as admin:
            other = Resource(ResourceKind.BROKER_LOGGER, "1")
            return (await admin.alter_configs({other: [Change("root", "INFO")]}, validate_only=True))[other]

    before = levels(broker)["root"].value
    assert asyncio.run(work()) is None
    assert levels(broker)["root"].value == before, "only asked"


def test_the_command_line_and_kafkas_script_change_levels_too(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = broker.bootstrap_servers
    assert main(["config", "set", "logger", "1", "root=INFO", "-b", servers]) == 0
    assert "root     " in capsys.readouterr().out
    words = ["--bootstrap-server", servers, "--entity-type", "broker-loggers", "--entity-name", "1"]
    assert kafka_configs.main([*words, "--alter", "--add-config", f"{AUDIT}=ERROR"]) == 0
    assert kafka_configs.main([*words, "--describe"]) == 0
    shown = capsys.readouterr().out
    assert "root=INFO" in shown
    assert f"{AUDIT}=ERROR" in shown
    assert main(["config", "get", "logger", "x", "-b", servers]) == 1
    assert "a broker has a number" in capsys.readouterr().err
