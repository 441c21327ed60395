"""A foreign name in Host and a foreign site in Origin are refused; addresses and known names are accepted."""

from __future__ import annotations

import pytest

from barnabas.rest.access import Access


@pytest.mark.parametrize("host", ["127.0.0.1:8081", "localhost", "LOCALHOST:8081", "[::1]:8081", "192.168.1.7"])
def test_addresses_and_localhost_are_accepted(host: str) -> None:
    assert Access(listens_on="127.0.0.1").allows_host(host)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil", "", "localhost.evil.example:8081", "localhost:x", "[::1", ":8081"]
)
def test_unknown_names_are_refused_on_loopback(host: str) -> None:
    assert Access(listens_on="127.0.0.1").allows_host(host) is (host == "[::1")


def test_a_configured_name_is_accepted() -> None:
    access = Access(listens_on="127.0.0.1", hosts=["registry.example.org"])
    assert access.allows_host("Registry.example.org:8081")
    assert not access.allows_host("registry.example.net")


def test_a_short_name_is_accepted_only_beyond_loopback() -> None:
    assert Access(listens_on="0.0.0.0").allows_host("registry:8081")
    assert not Access(listens_on="0.0.0.0").allows_host("evil.example:8081")
    assert not Access(listens_on="localhost").allows_host("registry:8081")


def test_an_origin_is_the_services_own_or_configured() -> None:
    access = Access(listens_on="127.0.0.1", origins=["https://console.example/"])
    assert access.allows_origin("http://localhost:8081", scheme="http", host="localhost:8081")
    assert access.allows_origin("https://console.example", scheme="http", host="localhost:8081")
    assert not access.allows_origin("http://localhost:3000", scheme="http", host="localhost:8081")
    assert not access.allows_origin("https://localhost:8081", scheme="http", host="localhost:8081")
    assert not access.allows_origin("null", scheme="http", host="localhost:8081")
