"""OAUTHBEARER: where keys come from, when they are looked at again, and what a broker needs before it starts."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from talk import Talk
from tokens import AUDIENCE, ISSUER, LISTENER, Issuer, KeyServer, is_let_in, sign_in

from barnabas.model.settings import InvalidSetting
from barnabas.testing import Broker
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

pytestmark = pytest.mark.filterwarnings("ignore:(open_text|read_text) is deprecated:DeprecationWarning")

OAUTH = "sasl.oauthbearer."
SASL = {
    **LISTENER,
    "sasl.oauthbearer.expected.issuer": ISSUER,
    "sasl.oauthbearer.expected.audience": AUDIENCE,
}
FILE = "barnabas.sasl.oauthbearer.jwks.file"
URL = "sasl.oauthbearer.jwks.endpoint.url"


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


def test_keys_are_fetched_and_fetched_again_when_an_unknown_one_is_named() -> None:
    issuer = Issuer()
    with KeyServer(issuer) as server, Broker(settings={**SASL, URL: server.url}) as running:
        assert server.asked == 1
        with Talk(running.bootstrap_servers) as talk:
            assert is_let_in(talk, issuer.token())
        issuer.add("new", "ES384")
        running.clock.advance("10s")
        with Talk(running.bootstrap_servers) as talk:
            assert is_let_in(talk, issuer.token(key_id="new"))
        assert server.asked == 2
        for _ in range(3):
            with Talk(running.bootstrap_servers) as talk:
                assert not is_let_in(talk, Issuer().token(header={"kid": "unheard-of"}))
        assert server.asked == 2, "strangers do not keep it fetching"


def test_a_key_that_is_withdrawn_counts_until_the_keys_are_looked_at_again() -> None:
    issuer = Issuer()
    old = issuer.token(key_id="ec", seconds=100_000)
    with KeyServer(issuer) as server:
        settings = {**SASL, URL: server.url, f"{OAUTH}jwks.endpoint.refresh.ms": "60000"}
        with Broker(settings=settings) as running:
            issuer.remove("ec")
            with Talk(running.bootstrap_servers) as talk:
                assert is_let_in(talk, old)
            running.clock.advance("61s")
            while server.asked < 2:
                time.sleep(0.01)
            deadline = time.monotonic() + 10
            refused = False
            while not refused and time.monotonic() < deadline:
                with Talk(running.bootstrap_servers) as talk:
                    refused = not is_let_in(talk, old)
            assert refused


def test_while_the_issuer_is_away_its_keys_are_kept() -> None:
    issuer = Issuer()
    with KeyServer(issuer) as server:
        settings = {**SASL, URL: server.url, f"{OAUTH}jwks.endpoint.refresh.ms": "60000"}
        with Broker(settings=settings) as running:
            server.status = 500
            running.clock.advance("61s")
            while server.asked < 2:
                time.sleep(0.01)
            with Talk(running.bootstrap_servers) as talk:
                assert is_let_in(talk, issuer.token(seconds=10_000))


@pytest.mark.parametrize("key_set", [b"", b"{}", b'{"keys": []}', b'{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}', b"["])
def test_a_broker_without_a_usable_key_does_not_start(tmp_path: Path, key_set: bytes) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(key_set)
    with (
        pytest.raises(InvalidSetting, match="keys for OAUTHBEARER cannot be used"),
        Broker(settings={**SASL, FILE: str(path)}),
    ):
        pass


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({}, "one source of keys"),
        ({FILE: "x", URL: "https://x.test/keys"}, "one source of keys"),
        ({FILE: "/nowhere/keys.json"}, "No such file"),
        ({URL: "http://127.0.0.1:1/keys"}, "cannot be fetched"),
        ({FILE: "x", f"{OAUTH}expected.audience": ""}, "whose tokens are believed"),
        ({FILE: "x", f"{OAUTH}expected.issuer": ""}, "whose tokens are believed"),
    ],
    ids=range(6),
)
def test_cve_2026_33557_a_broker_without_a_source_of_keys_does_not_start(change: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidSetting, match=sentence), Broker(settings={**SASL, **change}):
        pass


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://x.test/k", "gopher://x.test/", "jar:file:/x", "//x.test/k", "http:///k",
            "http://user:pass@x.test/k", "http://x.test/\r\nHost: y", "http://x.test:99999/"]
)  # fmt: skip
def test_cve_2025_27817_keys_come_by_http_and_from_nowhere_else(url: str) -> None:
    with pytest.raises(InvalidSetting, match="jwks"), Broker(settings={**SASL, URL: url}):
        pass


def test_cve_2025_27817_a_redirect_is_not_followed() -> None:
    with KeyServer(Issuer()) as elsewhere, KeyServer(Issuer()) as server:
        server.status = 302
        server.headers = {"Location": elsewhere.url}
        with pytest.raises(InvalidSetting, match="302"), Broker(settings={**SASL, URL: server.url}):
            pass
        assert elsewhere.asked == 0


def test_cve_2025_27817_the_address_of_the_keys_cannot_be_set_from_afar(shared_broker: Broker) -> None:
    with Talk(shared_broker.bootstrap_servers) as talk:
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=4,
            resource_name="",
            configs=[IncrementalAlterConfigsRequest.AlterableConfig(name=URL, value="file:///etc/passwd")],
        )
        (row,) = talk.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses
        assert row.error_code != 0


def test_a_broker_says_which_claims_count_and_how_wrong_a_clock_may_be(issuer: Issuer, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(issuer.key_set)
    settings = {
        **SASL,
        FILE: str(path),
        "sasl.oauthbearer.sub.claim.name": "email",
        "sasl.oauthbearer.scope.claim.name": "scp",
        "sasl.oauthbearer.clock.skew.seconds": "600",
    }
    with Broker(settings=settings) as running:
        for claims, is_good in (
            ({"email": "a@test"}, True),
            ({}, False),
            ({"email": "a@test", "scp": 7}, False),
            ({"email": "a@test", "scope": 7}, True),
            ({"email": "a@test", "exp": time.time() - 500}, True),
            ({"email": "a@test", "exp": time.time() - 700}, False),
            ({"email": "a@test", "nbf": time.time() + 500}, True),
        ):
            with Talk(running.bootstrap_servers) as talk:
                answer = sign_in(talk, issuer.token(**claims))
                assert (bytes(answer.auth_bytes) == b"") is is_good, claims


def test_an_issuer_that_is_away_is_asked_again_after_longer_and_longer_waits() -> None:
    issuer = Issuer()
    with KeyServer(issuer) as server:
        settings = {
            **SASL,
            URL: server.url,
            "sasl.oauthbearer.jwks.endpoint.refresh.ms": "60000000",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "1000000",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "2000000",
        }
        with Broker(settings=settings) as running:

            def advance(duration: str, asked: int) -> None:
                running.clock.advance(duration)
                deadline = time.monotonic() + 10
                while server.asked < asked and time.monotonic() < deadline:
                    running.run(asyncio.sleep(0.01))
                running.run(asyncio.sleep(0.05))
                assert server.asked == asked

            server.status = 500
            advance("60001s", 2)
            advance("500s", 2)
            advance("600s", 3)
            advance("1100s", 3)
            advance("1000s", 4)
            advance("1500s", 4)
            server.status = 200
            advance("600s", 5)
            advance("10000s", 5)
