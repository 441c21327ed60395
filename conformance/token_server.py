"""An issuer of tokens that runs beside a cluster: it hands them out as OIDC asks for them, and shows its public keys.

Its paths and its ways to misbehave (a token that is out of date, one whose signature is broken) are those that
librdkafka's test expects. Clients prove themselves by a secret, by an assertion signed with a key of their own, or as a
virtual machine does (a GET with a header). Started by `conformance.security`.
"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from conformance.certificates import KEY_PASSWORD

AUDIENCE = "api://default"
ISSUER = "issuer"
TOKEN_SECONDS = 60
_BODY_BYTES_MAX = 65_536
_KEY_ID = "abcdefg"
_SCOPES = ("test", "test-scope", "api://1234-abcd/.default")
_BY_ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_OF_A_MACHINE = ("client_id", "resource", "api-version")


class Refused(Exception):
    """The one who asks gets no token, and is told why."""


class TokenServer:
    """`with TokenServer(directory) as server: server.token_url`; the client's keys are files in the directory."""

    def __init__(self, directory: Path) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        client = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._client_public_key = client.public_key()
        self.client_key = directory / "oidc-client.key"
        self.client_key_encrypted = directory / "oidc-client-encrypted.key"
        secret = serialization.BestAvailableEncryption(KEY_PASSWORD.encode())
        for path, encryption in (
            (self.client_key, serialization.NoEncryption()),
            (self.client_key_encrypted, secret),
        ):
            form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
            path.write_bytes(client.private_bytes(*form, encryption))

    def __enter__(self) -> Self:
        issuer = self

        class Handler(_Handler):
            server_of_tokens = issuer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.token_url, self.keys_url = f"{address}/retrieve", f"{address}/keys"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def keys(self) -> dict[str, object]:
        shown = json.loads(RSAAlgorithm.to_jwk(self._key.public_key()))
        return {"keys": [{**shown, "kid": _KEY_ID, "alg": "RS256", "use": "sig"}]}

    def token(self, *, seconds: int = TOKEN_SECONDS, is_broken: bool = False) -> dict[str, object]:
        now = int(time.time())
        about = {"iss": ISSUER, "sub": "subject", "client_id": "subject", "aud": AUDIENCE}
        claims = {**about, "iat": now, "exp": now + seconds}
        text = jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": _KEY_ID})
        return {"access_token": f"{text}invalid" if is_broken else text}

    def check_client(self, form: dict[str, list[str]], *, has_secret: bool) -> None:
        """Raises `Refused` unless the one who asks has shown who it is, and wants nothing that it may not have."""
        scope = form.get("scope", ["test"])[0]
        if scope not in _SCOPES:
            raise Refused(f"there is no scope {scope!r}")
        grant = form.get("grant_type", [""])[0]
        if grant == _BY_ASSERTION:
            self._check_assertion(form.get("assertion", [""])[0])
        elif grant != "client_credentials" or not has_secret:
            raise Refused("client credentials or a signed assertion are needed")

    def _check_assertion(self, assertion: str) -> None:
        try:
            key = self._client_public_key
            jwt.decode(assertion, key, algorithms=["RS256"], options={"verify_aud": False, "require": ["sub"]})
        except jwt.PyJWTError as error:
            raise Refused(f"the assertion does not hold: {error}") from error


class _Handler(BaseHTTPRequestHandler):
    server_of_tokens: TokenServer

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/keys":
            self._answer(200, self.server_of_tokens.keys())
            return
        missing = [name for name in _OF_A_MACHINE if name not in parse_qs(url.query)]
        if url.path != "/retrieve" or missing or self.headers.get("Metadata", "").lower() != "true":
            self._answer(400, {"error": "invalid_request", "error_description": f"missing: {missing}"})
            return
        self._answer(200, self.server_of_tokens.token())

    def do_POST(self) -> None:
        length = min(int(self.headers.get("Content-Length", "0")), _BODY_BYTES_MAX)
        form = parse_qs(self.rfile.read(length).decode())
        issuer = self.server_of_tokens
        if self.path == "/retrieve/badformat":
            self._answer(200, issuer.token(is_broken=True))
            return
        if self.path == "/retrieve/expire":
            self._answer(200, issuer.token(seconds=-1))
            return
        try:
            issuer.check_client(form, has_secret="Authorization" in self.headers)
        except Refused as refusal:
            self._answer(400, {"error": "invalid_request", "error_description": str(refusal)})
        else:
            self._answer(200, issuer.token())

    def _answer(self, status: int, value: dict[str, object]) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""
