"""What a running broker may be told of its listeners, and what it may not."""

from __future__ import annotations

import pytest

from barnabas.broker.node.listener_changes import check_change, is_about_listeners, listener_of, shapes
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.model.settings import InvalidSetting

MAP = "listener.security.protocol.map"
GIVEN = {
    "listeners": "INSIDE://127.0.0.1:1,OUTSIDE://127.0.0.1:2,CONTROLLER://127.0.0.1:3",
    MAP: "INSIDE:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT,NEW:PLAINTEXT,SIGNED:SASL_PLAINTEXT",
    "listener.name.outside.sasl.enabled.mechanisms": "SCRAM-SHA-256",
}
INSIDE, OUTSIDE, CONTROLLER = GIVEN["listeners"].split(",")
MECHANISMS = "sasl.enabled.mechanisms"


def change(given: dict[str, str] | None = None, **dynamic: str) -> BrokerSettings:
    """The settings after a change, which may be made."""
    given = {**GIVEN, **(given or {})}
    texts = {name.replace("__", "."): text for name, text in dynamic.items()}
    new = BrokerSettings.of(given, texts)
    check_change(BrokerSettings.of(given), new)
    return new


def refusal(given: dict[str, str] | None = None, **dynamic: str) -> str:
    with pytest.raises(InvalidSetting) as caught:
        change(given, **dynamic)
    return str(caught.value)


def test_listeners_for_clients_come_go_and_move() -> None:
    assert [*shapes(change(listeners=f"{INSIDE},{OUTSIDE},{CONTROLLER},NEW://127.0.0.1:4"))] == [
        "INSIDE",
        "OUTSIDE",
        "CONTROLLER",
        "NEW",
    ]
    assert [*shapes(change(listeners=f"{INSIDE},{CONTROLLER}"))] == ["INSIDE", "CONTROLLER"]
    moved = shapes(change(listeners=f"{INSIDE},OUTSIDE://127.0.0.1:9,{CONTROLLER}"))
    assert moved["OUTSIDE"].endpoint.port == 9
    assert moved["INSIDE"] == shapes(BrokerSettings.of(GIVEN))["INSIDE"]


def test_a_new_listener_brings_its_own_settings() -> None:
    listeners = f"{GIVEN['listeners']},SIGNED://127.0.0.1:4"
    assert "sasl.enabled.mechanisms" in refusal(listeners=listeners)
    new = change(listeners=listeners, **{f"listener.name.signed.{MECHANISMS}": "SCRAM-SHA-512"})
    assert new.security.listeners["SIGNED"].mechanisms == ("SCRAM-SHA-512",)
    assert new.security.listeners["OUTSIDE"].mechanisms == ("SCRAM-SHA-256",)


def test_what_is_settled_when_a_listener_opens_stays() -> None:
    said = refusal(**{f"listener.name.outside.{MECHANISMS}": "SCRAM-SHA-512"})
    assert "listener OUTSIDE keeps sasl.enabled.mechanisms" in said
    signed = GIVEN[MAP].replace("INSIDE:PLAINTEXT", "INSIDE:SASL_PLAINTEXT")
    said = refusal(**{MAP: signed, f"listener.name.inside.{MECHANISMS}": "SCRAM-SHA-256"})
    assert "listener INSIDE keeps its security protocol" in said


def test_keys_are_no_part_of_a_listeners_shape() -> None:
    new = change(**{"listener.name.outside.ssl.keystore.location": "/anything.pem"})
    assert shapes(new) == shapes(BrokerSettings.of(GIVEN))


@pytest.mark.parametrize("listeners", [f"{OUTSIDE},{CONTROLLER}", f"{OUTSIDE},NEW://127.0.0.1:4,{CONTROLLER}"])
@pytest.mark.parametrize("given", [{}, {"inter.broker.listener.name": "INSIDE"}], ids=["first", "named"])
def test_the_listener_by_which_brokers_reach_each_other_is_not_taken_away(
    given: dict[str, str], listeners: str
) -> None:
    assert "INSIDE is none of the broker's listeners" in refusal(given, listeners=listeners)


def test_nor_is_it_moved_and_another_that_is_named_first_does_not_take_its_place() -> None:
    assert "INSIDE, which does not move" in refusal(listeners=f"INSIDE://127.0.0.1:9,{OUTSIDE},{CONTROLLER}")
    new = change(listeners=f"NEW://127.0.0.1:4,{OUTSIDE},{INSIDE},{CONTROLLER}")
    assert new.cluster.inter_broker_listener_name == "INSIDE"


@pytest.mark.parametrize("controller", ["", ",CONTROLLER://127.0.0.1:9", f",{CONTROLLER},SECOND://127.0.0.1:4"])
def test_controllers_are_reached_where_they_were(controller: str) -> None:
    given = {"controller.listener.names": "CONTROLLER,SECOND", MAP: f"{GIVEN[MAP]},SECOND:PLAINTEXT"}
    assert "is for controllers and stays as it is" in refusal(given, listeners=f"{INSIDE},{OUTSIDE}{controller}")


@pytest.mark.parametrize(
    ("listeners", "reason"),
    [
        (f"{GIVEN['listeners']},OTHER://127.0.0.1:4", "what is spoken on OTHER"),
        (f"{GIVEN['listeners']},NEW://127.0.0.1:2", "cannot have the same port"),
        (f"{GIVEN['listeners']},NEW://0.0.0.0:2", "cannot have the same port"),
        (f"{GIVEN['listeners']},OUTSIDE://127.0.0.1:4", "the listener OUTSIDE is there twice"),
        (f"{GIVEN['listeners']},NEW://127.0.0.1:99999", "is not NAME://host:port"),
        ("", "at least one listener is needed"),
    ],
    ids=range(6),
)
def test_listeners_that_cannot_be_are_refused(listeners: str, reason: str) -> None:
    assert reason in refusal(listeners=listeners)


def test_what_the_file_says_of_a_listener_waits_until_it_is_back() -> None:
    without = change(listeners=f"{INSIDE},{CONTROLLER}")
    check_change(without, BrokerSettings.of(GIVEN))


def test_an_advertised_listener_is_not_taken_away() -> None:
    given = {"advertised.listeners": "INSIDE://a.test:1,OUTSIDE://a.test:2"}
    assert "OUTSIDE is not among the listeners" in refusal(given, listeners=f"{INSIDE},{CONTROLLER}")


def test_one_port_serves_two_families_and_two_addresses() -> None:
    for hosts in (("[::]", "0.0.0.0"), ("127.0.0.1", "127.0.0.2")):
        first, second = hosts
        BrokerSettings.of(
            {"listeners": f"PLAINTEXT://{first}:1,OTHER://{second}:1", MAP: "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"}
        )


def test_settings_that_are_about_listeners() -> None:
    assert listener_of("listener.name.outside.ssl.keystore.location") == "OUTSIDE"
    assert listener_of("listeners") is None
    assert [
        name for name in ("listeners", MAP, "listener.name.x.y", "advertised.listeners") if is_about_listeners(name)
    ] == [
        "listeners",
        MAP,
        "listener.name.x.y",
    ]
