"""Users of an HTTP service: those of a file, or those of the cluster, which its brokers verify by SASL.

A password that was verified is remembered as a keyed digest for a minute, so that a request costs no login; failed
logins are never remembered.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.settings.client import Settings
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.settings import InvalidSetting

REMEMBERED_SECONDS: Final = 60.0
REMEMBERED_MAX: Final = 10_000  # users
LOGINS_MAX: Final = 8  # at the same time


class FileUsers:
    """Users and passwords of a file with a line ``name=password`` for each; ``#`` starts a comment line."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = dict(passwords)

    @classmethod
    def read(cls, path: Path) -> FileUsers:
        passwords: dict[str, str] = {}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            name, equals, password = text.partition("=")
            if not equals or not name.strip() or not password.strip():
                raise InvalidSetting(f"{path}, line {number}: expected name=password")
            passwords[name.strip()] = password.strip()
        return cls(passwords)

    async def verify(self, username: str, password: str) -> bool:
        known = self._passwords.get(username)
        # An unknown user takes as long as a known one.
        is_same = hmac.compare_digest((known or secrets.token_hex()).encode(), password.encode())
        return is_same and known is not None


class ClusterUsers:
    """The cluster's own users: ``settings`` say how a client authenticates (protocol, mechanism, TLS)."""

    def __init__(self, settings: Settings) -> None:
        if not settings.has_sasl or settings.sasl_mechanism == "OAUTHBEARER":
            raise InvalidSetting(
                "verifying the cluster's users needs security.protocol=SASL_SSL or SASL_PLAINTEXT and "
                "sasl.mechanism=SCRAM-SHA-256, SCRAM-SHA-512 or PLAIN"
            )
        self._settings = settings
        self._key = secrets.token_bytes(32)
        self._verified: dict[str, tuple[bytes, float]] = {}
        self._logins = asyncio.Semaphore(LOGINS_MAX)

    async def verify(self, username: str, password: str) -> bool:
        digest = hmac.digest(self._key, password.encode(), hashlib.sha256)
        known = self._verified.get(username)
        if known is not None and hmac.compare_digest(known[0], digest) and time.monotonic() < known[1]:
            return True
        async with self._logins:
            is_valid = await self._log_in(username, password)
        if is_valid:
            self._verified.pop(username, None)
            if len(self._verified) >= REMEMBERED_MAX:
                self._verified.pop(next(iter(self._verified)))  # the oldest
            self._verified[username] = digest, time.monotonic() + REMEMBERED_SECONDS
        return is_valid

    async def _log_in(self, username: str, password: str) -> bool:
        """Whether a broker accepts the credentials; raises what prevents asking one."""
        settings = replace(self._settings, sasl_username=username, sasl_password=password, sasl_jaas_config="")
        async with Cluster(settings) as cluster:
            try:
                await cluster.open()
            except ApiError as error:
                if error.error is errors.SASL_AUTHENTICATION_FAILED:
                    return False
                raise
        return True
