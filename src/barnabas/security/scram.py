"""SCRAM (RFC 5802, RFC 7677): a proof that the peer knows a password, which neither side sends or keeps.

The server's half is :class:`ScramExchange`; a client's is :class:`ScramClient`, which alone has the slow work of
salting a password. Credentials are given by whoever calls; where they are kept is not known here.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.security.exchange import INVALID_CREDENTIALS, OTHER_USER, SignInFailed

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
ITERATIONS_DEFAULT: Final = 4096
NONCE_BYTES: Final = 24
SALT_BYTES: Final = 24
MESSAGE_BYTES_MAX: Final = 8192  # far more than any exchange needs

_FIRST: Final = re.compile(
    r"([ny]|p=[A-Za-z0-9.-]+),(?:a=([^,]*))?,((?:m=[^,]*,)?n=([^,]*),r=([\x21-\x2b\x2d-\x7e]+)(?:,(.*))?)"
)
_FINAL: Final = re.compile(r"(c=([A-Za-z0-9+/=]+),r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?),p=([A-Za-z0-9+/=]+)")
_SERVER_FIRST: Final = re.compile(r"r=([\x21-\x2b\x2d-\x7e]+),s=([A-Za-z0-9+/=]+),i=([0-9]{1,9})(?:,.*)?")


class Mechanism(NamedTuple):
    name: str
    number: int  # in the metadata log
    hash_name: str

    @property
    def size_bytes(self) -> int:
        return hashlib.new(self.hash_name).digest_size

    def hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self.hash_name)

    def hash(self, data: bytes) -> bytes:
        return hashlib.new(self.hash_name, data).digest()

    def salted(self, password: str, salt: bytes, iterations: int) -> bytes:
        """Slow by design: never on an event loop that others use."""
        return hashlib.pbkdf2_hmac(self.hash_name, password.encode(), salt, iterations)


SHA_256: Final = Mechanism("SCRAM-SHA-256", 1, "sha256")
SHA_512: Final = Mechanism("SCRAM-SHA-512", 2, "sha512")
MECHANISMS: Final = {mechanism.name: mechanism for mechanism in (SHA_256, SHA_512)}
BY_NUMBER: Final = {mechanism.number: mechanism for mechanism in (SHA_256, SHA_512)}


class Credential(NamedTuple):
    """What a server keeps of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def of(cls, mechanism: Mechanism, salted_password: bytes, salt: bytes, iterations: int) -> Credential:
        client_key = mechanism.hmac(salted_password, b"Client Key")
        return cls(salt, mechanism.hash(client_key), mechanism.hmac(salted_password, b"Server Key"), iterations)


def decoy(mechanism: Mechanism, user: str, secret: bytes) -> Credential:
    """The credential of a user who does not exist: always the same one, so that asking twice tells nothing."""
    salt = mechanism.hmac(secret, user.encode())[:SALT_BYTES]
    return Credential(salt, bytes(mechanism.size_bytes), bytes(mechanism.size_bytes), ITERATIONS_DEFAULT)


