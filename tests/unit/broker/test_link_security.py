"""Links speak what the listeners at their other end speak, with the login that is given for them."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from barnabas.broker.node.link_security import broker_links, controller_links
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.model.settings import InvalidSetting
from barnabas.testing.world import SeededEntropy
from barnabas.transport.links import Links
from barnabas.transport.sign_in import Credentials

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="n" password="p" user_n="p";'
SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="n" password="p";'
SIGNED = {
    "listeners": "SASL_PLAINTEXT://h:1,CONTROLLER://h:2",
    "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "plain.sasl.jaas.config": PLAIN,
}
BOTH = {**SIGNED, "scram-sha-256.sasl.jaas.config": SCRAM, "scram-sha-512.sasl.jaas.config": SCRAM}
SEVERAL = {"controller.quorum.bootstrap.servers": "h:2"}


def links(make: Any, given: dict[str, str]) -> Links:
    found = make(BrokerSettings.of(given), SeededEntropy(Random(1)))
    assert isinstance(found, Links)
    return found


def mechanism_of(found: Links) -> str:
    async def credentials() -> Credentials:
        assert found.prove is not None
        return await found.prove()

    return asyncio.run(credentials()).mechanism


@pytest.mark.parametrize("make", [controller_links, broker_links])
def test_the_only_login_is_the_one(make: Any) -> None:
    assert mechanism_of(links(make, SIGNED)) == "PLAIN"


@pytest.mark.parametrize(
    ("make", "setting"),
    [
        (controller_links, "sasl.mechanism.controller.protocol"),
        (broker_links, "sasl.mechanism.inter.broker.protocol"),
    ],
)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_of_several_logins_one_is_named(make: Any, setting: str, mechanism: str) -> None:
    assert mechanism_of(links(make, {**BOTH, setting: mechanism})) == mechanism
    with pytest.raises(InvalidSetting, match=f"{setting}: which of"):
        links(make, BOTH)


def test_a_login_that_is_missing_matters_only_among_others() -> None:
    users = PLAIN.replace('username="n" password="p" ', "")
    alone = {**SIGNED, "plain.sasl.jaas.config": users}
    assert links(controller_links, alone).prove is None
    with pytest.raises(InvalidSetting, match="give a username"):
        links(controller_links, {**alone, **SEVERAL})


def test_listeners_without_sign_in_are_dialled_without() -> None:
    plain = links(controller_links, {"listeners": "PLAINTEXT://h:1,CONTROLLER://h:2"})
    assert plain.prove is None
    assert plain.tls is None


def test_a_broker_reads_how_controllers_are_reached_though_it_is_none() -> None:
    given = {
        "process.roles": "broker",
        "listeners": "PLAINTEXT://h:1",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "listener.name.controller.plain.sasl.jaas.config": PLAIN,
        **SEVERAL,
    }
    assert mechanism_of(links(controller_links, given)) == "PLAIN"
    assert links(broker_links, given).prove is None


@pytest.mark.parametrize(("algorithm", "is_checked"), [("https", True), ("", False)])
def test_names_of_hosts_are_checked_unless_that_is_switched_off(algorithm: str, is_checked: bool) -> None:
    given = {
        "listeners": "PLAINTEXT://h:1",
        "process.roles": "broker",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
        "ssl.endpoint.identification.algorithm": algorithm,
        **SEVERAL,
    }
    tls = links(controller_links, given).tls
    assert tls is not None
    assert tls.check_hostname is is_checked


@pytest.mark.parametrize("text", ["", "x required;", SCRAM.replace("Scram", "Plain"), SCRAM.rstrip(";")])
def test_a_login_that_cannot_be_read_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        BrokerSettings.of({**SIGNED, "scram-sha-256.sasl.jaas.config": text})
    assert "password=" not in str(caught.value)
