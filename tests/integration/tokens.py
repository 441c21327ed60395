"""An issuer of tokens for tests: keys made anew each time, tokens signed or forged, and a server that shows keys."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from small_http import Answer, Asked, SmallHttpServer
from talk import Talk

from barnabas.model import errors
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

ISSUER = "https://issuer.test"
AUDIENCE = "barnabas"


LISTENER = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
}


class Issuer:
    def __init__(self) -> None:
        self.keys: dict[str, tuple[str, Any]] = {}  # algorithm and private key by id
        self.add("rsa", "RS256")
        self.add("ec", "ES256")

    def add(self, key_id: str, algorithm: str) -> None:
        private: Any
        if algorithm.startswith(("RS", "PS")):
            private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        else:
            curve = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}[algorithm]
            private = ec.generate_private_key(curve)
        self.keys[key_id] = (algorithm, private)

    def remove(self, key_id: str) -> None:
        del self.keys[key_id]

    @property
    def key_set(self) -> bytes:
        found = []
        for key_id, (algorithm, private) in self.keys.items():
            kind: Any = RSAAlgorithm if algorithm.startswith(("RS", "PS")) else ECAlgorithm
            entry = json.loads(kind.to_jwk(private.public_key()))
            found.append({**entry, "kid": key_id, "alg": algorithm, "use": "sig"})
        return json.dumps({"keys": found}).encode()

    def token(
        self, user: str | None = "alice", *, key_id: str = "rsa", seconds: float = 3600, now: float | None = None,
        header: Mapping[str, Any] | None = None, **claims: Any,
    ) -> str:  # fmt: skip
        now = time.time() if now is None else now
        algorithm, private = self.keys[key_id]
        body = {"sub": user, "iss": ISSUER, "aud": AUDIENCE, "iat": int(now), "exp": int(now + seconds), **claims}
        body = {name: value for name, value in body.items() if value is not None}
        return jwt.encode(body, private, algorithm=algorithm, headers={"kid": key_id, **(header or {})})


def unsigned(header: Mapping[str, Any], claims: Mapping[str, Any], signature: bytes = b"") -> str:
    """A token as a forger writes it."""
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def message(token: str, *, authorised_as: str = "", extra: str = "") -> bytes:
    """What a client sends."""
    who = f"a={authorised_as}" if authorised_as else ""
    return f"n,{who},\x01auth=Bearer {token}\x01{extra}\x01".encode()


class KeyServer(SmallHttpServer):
    """Shows an issuer's keys at ``url``; ``status`` and ``headers`` may be changed to make it misbehave."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.asked = 0
        self.status = 200
        self.headers: dict[str, str] = {}
        super().__init__("/keys")

    def respond(self, asked: Asked) -> Answer:
        self.asked += 1
        return Answer(self.status, self.issuer.key_set, self.headers)


def sign_in(talk: Talk, token: str, **more: str) -> SaslAuthenticateResponse:
    assert talk.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER")).error_code == 0
    answer: SaslAuthenticateResponse = talk.ask(SaslAuthenticateRequest(auth_bytes=message(token, **more)))
    return answer


def is_let_in(talk: Talk, token: str, **more: str) -> bool:
    """Whether the token is believed; if not, that it is refused as the mechanism wants it."""
    answer = sign_in(talk, token, **more)
    assert answer.error_code == 0, answer
    if not answer.auth_bytes:
        return bool(talk.ask(MetadataRequest(topics=[])).cluster_id)
    assert json.loads(bytes(answer.auth_bytes)) == {"status": "invalid_token"}
    last = talk.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"))
    assert last.error_code == errors.SASL_AUTHENTICATION_FAILED.code
    talk.until_closed()
    return False
