"""The issuer of tokens beside a cluster under test: who gets one, and which of its tokens hold."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest
from conformance.certificates import KEY_PASSWORD
from conformance.token_server import AUDIENCE, TokenServer
from cryptography.hazmat.primitives.serialization import load_pem_private_key

BY_ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TokenServer]:
    with TokenServer(tmp_path) as running:
        yield running


def ask(url: str, form: dict[str, str] | None = None, **headers: str) -> str | None:
    """The token, or None where there is none."""
    data = urllib.parse.urlencode(form).encode() if form is not None else None
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=10) as answer:
            return str(json.load(answer)["access_token"])
    except urllib.error.HTTPError as error:
        error.close()
        return None


def holds(server: TokenServer, token: str) -> bool:
    try:
        jwt.PyJWKClient(server.keys_url, cache_keys=False).get_signing_key_from_jwt(token)
        key = jwt.PyJWKClient(server.keys_url).get_signing_key_from_jwt(token)
        jwt.decode(token, key.key, algorithms=["RS256"], audience=AUDIENCE)
    except jwt.PyJWTError:
        return False
    return True


def test_who_knows_a_secret_gets_a_token_that_holds(server: TokenServer) -> None:
    token = ask(server.token_url, {"grant_type": "client_credentials", "scope": "test"}, Authorization="Basic eDp5")
    assert token is not None
    assert holds(server, token)


def test_nobody_else_gets_one(server: TokenServer) -> None:
    assert ask(server.token_url, {"grant_type": "client_credentials"}) is None
    wrong = {"grant_type": "client_credentials", "scope": "everything"}
    assert ask(server.token_url, wrong, Authorization="Basic eDp5") is None
    assert ask(server.token_url, {"grant_type": BY_ASSERTION, "assertion": "a.b.c"}) is None
    assert ask(f"{server.token_url}?client_id=x&resource=y", Metadata="true") is None


def test_an_assertion_is_as_good_as_a_secret(server: TokenServer) -> None:
    for path, password in ((server.client_key, None), (server.client_key_encrypted, KEY_PASSWORD.encode())):
        key = load_pem_private_key(path.read_bytes(), password)
        assertion = jwt.encode({"sub": "me"}, key, algorithm="RS256")  # type: ignore[arg-type]
        assert ask(server.token_url, {"grant_type": BY_ASSERTION, "assertion": assertion}) is not None


def test_a_machine_gets_one_by_its_header(server: TokenServer) -> None:
    url = f"{server.token_url}?client_id=x&resource=y&api-version=1"
    assert ask(url, Metadata="true") is not None
    assert ask(url) is None


def test_broken_and_old_tokens_do_not_hold(server: TokenServer) -> None:
    for kind in ("badformat", "expire"):
        token = ask(f"{server.token_url}/{kind}", {})
        assert token is not None
        assert not holds(server, token)
