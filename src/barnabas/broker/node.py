"""One node: builds every part, wires them, starts them in order and stops them in the reverse. Nobody else does.

The order: disks, the metadata log and its controller, the cluster (registered under ports that are bound but not yet
served), the replicas that the metadata names, and only then the listeners.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Final

from barnabas.broker.authorizer import Authorizer
from barnabas.broker.chores import Chores
from barnabas.broker.connection_settings import parse_overrides
from barnabas.broker.controller_apis import ControllerApis
from barnabas.broker.controller_link import ControllerLink
from barnabas.broker.controller_requests import allocate_producer_ids, facts
from barnabas.broker.dispatch import Dispatcher
from barnabas.broker.fetch_sessions import FetchSessions
from barnabas.broker.groups import Groups
from barnabas.broker.health import pages
from barnabas.broker.lifecycle import Lifecycle
from barnabas.broker.neighbours import Neighbours
from barnabas.broker.observed import WINDOW_MS, Observed
from barnabas.broker.producer_ids import ProducerIds
from barnabas.broker.registration import broker_registration
from barnabas.broker.routes import CONTROLLER_ROUTES, ROUTES, announced
from barnabas.broker.quotas import Quotas
from barnabas.broker.security_settings import ListenerSecurity, tls_context
from barnabas.broker.services import Services
from barnabas.broker.settings import BrokerSettings
from barnabas.broker.sign_in import Gate
from barnabas.broker.topic_settings import topic_settings
from barnabas.broker.transactions import make_transaction_coordinator
from barnabas.coordinator.cluster_markers import ClusterMarkers
from barnabas.coordinator.markers import LocalMarkers
from barnabas.http.server import HttpServer
from barnabas.metadata.active_controller import ActiveController
from barnabas.metadata.bootstrap import bootstrap_records
from barnabas.metadata.configs_image import ResourceType
from barnabas.metadata.image import EMPTY, ClusterImage
from barnabas.metadata.image_builder import MetadataChanges
from barnabas.metadata.image_difference import difference
from barnabas.metadata.loader import SnapshotRules
from barnabas.metadata.quorum_controller import QuorumController
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import METADATA_TOPIC, TopicPartition
from barnabas.model.settings import InvalidSetting
from barnabas.observe.log import logger
from barnabas.raft.driver import RaftDriver
from barnabas.raft.voters import ReplicaKey, Voter, VoterSet
from barnabas.replication.replicas import Replicas
from barnabas.replication.replication import Replication
from barnabas.storage.cleaner import Cleaner
from barnabas.storage.identity import read_meta_properties
from barnabas.storage.store import LogStore
from barnabas.transport.buffers import FramePool
from barnabas.transport.links import Links
from barnabas.transport.listener import Limits, Listener
from barnabas.world.disk import DiskFailure
from barnabas.world.timers import Timers
from barnabas.world.world import World

log = logger("node")

FLUSH_CHECK_MS: Final = 1000


class CannotListen(BarnabasError):
    """An address that is in use, or is none of this machine's."""


