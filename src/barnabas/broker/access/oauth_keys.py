"""The public keys of an OAuth token issuer: fetched before the broker serves clients, and refreshed periodically.

A token with an unknown key causes a refresh, because the issuer may have rotated its keys, but at most one every few
seconds. While the issuer cannot be reached, the broker keeps the keys that it has. ``security.jwks`` parses them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from barnabas.broker.settings.oauth import OAuthSettings
from barnabas.http.client import RequestFailed, get
from barnabas.model.settings import InvalidSetting
from barnabas.observe.log import logger
from barnabas.security.jwks import NO_KEYS, SET_BYTES_MAX, InvalidKeySet, KeySet, parse_key_set
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timer, Timers
from barnabas.world.world import World

log = logger("oauth")

FETCH_SECONDS_MAX: Final = 10.0
LOOK_AGAIN_MS_MIN: Final = 5_000  # so that tokens with unknown keys cannot cause a fetch each
REFRESH: Final = "oauth-keys"  # name of the task that fetches


class OAuthKeys:
    def __init__(self, world: World, timers: Timers, settings: OAuthSettings) -> None:
        self._world = world
        self._timers = timers
        self._settings = settings
        self._timer: Timer | None = None
        self._tasks = Tasks()
        self._looked_ms: int | None = None
        self._retry_ms = settings.retry_ms
        self.keys: KeySet = NO_KEYS

    async def start(self) -> None:
        """Fetch the keys; InvalidSetting if there are none, because no client could authenticate."""
        try:
            self.keys = await self._fetched()
        except (RequestFailed, InvalidKeySet) as error:
            raise InvalidSetting(f"the keys for OAUTHBEARER cannot be used: {error}") from error
        self._looked_ms = self._world.clock.monotonic_ms()
        self._timer = self._timers.after(self._settings.refresh_ms, self._look)

    async def stop(self) -> None:
        await self._tasks.stop()
        if self._timer is not None:
            self._timer.cancel()

    async def know(self, key_id: str | None) -> None:
        """Refresh the keys if this key is unknown, unless they were refreshed a moment ago."""
        if self.keys.has(key_id):
            return
        now_ms = self._world.clock.monotonic_ms()
        is_running = self._tasks.is_running(REFRESH)
        if not is_running and (self._looked_ms is None or now_ms - self._looked_ms >= LOOK_AGAIN_MS_MIN):
            self._look()
        await self._tasks.done()

    def _look(self) -> None:
        if self._tasks.is_running(REFRESH):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._looked_ms = self._world.clock.monotonic_ms()
        self._tasks.once(REFRESH, self._refresh)

    async def _refresh(self) -> None:
        wait_ms, self._retry_ms = self._retry_ms, min(self._retry_ms * 2, self._settings.retry_ms_max)
        try:
            self.keys = await self._fetched()
            wait_ms, self._retry_ms = self._settings.refresh_ms, self._settings.retry_ms
        except (RequestFailed, InvalidKeySet) as error:
            log.warning("keys of the token issuer cannot be refreshed", reason=error)
        finally:
            self._timer = self._timers.after(wait_ms, self._look)

    async def _fetched(self) -> KeySet:
        settings = self._settings
        if settings.url is not None:
            text = await get(settings.url, size_bytes_max=SET_BYTES_MAX, timeout_seconds=FETCH_SECONDS_MAX)
        else:
            assert settings.file is not None
            text = await self._world.workers.run(_read, settings.file)
        return await self._world.workers.run(parse_key_set, text)


def _read(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            text = file.read(SET_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidKeySet(f"{path}: {error.strerror}") from error
    if len(text) > SET_BYTES_MAX:
        raise InvalidKeySet(f"{path} has more than {SET_BYTES_MAX} bytes")
    return text
