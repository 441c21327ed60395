"""Failed logins of the console: after too many, further attempts of the user or the address are refused for a while.

A user name and a client address are counted apart: one address may guess the passwords of many users, and many
addresses may guess the password of one user.
"""

from __future__ import annotations

from collections import deque
from typing import Final

FAILURES_OF_USER_MAX: Final = 5
FAILURES_OF_ADDRESS_MAX: Final = 20  # more than of a user: an address may be a proxy of many users
FAILURE_SECONDS: Final = 300.0  # for which a failure counts
SOURCES_MAX: Final = 10_000  # user names and addresses that are remembered

_Source = tuple[str, str]  # kind and name


class LoginAttempts:
    def __init__(self) -> None:
        self._failures: dict[_Source, deque[float]] = {}

    def wait_seconds(self, user: str, address: str, *, now: float) -> float:
        """How long the next attempt has to wait; 0 if it may be made now."""
        return max(self._wait(source, limit, now) for source, limit in _limits(user, address))

    def failed(self, user: str, address: str, *, now: float) -> None:
        """Count an attempt as failed."""
        for source, limit in _limits(user, address):
            times = self._failures.pop(source, None) or deque(maxlen=limit)
            times.append(now)
            self._failures[source] = times  # at the end: the dict is in the order of the last failures
        while len(self._failures) > SOURCES_MAX:
            del self._failures[next(iter(self._failures))]

    def succeeded(self, user: str, address: str) -> None:
        """Forget the failures of the user. Those of the address stay: a caller with one password could else guess
        others without limit."""
        self.withdraw(user, address)
        self._failures.pop(("user", user), None)

    def withdraw(self, user: str, address: str) -> None:
        """Take back the last failure, of an attempt that proved nothing about the password."""
        for source, _ in _limits(user, address):
            times = self._failures.get(source)
            if times:
                times.pop()

    def _wait(self, source: _Source, limit: int, now: float) -> float:
        times = self._failures.get(source, ())
        recent = [at for at in times if now - at < FAILURE_SECONDS]
        return recent[0] + FAILURE_SECONDS - now if len(recent) >= limit else 0.0


def _limits(user: str, address: str) -> tuple[tuple[_Source, int], ...]:
    return (("user", user), FAILURES_OF_USER_MAX), (("address", address), FAILURES_OF_ADDRESS_MAX)