class Node:
    def __init__(self, world: World, settings: BrokerSettings) -> None:
        self.world = world
        self.settings = settings
        self.failed = asyncio.Event()  # set when the node cannot go on: no disk is left
        self.cluster_id = ""
        self.listeners: list[Listener] = []
        self._cleanup = AsyncExitStack()

    @property
    def bootstrap_servers(self) -> str:
        endpoint = self.settings.endpoints[0]
        host = "127.0.0.1" if endpoint.is_wildcard else endpoint.host
        return f"{host}:{self.listeners[0].port}"

    async def start(self) -> None:
        """Return when clients are served; if anything fails, what was started is stopped again."""
        async with AsyncExitStack() as cleanup:
            await self._start(cleanup)
            self._cleanup = cleanup.pop_all()

    async def stop(self) -> None:
        """Stop serving, finish what is under way, and leave the directories as after a clean shutdown."""
        await self._cleanup.aclose()

    async def _start(self, cleanup: AsyncExitStack) -> None:
        self.cluster_id = self._known_cluster_id() or str(self.world.entropy.uuid())
        self._timers = Timers(self.world.clock)
        cleanup.callback(self._timers.close)
        self.observed = Observed(self.world.clock, slow_ms=self.settings.observe.slow_ms)
        self._store = await self._open_store()
        self._broker_epoch = self._store.previous_broker_epoch  # what a start that fails leaves behind, too
        cleanup.push_async_callback(self._close_store)
        if self.settings.log_dirs[0] in self._store.offline:
            raise self._store.offline[self.settings.log_dirs[0]]
        controller = await self._start_controller(cleanup)
        replicas = Replicas(
            broker_id=self.settings.node_id,
            store=self._store,
            settings_of=lambda image, topic: topic_settings(image, topic, self.services.settings),
        )
        self._links = Links(client_id=f"broker-{self.settings.node_id}", chance=self.world.entropy.below)
        cleanup.push_async_callback(self._links.close)
        self._neighbours = Neighbours(
            self._links, broker_id=self.settings.node_id, listener_name=self.settings.endpoints[0].name
        )
        self.services = self._services(controller, replicas)
        cleanup.push_async_callback(replicas.stop)
        replication = self._make_replication(replicas)
        cleanup.push_async_callback(replication.stop)
        cleanup.push_async_callback(self.services.groups.stop)
        cleanup.push_async_callback(self.services.transactions.stop)
        await self._bind(cleanup)
        self._lifecycle = self._make_lifecycle()
        cleanup.push_async_callback(self._lifecycle.stop)
        self._broker_epoch = await self._lifecycle.register()
        await self._follow_metadata(cleanup)
        await self._lifecycle.unfence()
        await replicas.caught_up(controller.image.offset)
        self._start_chores(cleanup)
        for listener in self.listeners:
            await listener.serve()
        await self._start_health(cleanup)
        # The first to be stopped, while all else still works: others take over what this broker leads.
        cleanup.push_async_callback(self._lifecycle.stop)

    # --- the parts ------------------------------------------------------------------------------------------------

    def _known_cluster_id(self) -> str | None:
        for directory in self.settings.log_dirs:
            known = read_meta_properties(self.world.disk, directory)
            if known is not None:
                return known.cluster_id
        return None

    async def _open_store(self) -> LogStore:
        return await LogStore.open(
            self.world,
            self._timers,
            self.settings.log_dirs,
            node_id=self.settings.node_id,
            cluster_id=self.cluster_id,
            defaults=self.settings.topic_defaults,
            settings_of=lambda topic: self.settings.topic_defaults,
            on_offline=self._on_offline,
        )

    async def _close_store(self) -> None:
        await self._store.close(clean=True, broker_epoch=self._broker_epoch)

    async def _start_controller(self, cleanup: AsyncExitStack) -> QuorumController:
        """The metadata log and the controller on it. A single node is a quorum of one: it elects itself."""
        home = self.settings.log_dirs[0]
        local = Voter(ReplicaKey(self.settings.node_id, self._store.directory_ids[home]))
        self._raft = RaftDriver(
            self.world,
            self._timers,
            f"{home}/{TopicPartition(METADATA_TOPIC, 0)}",
            local=local,
            cluster_id=self.cluster_id,
            initial_voters=VoterSet.of(local),
            on_failure=self._on_raft_failure,
        )
        controller = QuorumController(
            self._raft,
            node_id=self.settings.node_id,
            clock=self.world.clock,
            bootstrap=bootstrap_records(min_insync_replicas=self.settings.topic_defaults.min_insync_replicas),
            snapshots=SnapshotRules(
                size_bytes=self.settings.metadata_log_max_record_bytes_between_snapshots,
                interval_ms=self.settings.metadata_log_max_snapshot_interval_ms,
            ),
        )
        self._raft.listener = controller
        cleanup.push_async_callback(self._raft.stop)
        cleanup.push_async_callback(controller.stop)
        self._active = ActiveController(
            controller,
            lambda: facts(self.services),
            clock=self.world.clock,
            timers=self._timers,
            session_timeout_ms=self.settings.cluster.session_timeout_ms,
            idle_interval_ms=self.settings.cluster.idle_interval_ms,
        )
        cleanup.push_async_callback(self._active.stop)
        self._controller_links = Links(client_id=f"controller-{self.settings.node_id}", chance=self.world.entropy.below)
        cleanup.push_async_callback(self._controller_links.close)
        await self._raft.start()
        await controller.until_active()
        return controller

    def _services(self, controller: QuorumController, replicas: Replicas) -> Services:
        producer_ids = ProducerIds(lambda: allocate_producer_ids(services, self._broker_epoch))
        markers = LocalMarkers(replicas, self.world.clock, self._append_to_offsets)
        controller_apis = ControllerApis(
            controller=controller,
            active=self._active,
            facts=lambda: facts(self.services),
            entropy=self.world.entropy,
        )
        services = Services(
            observed=self.observed,
            quotas=Quotas(self.world.clock, self.settings.quotas),
            world=self.world,
            timers=self._timers,
            settings=self.settings,
            broker_id=self.settings.node_id,
            cluster_id=self.cluster_id,
            store=self._store,
            cleaner=Cleaner(self.world, self._timers, self._store, settings=lambda: self.services.settings.cleaner),
            raft=self._raft,
            controller=controller,
            controller_apis=controller_apis,
            controller_link=ControllerLink(
                node_id=self.settings.node_id,
                leader=lambda: self._raft.leader,
                local=controller_apis.answer_own,
                links=self._controller_links,
                chance=self.world.entropy.below,
            ),
            replicas=replicas,
            fetch_sessions=FetchSessions(
                self.world.clock,
                self.world.entropy,
                sessions_max=self.settings.max_incremental_fetch_session_cache_slots,
            ),
            producer_ids=producer_ids,
            groups=Groups(
                replicas=replicas, world=self.world, timers=self._timers, settings=lambda: self.services.settings
            ),
            transactions=make_transaction_coordinator(
                world=self.world,
                timers=self._timers,
                replicas=replicas,
                settings=lambda: self.services.settings,
                next_producer_id=producer_ids.next,
                sender=ClusterMarkers(markers, replicas, self._links),
            ),
            markers=markers,
            broker_links=self._links,
            authorizer=self._authorizer(replicas),
            served_versions=announced(ROUTES),
            controller_versions=announced(CONTROLLER_ROUTES),
        )
        return services

    def _make_lifecycle(self) -> Lifecycle:
        settings, cluster = self.settings, self.settings.cluster
        bound = {listener.name: (listener.host, listener.port) for listener in self.listeners}
        incarnation_id = self.world.entropy.uuid()
        return Lifecycle(
            world=self.world,
            timers=self._timers,
            link=self.services.controller_link,
            registration=lambda: broker_registration(
                settings, self._store, bound, cluster_id=self.cluster_id, incarnation_id=incarnation_id
            ),
            metadata_offset=lambda: self.services.image.offset,
            online_directories=lambda: self._store.directory_ids.values(),
            heartbeat_interval_ms=cluster.heartbeat_interval_ms,
            session_timeout_ms=cluster.session_timeout_ms,
            registration_timeout_ms=cluster.registration_timeout_ms,
            is_controlled=lambda: self.services.settings.cluster.has_controlled_shutdown and not self.failed.is_set(),
            on_failure=lambda error: self.failed.set(),
        )

    def _make_replication(self, replicas: Replicas) -> Replication:
        replication = Replication(
            replicas,
            clock=self.world.clock,
            timers=self._timers,
            links=self._links,
            ask=lambda message, timeout_ms: self.services.controller_link.ask(message, timeout_ms=timeout_ms),
            broker_epoch=lambda: self._lifecycle.broker_epoch,
            settings=lambda: self.services.settings.replication,
            on_failure=self._on_replication_failure,
        )
        replication.start()
        return replication

    async def _append_to_offsets(self, index: int, batch: bytearray, transaction_version: int) -> None:
        await self.services.groups.runtime.append_marker(index, batch, transaction_version=transaction_version)

    def _authorizer(self, replicas: Replicas) -> Authorizer | None:
        security = self.settings.security
        if not security.has_authorizer:
            return None
        return Authorizer(
            lambda: replicas.image.security,
            super_users=security.super_users,
            is_open_without_rules=security.is_open_without_rules,
        )

    async def _bind(self, cleanup: AsyncExitStack) -> None:
        dispatcher = Dispatcher(self.services)
        pool = FramePool()
        contexts = {name: tls_context(security) for name, security in self.settings.security.listeners.items()}
        for endpoint in self.settings.endpoints:
            security = self.settings.security.listeners[endpoint.name]
            serve = (
                Gate(self.services, security, dispatcher.serve).serve
                if security.protocol.has_sasl
                else dispatcher.serve
            )
            limits = _limits(self.settings, security)
            listener = Listener(endpoint.name, serve, pool, self.world.clock, self._timers, limits)
            try:
                await listener.bind(endpoint.host, endpoint.port, tls=contexts[endpoint.name])
            except OSError as error:
                reason = (error.strerror or str(error)).rpartition(": ")[2]
                raise CannotListen(f"cannot listen on {endpoint}: {reason}") from error
            cleanup.push_async_callback(listener.stop)
            listener.pace = self.services.quotas.connections.pace
            self.listeners.append(listener)

    async def _start_health(self, cleanup: AsyncExitStack) -> None:
        if not self.settings.barnabas_http_port:
            return
        server = HttpServer(pages(self.services, self.listeners, self.failed.is_set))
        cleanup.push_async_callback(server.stop)
        await server.start(self.settings.barnabas_http_host, self.settings.barnabas_http_port)

    def _start_chores(self, cleanup: AsyncExitStack) -> None:
        chores = self.chores = Chores(self._timers)
        cleanup.push_async_callback(chores.stop)
        settings, store = self.settings, self._store
        chores.every(settings.replica_high_watermark_checkpoint_interval_ms, "checkpoint", store.checkpoint)
        chores.every(settings.log_retention_check_interval_ms, "retention", store.retain_all)
        chores.every(FLUSH_CHECK_MS, "flush", store.flush_due)
        chores.every(settings.producer_id_expiration_check_interval_ms, "producers", self._expire_producers)
        chores.every(WINDOW_MS, "windows", self.observed.turn)
        self.observed.loop.start()
        cleanup.callback(self.observed.loop.stop)
        self.services.cleaner.start()
        cleanup.push_async_callback(self.services.cleaner.stop)

    async def _expire_producers(self) -> None:
        self._store.expire_producers(expiration_ms=self.services.settings.producer_id_expiration_ms)

    # --- following the metadata -----------------------------------------------------------------------------------

    async def _follow_metadata(self, cleanup: AsyncExitStack) -> None:
        """From the picture as it is now, in one step, and then with every change."""
        controller, replicas = self.services.controller, self.services.replicas
        image = controller.image
        self._on_image(EMPTY, image, difference(EMPTY, image))
        cleanup.callback(controller.on_image(self._on_image))
        await replicas.caught_up(image.offset)
        for key, stored in sorted(self._store.logs.items()):
            topic = image.topics.by_name.get(key.topic)
            if topic is None or stored.topic_id != topic.id:
                log.warning("partition belongs to no topic and is removed", partition=key, topic_id=stored.topic_id)
                await self._store.delete(key)

    def _on_image(self, old: ClusterImage, image: ClusterImage, changes: MetadataChanges) -> None:
        self.observed.elections.on_image(old, image, changes)
        if changes.has_new_quotas:
            self.services.quotas.follow(image.client_quotas)
        if any(resource.type == ResourceType.BROKER for resource in changes.changed_configs):
            self._apply_dynamic_settings(image)
        if changes.changed_brokers:
            self._neighbours.on_image(image)
        self.services.replicas.on_image(changes, image)

    def _apply_dynamic_settings(self, image: ClusterImage) -> None:
        dynamic = {**image.configs.of_cluster(), **image.configs.of_broker(self.settings.node_id)}
        try:
            self.services.settings = BrokerSettings.of(self.settings.given, dynamic)
        except InvalidSetting as error:
            log.error("dynamic settings are not applied", reason=error)
            return
        self.services.quotas.connections.settings = self.services.settings.quotas
        for listener in self.listeners:
            listener.limits = _limits(self.services.settings, self.settings.security.listeners[listener.name])

    # --- failing --------------------------------------------------------------------------------------------------

    def _on_replication_failure(self, error: BaseException) -> None:
        log.error("replication has failed", reason=repr(error))
        self.failed.set()

    def _on_raft_failure(self, error: Exception) -> None:
        log.error("metadata log has failed", reason=error)
        self.failed.set()

    def _on_offline(self, directory: str, failure: DiskFailure) -> None:
        is_home = directory == self.settings.log_dirs[0]
        if is_home and not hasattr(self, "_store"):
            return  # there is no node without its first directory: the start ends with this very failure
        log.error("directory is offline", directory=directory, reason=failure)
        if hasattr(self, "services"):
            self.services.replicas.directory_failed(directory)
        if hasattr(self, "_lifecycle"):
            self._lifecycle.hurry()
        if is_home:
            self.failed.set()  # no metadata log: better gone than half alive


def _limits(settings: BrokerSettings, security: ListenerSecurity) -> Limits:
    size_bytes = settings.socket_request_max_bytes
    return Limits(
        frame_bytes_max=min(size_bytes, security.frame_bytes_max) if security.protocol.has_sasl else size_bytes,
        connections_max=settings.max_connections,
        connections_per_address_max=settings.max_connections_per_ip,
        idle_ms_max=settings.connections_max_idle_ms,
        connections_of_address_max=parse_overrides(settings.max_connections_per_ip_overrides),
    )