class ScramExchange:
    """One sign-in, as the server sees it: two messages."""

    def __init__(
        self, mechanism: Mechanism, credential_of: Callable[[str], Credential | None], *, nonce: bytes, secret: bytes
    ) -> None:
        self._hash = mechanism
        self._credential_of = credential_of
        self._nonce = b64encode(nonce).decode()
        self._secret = secret
        self._credential: Credential | None = None
        self._is_known = False
        self._first_bare = ""
        self._server_first = ""
        self._header = ""
        self.user: str | None = None
        self.is_complete = False

    @property
    def mechanism(self) -> str:
        return self._hash.name

    def step(self, token: bytes) -> bytes:
        try:
            text = token.decode()
        except UnicodeDecodeError:
            raise self._malformed() from None
        if len(token) > MESSAGE_BYTES_MAX or self.is_complete:
            raise self._malformed()
        return (self._first(text) if self._credential is None else self._final(self._credential, text)).encode()

    def _first(self, text: str) -> str:
        match = _FIRST.fullmatch(text)
        if match is None:
            raise self._malformed()
        binding, authorised_as, self._first_bare, name, client_nonce, extensions = match.groups()
        if binding.startswith("p=") or self._first_bare.startswith("m=") or "tokenauth=" in (extensions or ""):
            raise self._malformed()
        self._header = text[: len(text) - len(self._first_bare)]
        self.user = _unescaped(name)
        if not self.user:
            raise self._malformed()
        if authorised_as and _unescaped(authorised_as) != self.user:
            raise SignInFailed(OTHER_USER)
        known = self._credential_of(self.user)
        self._is_known = known is not None
        self._credential = known or decoy(self._hash, self.user, self._secret)
        self._nonce = client_nonce + self._nonce
        salt = b64encode(self._credential.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={self._credential.iterations}"
        return self._server_first

    def _final(self, credential: Credential, text: str) -> str:
        match = _FINAL.fullmatch(text)
        if match is None:
            raise self._malformed()
        without_proof, binding, nonce, proof_text = match.groups()
        try:
            header, proof = b64decode(binding, validate=True), b64decode(proof_text, validate=True)
        except NotBase64:
            raise self._malformed() from None
        if header != self._header.encode() or nonce != self._nonce:
            raise SignInFailed(INVALID_CREDENTIALS.format(self.mechanism))
        message = f"{self._first_bare},{self._server_first},{without_proof}".encode()
        signature = self._hash.hmac(credential.stored_key, message)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=False))
        is_right = hmac.compare_digest(self._hash.hash(client_key), credential.stored_key)
        if not (is_right and self._is_known and len(proof) == self._hash.size_bytes):
            raise SignInFailed(INVALID_CREDENTIALS.format(self.mechanism))
        self.is_complete = True
        return "v=" + b64encode(self._hash.hmac(credential.server_key, message)).decode()

    def _malformed(self) -> SignInFailed:
        return SignInFailed(f"the {self.mechanism} message is malformed")


class ScramClient:
    """One sign-in, as a client sees it. ``final`` salts the password: run it where it may take its time."""

    def __init__(self, mechanism: Mechanism, user: str, password: str, *, nonce: bytes) -> None:
        self._hash = mechanism
        self._password = password
        self._nonce = b64encode(nonce).decode()
        self._first_bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={self._nonce}"
        self._signature = b""

    def first(self) -> bytes:
        return f"n,,{self._first_bare}".encode()

    def final(self, token: bytes) -> bytes:
        text = token.decode(errors="replace")
        match = _SERVER_FIRST.fullmatch(text)
        if match is None or not match[1].startswith(self._nonce) or match[1] == self._nonce:
            raise SignInFailed("the broker does not answer as SCRAM wants it")
        iterations = int(match[3])
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:  # a hostile broker must not keep us busy
            raise SignInFailed(f"the broker asks for {iterations} iterations")
        salted = self._hash.salted(self._password, b64decode(match[2]), iterations)
        client_key = self._hash.hmac(salted, b"Client Key")
        without_proof = f"c={b64encode(b'n,,').decode()},r={match[1]}"
        message = f"{self._first_bare},{text},{without_proof}".encode()
        signature = self._hash.hmac(self._hash.hash(client_key), message)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._signature = self._hash.hmac(self._hash.hmac(salted, b"Server Key"), message)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def check(self, token: bytes) -> None:
        """SignInFailed unless the broker knows the password's hash too."""
        expected = b"v=" + b64encode(self._signature)
        if not hmac.compare_digest(token.split(b",")[0], expected):
            raise SignInFailed("the broker does not know the user's password either: is it the right one?")


def _unescaped(name: str) -> str:
    if re.search("=(?!2C|3D)", name):
        raise SignInFailed("the user's name is not escaped as SCRAM wants it")
    return name.replace("=2C", ",").replace("=3D", "=")
