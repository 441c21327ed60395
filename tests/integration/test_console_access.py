"""The console's door: sessions, CSRF tokens, foreign hosts and origins, headers, path tricks, and SASL users."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Iterator

import httpx
import pytest
from console_clients import browser, console

from barnabas.cli.main import main
from barnabas.console.login_attempts import FAILURES_OF_USER_MAX
from barnabas.testing import Broker

SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"}


def test_changes_need_the_token_of_the_session(shared_broker: Broker) -> None:
    async def run() -> None:
        servers = shared_broker.bootstrap_servers
        async with console(servers) as url, browser(url) as client, browser(url) as other:
            draft = {"name": "forged", "partitions": 1}
            for token in ("", "0" * 64, other.headers["X-Csrf-Token"]):
                headers = {"X-Csrf-Token": token}
                answer = await client.post("/clusters/local/topics", json=draft, headers=headers)
                assert answer.status_code == 403, token
            assert (await client.post("/clusters/local/topics", json=draft)).status_code == 200

    asyncio.run(run())


def test_foreign_hosts_and_origins_are_refused_on_loopback_too(shared_broker: Broker) -> None:
    async def run() -> None:
        async with console(shared_broker.bootstrap_servers) as url, httpx.AsyncClient(base_url=url) as client:
            for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
                for path in ("/", "/api/session", "/api/clusters/local/topics"):
                    assert (await client.get(path, headers=headers)).status_code == 403

    asyncio.run(run())


def test_every_response_has_the_security_headers(shared_broker: Broker) -> None:
    async def run() -> None:
        async with console(shared_broker.bootstrap_servers) as url, httpx.AsyncClient(base_url=url) as client:
            for path in ("/", "/c/local/topics", "/api/session", "/api/nothing", "/assets/nothing.js"):
                headers = (await client.get(path)).headers
                policy = headers["content-security-policy"]
                assert "script-src 'self'" in policy
                assert "unsafe" not in policy
                assert headers["x-frame-options"] == "DENY"
            client.cookies.clear()
            cookie = (await client.get("/api/session")).headers["set-cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie

    asyncio.run(run())


@pytest.mark.parametrize(
    "path",
    ["/../pyproject.toml", "/assets/../../application.py", "/assets/%2e%2e/manifest.json", "/%2e%2e/%2e%2e/etc/passwd"],
)
def test_no_path_leads_out_of_the_bundle(shared_broker: Broker, path: str) -> None:
    async def run() -> None:
        async with console(shared_broker.bootstrap_servers) as url:
            host, port = url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            answer = await reader.read()
            writer.close()
            assert b"root:" not in answer
            assert b"[project]" not in answer
            assert b"import" not in answer

    asyncio.run(run())


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with Broker(settings=settings) as running:
        yield running


def test_a_user_sees_and_does_what_the_acls_allow(secured: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    at = ["-b", secured.bootstrap_servers]
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\n"))
    for topic in ("open", "hidden"):
        assert main(["topic", "create", topic, *at]) == 0
    assert main(["user", "create", "ann", "-m", "SCRAM-SHA-256", *at]) == 0
    assert main(["acl", "create", "--template", "consumer", "--allow", "ann", "--topic", "open", *at]) == 0

    async def run() -> None:
        servers = secured.address_of("SASL_PLAINTEXT")
        async with console(servers, SASL, requires_login=True) as url, browser(url) as client:
            assert (await client.get("/clusters/local/topics")).status_code == 401
            assert (await client.get("/session")).json()["clusters"][0]["servers"] == ""
            wrong = await client.post("/session", json={"username": "ann", "password": "guess"})
            assert wrong.status_code == 401
            before = client.cookies
            login = await client.post("/session", json={"username": "ann", "password": "secret"})
            assert login.json()["user"] == "ann"
            assert "secret" not in login.text
            client.headers["X-Csrf-Token"] = login.json()["csrf_token"]
            assert login.headers["set-cookie"] not in str(before), "a login gets a new session"
            names = [row["name"] for row in (await client.get("/clusters/local/topics")).json()["topics"]]
            assert names == ["open"]
            assert (await client.get("/clusters/local/topics/hidden")).status_code == 404
            assert (await client.delete("/clusters/local/topics/open")).status_code == 403
            assert (await client.delete("/session")).status_code == 200
            assert (await client.get("/clusters/local/topics")).status_code == 401
            client.headers["X-Csrf-Token"] = (await client.get("/session")).json()["csrf_token"]
            guess = {"username": "ann", "password": "guess"}
            statuses = [(await client.post("/session", json=guess)).status_code for _ in range(FAILURES_OF_USER_MAX)]
            assert statuses == [401] * FAILURES_OF_USER_MAX
            late = await client.post("/session", json={"username": "ann", "password": "secret"})
            assert (late.status_code, int(late.headers["retry-after"]) > 0) == (429, True)

    asyncio.run(run())
