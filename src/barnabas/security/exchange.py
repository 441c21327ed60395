"""What every way of signing in has in common: tokens go in, tokens come out, until a user is known or refused.

The mechanisms are in ``plain`` and ``scram``; connections and their stages are the broker's business.
"""

from __future__ import annotations

from typing import Final, Protocol

from barnabas.model.errors import BarnabasError

INVALID_CREDENTIALS: Final = "sign-in by {} failed: wrong user or password"
OTHER_USER: Final = "one signs in as oneself: the authorization id is another's"


class SignInFailed(BarnabasError):
    """The peer may not come in. The sentence is told to it, so it says nothing that it should not know."""


class Exchange(Protocol):
    @property
    def mechanism(self) -> str: ...

    @property
    def user(self) -> str | None:
        """Whom the peer claims to be; true once the exchange is complete."""

    @property
    def is_complete(self) -> bool: ...

    def step(self, token: bytes) -> bytes:
        """The answer to a token, or SignInFailed."""
