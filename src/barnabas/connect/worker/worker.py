"""A worker: the REST API, the state in topics, its place among the workers, and the leader's duties while it leads."""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx
from starlette.requests import Request
from starlette.responses import Response

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.settings.client import Settings
from barnabas.connect.errors import ConfigError
from barnabas.connect.worker.children import Child
from barnabas.connect.worker.herder import Herder, NotLeader
from barnabas.connect.worker.knowledge import Knowledge
from barnabas.connect.worker.leader import DRIVER, Leader
from barnabas.connect.worker.loggers import LEVELS, Loggers
from barnabas.connect.worker.membership import Membership
from barnabas.connect.worker.rest_api import RestApi
from barnabas.connect.worker.settings import WorkerSettings
from barnabas.connect.worker.state import Stores
from barnabas.connect.worker.store import Change
from barnabas.model.errors import BarnabasError
from barnabas.observe.log import logger
from barnabas.rest.access import Access, is_loopback
from barnabas.rest.server import Server
from barnabas.rest.service import Limits, Service, Users
from barnabas.rest.users import ClusterUsers, FileUsers
from barnabas.transport.tls import TlsFiles, client_context, server_context

PLUGIN_PROCESS: Final = "barnabas.connect.worker.plugin_process"
BODY_BYTES_MAX: Final = 4 * 1024 * 1024
FORWARDED: Final = "X-Barnabas-Forwarded"  # header of requests that another worker has sent on
FORWARD_SECONDS_MAX: Final = 90.0
RETRY_SECONDS: Final = 2.0
ELECTION_TICK_SECONDS: Final = 0.2

_log: Final = logger("connect")


def _server_tls(files: TlsFiles) -> ssl.SSLContext | None:
    if files.key_store is None:
        if files.trust_store is not None:
            raise ConfigError("rest.tls.truststore needs rest.tls.keystore: certificates are a part of HTTPS")
        return None
    return server_context(files, client_auth="none" if files.trust_store is None else "required")


