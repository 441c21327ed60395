"""Sessions of the console: which browser is which user, and the token that its changes must carry.

A session is a random id in a cookie. The CSRF token is an HMAC of the id, so that anonymous sessions need no memory;
only sessions of users who logged in are kept, with their credentials, in memory and nowhere else.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Final

SESSIONS_MAX: Final = 1000
IDLE_SECONDS_MAX: Final = 12 * 3600.0
ID_BYTES: Final = 32
ID_CHARACTERS_MAX: Final = 100


@dataclass(slots=True)
class Login:
    """A user with the client settings that authenticate as this user."""

    user: str
    credentials: dict[str, str] = field(default_factory=dict, repr=False)
    seen_at: float = 0.0


class Sessions:
    def __init__(self, *, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(ID_BYTES)
        self._logins: dict[str, Login] = {}

    def new_id(self) -> str:
        return secrets.token_urlsafe(ID_BYTES)

    def token(self, session_id: str) -> str:
        return hmac.digest(self._key, session_id.encode(), hashlib.sha256).hex()

    def is_token(self, session_id: str, token: str) -> bool:
        return bool(session_id) and hmac.compare_digest(self.token(session_id).encode(), token.encode())

    def log_in(self, login: Login, *, now: float) -> str:
        """The id of a new session of this user; the session that was idle for longest makes room."""
        self._expire(now)
        while len(self._logins) >= SESSIONS_MAX:
            del self._logins[min(self._logins, key=lambda each: self._logins[each].seen_at)]
        session_id = self.new_id()
        login.seen_at = now
        self._logins[session_id] = login
        return session_id

    def find(self, session_id: str, *, now: float) -> Login | None:
        login = self._logins.get(session_id)
        if login is None:
            return None
        if now - login.seen_at > IDLE_SECONDS_MAX:
            del self._logins[session_id]
            return None
        login.seen_at = now
        return login

    def log_out(self, session_id: str) -> None:
        self._logins.pop(session_id, None)

    def _expire(self, now: float) -> None:
        gone = [each for each, login in self._logins.items() if now - login.seen_at > IDLE_SECONDS_MAX]
        for each in gone:
            del self._logins[each]
