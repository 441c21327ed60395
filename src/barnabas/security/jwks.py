"""The keys by which an issuer of tokens is known: a JSON Web Key Set (RFC 7517), read and kept.

Only public keys of asymmetric kinds are taken. A key that two sides share would let everybody who can check a token
make one. PyJWT and cryptography, which come with ``barnabas[oauth]``, are imported when a set is first read.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from barnabas.model.errors import BarnabasError

KEYS_MAX: Final = 100
SET_BYTES_MAX: Final = 1024 * 1024
RSA_BITS_MIN: Final = 2048
# What a kind of key may sign with; the curve of an elliptic key fixes it.
_ALGORITHMS: Final[dict[tuple[str, str | None], tuple[str, ...]]] = {
    ("RSA", None): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
ALGORITHMS: Final = frozenset(name for names in _ALGORITHMS.values() for name in names)
INSTALL: Final = "OAUTHBEARER needs PyJWT and cryptography: pip install 'barnabas[oauth]'"


class InvalidKeySet(BarnabasError):
    """What was read is no set of keys, or there is no key in it that could be used."""


class Key(NamedTuple):
    key_id: str | None
    algorithms: tuple[str, ...]
    public: Any  # a key of the library


class KeySet:
    def __init__(self, keys: tuple[Key, ...]) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def has(self, key_id: str | None) -> bool:
        return key_id is None or any(key.key_id == key_id for key in self._keys)

    def candidates(self, key_id: str | None, algorithm: str) -> list[Key]:
        """The keys that may have signed: the one that is named, or all of the kind if none is."""
        return [key for key in self._keys if algorithm in key.algorithms and key_id in (None, key.key_id)]


NO_KEYS: Final = KeySet(())


def parse_key_set(text: bytes) -> KeySet:
    """Keys that cannot be used are left out, as other users of the set may need them; one must be left."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidKeySet("it is not JSON") from None
    entries = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(entries, list):
        raise InvalidKeySet('it has no list "keys"')
    if len(entries) > KEYS_MAX:
        raise InvalidKeySet(f"it has more than {KEYS_MAX} keys")
    keys = tuple(key for entry in entries if isinstance(entry, dict) and (key := _key(entry)) is not None)
    if not keys:
        raise InvalidKeySet("it has no key of a kind that can be used: RSA of 2048 bits, EC or Ed25519, for signatures")
    return KeySet(keys)


def _key(entry: dict[str, Any]) -> Key | None:
    kind, curve, use = entry.get("kty"), entry.get("crv"), entry.get("use", "sig")
    algorithms = _ALGORITHMS.get((str(kind), str(curve) if curve is not None and kind != "RSA" else None))
    if algorithms is None or use != "sig":
        return None
    if "alg" in entry:
        algorithms = tuple(name for name in algorithms if name == entry["alg"])
    if not algorithms:
        return None
    key_id = entry.get("kid")
    jwt = _library()
    public_parts = {name: entry[name] for name in ("kty", "crv", "n", "e", "x", "y") if name in entry}
    try:
        public = jwt.PyJWK(public_parts, algorithm=algorithms[0]).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if kind == "RSA" and public.key_size < RSA_BITS_MIN:
        return None
    return Key(key_id if isinstance(key_id, str) else None, algorithms, public)


def _library() -> Any:
    try:
        import cryptography.hazmat.primitives
        import jwt
    except ImportError as error:
        raise InvalidKeySet(INSTALL) from error
    assert cryptography is not None
    return jwt