class Worker:
    """``await worker.start()``, then ``worker.url``, then ``await worker.stop()``."""

    def __init__(
        self, settings: WorkerSettings, client: Mapping[str, str] | None = None, *, driver: str = DRIVER
    ) -> None:
        """``client`` are settings of the client; ``driver`` is the module that is run as the driver."""
        self._settings = settings
        self._driver = driver
        self._client = {"bootstrap.servers": settings.bootstrap_servers, **(client or {})}
        self._cluster = Cluster(Settings.of(self._client))
        self._plugins = Child(PLUGIN_PROCESS, self._plugin_settings())
        self._knowledge = Knowledge(self._plugins)
        self._stores = Stores(self._cluster, self._client, settings, self._on_change)
        self._herder = Herder(self._cluster, self._stores, self._knowledge, settings)
        self._loggers = Loggers()
        self._api = RestApi(self._herder, self._loggers, self._forwarded, self._cluster_id)
        files = TlsFiles(key_store=settings.rest_tls_keystore or None, trust_store=settings.rest_tls_truststore or None)
        self._server = Server(self._service(), host=settings.host, port=settings.port, tls=_server_tls(files))
        verify = client_context(files) if files.key_store else True
        self._http = httpx.AsyncClient(timeout=FORWARD_SECONDS_MAX, verify=verify)
        self._membership: Membership | None = None
        self._leading: asyncio.Task[None] | None = None
        self._electing: asyncio.Task[None] | None = None
        self._is_leader = asyncio.Event()
        self._changed = asyncio.Event()
        self._temporary = tempfile.TemporaryDirectory(prefix="barnabas-connect-") if not settings.data_dir else None
        self.data_dir = Path(settings.data_dir or self._temporary.name)  # type: ignore[union-attr]

    @property
    def url(self) -> str:
        """Return the address of the REST API."""
        return self._server.url

    @property
    def is_leader(self) -> bool:
        """Return whether this worker leads."""
        return self._herder.leader is not None

    @property
    def driver_pid(self) -> int | None:
        """Return the id of the driver's process, if this worker runs one."""
        return None if self._herder.leader is None else self._herder.leader.driver_pid

    async def start(self) -> None:
        """Listen, read the topics, and join the other workers."""
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        await self._server.start()
        await self._plugins.start()
        await self._stores.start()
        url = self._advertised()
        self._membership = Membership(
            self._client,
            self._settings.group_id,
            self._settings.config_storage_topic,
            url=url,
            timeout_ms=self._settings.session_timeout_ms,
            on_change=self._on_leadership,
        )
        await self._membership.start()
        self._leading = asyncio.create_task(self._lead(), name="connect-worker")
        self._electing = asyncio.create_task(self._become_ready(), name="connect-ready")
        _log.info("worker started", url=url, group=self._settings.group_id)

    async def stop(self) -> None:
        """Stop the driver, leave the group, and stop listening."""
        self._api.is_ready = False
        for task in (self._electing, self._leading):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        leader, self._herder.leader = self._herder.leader, None
        if leader is not None:
            await leader.stop()
        if self._membership is not None:
            await self._membership.stop()
        await self._server.stop()
        await self._stores.stop()
        await self._plugins.stop()
        await self._http.aclose()
        await self._cluster.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    # --- leadership -----------------------------------------------------------------------------------------------

    def _on_leadership(self, is_leader: bool) -> None:
        if is_leader:
            self._is_leader.set()
        else:
            self._is_leader.clear()
        self._changed.set()

    def _on_change(self, change: Change) -> None:
        if change.kind == "logger":
            level = str(change.detail.get("level", "")).upper()
            if level in LEVELS:
                self._loggers.set(change.name, level)
        if self._herder.leader is not None:
            self._herder.leader.wake()

    async def _lead(self) -> None:
        """Begin and end terms of leadership as the group decides."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                if self._is_leader.is_set() and self._herder.leader is None:
                    leader = self._new_leader()
                    await leader.start()
                    self._herder.leader = leader
                    _log.info("worker leads", group=self._settings.group_id)
                elif not self._is_leader.is_set() and self._herder.leader is not None:
                    leader, self._herder.leader = self._herder.leader, None
                    await leader.stop()
                    _log.info("worker does not lead any more", group=self._settings.group_id)
            except BarnabasError as error:
                _log.warning("leadership failed; trying again", error=error)
                await asyncio.sleep(RETRY_SECONDS)
                self._changed.set()

    async def _become_ready(self) -> None:
        """Report the worker as healthy when the group has a leader for the first time: writes succeed from then on."""
        assert self._membership is not None
        while self._herder.leader is None:
            leader = None if self._is_leader.is_set() else await self._membership.leader_url(self._cluster)
            if leader is not None and leader != self._advertised():
                break
            await asyncio.sleep(ELECTION_TICK_SECONDS)
        self._api.is_ready = True

    def _new_leader(self) -> Leader:
        settings = self._settings
        driver = {
            "client": self._client,
            "group": settings.group_id,
            "checkpoint_topic": settings.checkpoint_storage_topic,
            "data_dir": str(self.data_dir),
            "master": settings.spark_master,
            "plugins": self._plugin_settings(),
        }
        worker_id = self._advertised().partition("://")[2]
        return Leader(
            self._stores,
            self._knowledge,
            client=self._client,
            group=settings.group_id,
            worker_id=worker_id,
            driver=self._driver,
            driver_settings=driver,
            tracks_topics=settings.topic_tracking_enable,
        )

    def _plugin_settings(self) -> dict[str, Any]:
        settings = self._settings
        directory = Path(settings.plugins_directory).absolute()
        return {
            "directory": str(directory) if directory.is_dir() else None,
            "allow": list(settings.plugins_allow),
            "allowed_paths": list(settings.config_providers_allowed_paths),
        }

    # --- HTTP -----------------------------------------------------------------------------------------------------

    def _service(self) -> Service:
        settings = self._settings
        hosts, origins = settings.rest_allowed_hosts, settings.rest_allowed_origins
        access = Access(listens_on=settings.host, hosts=hosts, origins=origins)
        limits = Limits(body_bytes=BODY_BYTES_MAX, response_seconds=FORWARD_SECONDS_MAX)
        return Service("connect", self._api.routes(), access=access, users=self._users(), limits=limits)

    def _users(self) -> Users | None:
        settings = self._settings
        if settings.rest_users_file:
            return FileUsers.read(Path(settings.rest_users_file))
        if settings.rest_cluster_users:
            return ClusterUsers(Settings.of(self._client))
        if not is_loopback(settings.host) and not settings.rest_tls_truststore:
            raise ConfigError(
                f"the worker would listen on {settings.host or 'all addresses'} without authentication; "
                "set rest.users.file, rest.cluster.users or rest.tls.truststore"
            )
        return None

    def _cluster_id(self) -> str:
        return self._cluster.metadata.cluster_id or ""

    def _advertised(self) -> str:
        host = self._settings.rest_advertised_host_name
        if not host and self._settings.host in ("", "0.0.0.0", "::"):  # noqa: S104 - compared, not bound
            host = socket.gethostname()
        scheme = self._server.url.partition("://")[0]
        return f"{scheme}://{host}:{self._server.port}" if host else self._server.url

    async def _forwarded(self, request: Request) -> Response:
        """Send a request on to the leader; 409 if there is none, or if it was sent on already."""
        url = None
        if self._membership is not None and FORWARDED not in request.headers:
            url = await self._membership.leader_url(self._cluster)
        if url is None or url == self._advertised():
            raise NotLeader
        headers = {name: request.headers[name] for name in ("content-type", "authorization") if name in request.headers}
        query = f"?{request.url.query}" if request.url.query else ""
        target = url + request.scope["path"] + query
        try:
            answer = await self._http.request(
                request.method, target, content=await request.body(), headers=headers | {FORWARDED: "1"}
            )
        except httpx.HTTPError as error:
            _log.warning("leader cannot be reached", leader=url, error=error)
            raise NotLeader from error
        kept = {name: answer.headers[name] for name in ("content-type", "location") if name in answer.headers}
        return Response(answer.content, status_code=answer.status_code, headers=kept)
