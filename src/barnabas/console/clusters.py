"""The clusters that a console serves, by name, and a view of each for every user who looks at it.

A view holds connections, so there are at most ``VIEWS_MAX``; the one that was not used for longest is closed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.serdes.registry import Registry
from barnabas.client.settings.client import Settings
from barnabas.console.sessions import Login
from barnabas.console.view import ClusterView
from barnabas.model import errors
from barnabas.model.errors import ApiError

VIEWS_MAX: Final = 100
LOGINS_MAX: Final = 4  # verified at once
ANONYMOUS: Final = ""


@dataclass(frozen=True, slots=True)
class ClusterSource:
    """How a cluster is reached: client settings by Kafka's names, and the services beside it."""

    name: str
    settings: Mapping[str, str]
    registry_url: str | None = None
    registry_login: str = ""  # USER:PASSWORD
    color: str = ""  # of the environment, shown in the page's frame

    def given(self, login: Login | None) -> dict[str, str]:
        """Client settings by Kafka's names, with the credentials of the user."""
        credentials = {} if login is None else login.credentials
        return {"client.id": "barnabas-console", **self.settings, **credentials}

    def registry(self) -> Registry | None:
        if not self.registry_url:
            return None
        username, _, password = self.registry_login.partition(":")
        return Registry(self.registry_url, username=username, password=password)


class Clusters:
    def __init__(self, sources: list[ClusterSource]) -> None:
        self.sources = {source.name: source for source in sources}
        self._views: dict[tuple[str, str], ClusterView] = {}
        self._logins = asyncio.Semaphore(LOGINS_MAX)
        self._closing: set[asyncio.Task[None]] = set()

    def view(self, name: str, login: Login | None) -> ClusterView:
        """The view of a user; KeyError if there is no such cluster."""
        source = self.sources[name]
        key = name, ANONYMOUS if login is None else login.user
        view = self._views.get(key)
        if view is None:
            while len(self._views) >= VIEWS_MAX:
                oldest = min(self._views, key=lambda each: self._views[each].used_at)
                closing = asyncio.ensure_future(self._views.pop(oldest).close())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
            view = self._views[key] = ClusterView(name, source.given(login), registry=source.registry())
        view.used_at = time.monotonic()
        return view

    async def verify(self, name: str, login: Login) -> bool:
        """Whether a broker accepts the credentials; raises what prevents asking one."""
        settings = Settings.of(self.sources[name].given(login))
        async with self._logins, Cluster(settings) as cluster:
            try:
                await cluster.open()
            except ApiError as error:
                if error.error is errors.SASL_AUTHENTICATION_FAILED:
                    return False
                raise
        # A new password must not use the connections of the old one.
        view = self._views.pop((name, login.user), None)
        if view is not None:
            await view.close()
        return True

    async def close(self) -> None:
        views, self._views = list(self._views.values()), {}
        for view in views:
            await view.close()
