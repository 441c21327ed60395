"""OAUTHBEARER (RFC 7628, KIP-255): a signed token that says who its bearer is and until when.

A token is believed if a key of the set has signed it, it comes from the expected issuer for the expected audience, and
it is neither expired nor early. Everything else is refused, an unsigned token first of all. Where the keys come from is
the broker's business (``broker/access/oauth_keys.py``); checking takes a while and is done off the loop.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from barnabas.security.exchange import OTHER_USER, SignInFailed
from barnabas.security.jwks import ALGORITHMS, KeySet

MECHANISM: Final = "OAUTHBEARER"
TOKEN_BYTES_MAX: Final = 64 * 1024
REFUSED: Final = json.dumps({"status": "invalid_token"}).encode()
_MESSAGE: Final = re.compile(r"n,(?:a=([^,\x00\x01]*))?,\x01((?:[A-Za-z]+=[\x20-\x7e\t\r\n]*\x01)+)\x01")
_TOKEN: Final = re.compile(r"[Bb]earer ([A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*)")


class Refused(Exception):
    """Why a token is not believed: for our log, not for the peer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectations:
    """What a token must say."""

    issuer: str | None = None
    audiences: tuple[str, ...] = ()
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    skew_ms: int = 30_000


class Bearer(NamedTuple):
    user: str
    expires_ms: int  # on the wall's clock


class OAuthExchange:
    """One sign-in: a single message, or two where the first was refused and the peer has to say that it has heard."""

    mechanism = MECHANISM

    def __init__(self, keys: KeySet, expected: Expectations, *, now_ms: Callable[[], int]) -> None:
        self.keys = keys
        self._expected = expected
        self._now_ms = now_ms
        self._reason: Refused | None = None
        self.user: str | None = None
        self.expires_ms: int | None = None
        self.is_complete = False

    @property
    def reason(self) -> str | None:
        return None if self._reason is None else str(self._reason)

    def step(self, token: bytes) -> bytes:
        if self._reason is not None or self.is_complete:
            raise SignInFailed(REFUSED.decode())
        authorised_as, text = read_message(token)
        try:
            bearer = check_token(text, self.keys, self._expected, now_ms=self._now_ms())
        except Refused as reason:
            self._reason = reason
            return REFUSED
        if authorised_as and authorised_as != bearer.user:
            raise SignInFailed(OTHER_USER)
        self.user, self.expires_ms = bearer
        self.is_complete = True
        return b""


def read_message(token: bytes) -> tuple[str | None, str]:
    """As whom the peer wants to act, and its token; SignInFailed if that is no message of the mechanism."""
    if len(token) > TOKEN_BYTES_MAX:
        raise SignInFailed("the OAUTHBEARER message is too long")
    match = _MESSAGE.fullmatch(token.decode("latin-1"))
    if match is None:
        raise SignInFailed("the OAUTHBEARER message is malformed")
    pairs = [pair.partition("=") for pair in match[2].split("\x01") if pair]
    bearers = [value for name, _, value in pairs if name == "auth"]
    found = _TOKEN.fullmatch(bearers[0].strip()) if len(bearers) == 1 else None
    if found is None:
        raise SignInFailed("the OAUTHBEARER message has no bearer token")
    return match[1], found[1]


def key_id_of(token: bytes) -> str | None:
    """The key that a message's token claims to be signed with; None if it names none or is not even a token."""
    import jwt

    try:
        header = jwt.get_unverified_header(read_message(token)[1])
    except (SignInFailed, jwt.PyJWTError):
        return None
    found = header.get("kid")
    return found if isinstance(found, str) else None


def check_token(text: str, keys: KeySet, expected: Expectations, *, now_ms: int) -> Bearer:
    """Whose token it is; Refused with the reason if it is not to be believed."""
    claims = _signed_claims(text, keys)
    expires_ms = _moment_ms(claims, "exp")
    if expires_ms is None:
        raise Refused("the token does not say when it expires")
    if now_ms >= expires_ms + expected.skew_ms:
        raise Refused("the token has expired")
    for name in ("nbf", "iat"):
        moment_ms = _moment_ms(claims, name)
        if moment_ms is not None and moment_ms > now_ms + expected.skew_ms:
            raise Refused(f"the token is not valid yet: {name}")
    if expected.issuer is not None and claims.get("iss") != expected.issuer:
        raise Refused("the token is of another issuer")
    _check_audience(claims.get("aud"), expected.audiences)
    _check_scope(claims.get(expected.scope_claim))
    user = claims.get(expected.subject_claim)
    if not isinstance(user, str) or not user.strip():
        raise Refused(f"the token names nobody: {expected.subject_claim}")
    return Bearer(user, expires_ms)


def _signed_claims(text: str, keys: KeySet) -> Mapping[str, Any]:
    import jwt

    try:
        header = jwt.get_unverified_header(text)
    except jwt.PyJWTError:
        raise Refused("it is no signed token") from None
    algorithm, key_id = header.get("alg"), header.get("kid")
    if algorithm not in ALGORITHMS:
        raise Refused("the token is not signed by a public key")
    if key_id is not None and not isinstance(key_id, str):
        raise Refused("the token names its key in a strange way")
    for key in keys.candidates(key_id, algorithm):
        try:
            signed = jwt.PyJWS().decode_complete(text, key.public, algorithms=[algorithm])
            claims = json.loads(signed["payload"])
        except jwt.InvalidSignatureError:
            continue
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise Refused("it is no token") from None
        if not isinstance(claims, dict):
            raise Refused("the token claims nothing")
        return claims
    raise Refused("no key of the set has signed the token")


def _moment_ms(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise Refused(f"{name} is no moment")
    return int(value * 1000)


def _check_audience(found: Any, expected: tuple[str, ...]) -> None:
    if not expected:
        return
    audiences = found if isinstance(found, list) else [found]
    if not any(isinstance(audience, str) and audience in expected for audience in audiences):
        raise Refused("the token is for another audience")


def _check_scope(found: Any) -> None:
    is_list = isinstance(found, list) and all(isinstance(scope, str) and scope.strip() for scope in found)
    if found is not None and not isinstance(found, str) and not is_list:
        raise Refused("the scope of the token is no text")
