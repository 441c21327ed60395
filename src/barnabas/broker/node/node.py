"""One node: starts its parts in order and stops them in the reverse. Nobody else does.

The order: which cluster this is; disks; addresses, taken but not served; the controllers' listener and the metadata
log; the broker's registration, its replicas, and only then the clients' listeners. ``assembly`` makes the parts.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Final

from barnabas.broker.controller.directory_assignments import DirectoryAssignments
from barnabas.broker.controller.membership import ControllerMembership
from barnabas.broker.controller.registration import broker_registration, controller_registration
from barnabas.broker.metrics.health import open_at, pages
from barnabas.broker.metrics.observed import WINDOW_MS, Observed
from barnabas.broker.metrics.replication import of_replication
from barnabas.broker.node import joining
from barnabas.broker.node.assembly import Assembly, Ground
from barnabas.broker.node.chores import Chores
from barnabas.broker.node.lifecycle import Lifecycle
from barnabas.broker.node.link_security import controller_links, renew_links
from barnabas.broker.node.listeners import Listeners
from barnabas.broker.node.neighbours import Neighbours
from barnabas.broker.node.older_disk import Incarnations, LeaderAccount, ask_leader, catch_up, check_replica
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.endpoints import reachable
from barnabas.http.server import HttpServer
from barnabas.metadata.configs_image import ResourceType
from barnabas.metadata.image import EMPTY, ClusterImage
from barnabas.metadata.image_builder import MetadataChanges
from barnabas.metadata.image_difference import difference
from barnabas.model.ids import TopicPartition
from barnabas.model.settings import InvalidSetting
from barnabas.observe.failures import Failures
from barnabas.observe.log import logger
from barnabas.raft.voters import Endpoint
from barnabas.replication.replication import Replication
from barnabas.storage.progress import OnProgress
from barnabas.storage.store import LogStore
from barnabas.transport.listener import Listener
from barnabas.world.disk import DiskFailure
from barnabas.world.timers import Timers
from barnabas.world.world import World

log = logger("node")

FLUSH_CHECK_MS: Final = 1000


class Node:
    def __init__(self, world: World, settings: BrokerSettings) -> None:
        self.world = world
        self.settings = settings
        self.failed = asyncio.Event()  # set when the node cannot go on: no disk is left
        self.failures = Failures()  # the process that runs the node makes it the loop's exception handler
        self.on_recovery: OnProgress | None = None  # called with the progress of log recovery after a crash
        self.cluster_id = ""
        self.http: HttpServer | None = None
        self._incarnation_id = world.entropy.uuid()
        self._previous_epoch = -1  # of this broker's last life
        self._hands_over = True
        self._account: LeaderAccount | None = None  # of the quorum's leader, before this node takes part
        self._lifecycle: Lifecycle | None = None
        self._store: LogStore | None = None
        self._cleanup = AsyncExitStack()

    @property
    def listeners(self) -> list[Listener]:
        return list(self._listeners)

    @property
    def bootstrap_servers(self) -> str:
        first = self.listeners[0]
        return f"{reachable(first.host)}:{first.port}"

    async def start(self) -> None:
        """Return when clients are served; if anything fails, what was started is stopped again."""
        async with AsyncExitStack() as cleanup:
            await self._start(cleanup)
            self._cleanup = cleanup.pop_all()

    async def stop(self, *, hands_over: bool = True) -> None:
        """Stop serving, finish what is under way, and leave the directories as after a clean shutdown.

        ``hands_over``: others of the cluster go on, and take over before this one goes.
        """
        self._hands_over = hands_over
        await self._cleanup.aclose()

    async def _start(self, cleanup: AsyncExitStack) -> None:
        membership = await self._find_cluster()
        self.cluster_id = membership.cluster_id
        timers = self._timers = Timers(self.world.clock)
        cleanup.callback(timers.close)
        self.observed = Observed(self.world.clock, slow_ms=self.settings.observe.slow_ms, failures=self.failures)
        store = await self._open_store(cleanup)
        parts = self._parts = Assembly(
            Ground(
                world=self.world,
                timers=timers,
                settings=self.settings,
                store=store,
                observed=self.observed,
                membership=membership,
                broker_epoch=lambda: self._broker_epoch,
                try_listeners=lambda settings: self._listeners.try_out(settings),
                on_raft_failure=self._on_raft_failure,
            )
        )
        self.services = parts.services
        cleanup.push_async_callback(parts.controller_links.close)
        cleanup.push_async_callback(parts.broker_links.close)
        await self._start_quorum(parts, cleanup)
        if self.settings.cluster.is_broker:
            await self._start_broker(parts, store, cleanup)
        else:
            self._follow_metadata(cleanup)
        await joining.until_voter(parts.raft, self._timers, self.settings.cluster)
        if self.settings.cluster.bootstrap_servers:
            log.info("in the quorum", standing=joining.standing(parts.raft.voters, parts.raft.local.key))
        await self._start_health(cleanup)
        if self._lifecycle is not None:
            # The first to be stopped, while all else still works: others take over what this broker leads.
            cleanup.push_async_callback(self._lifecycle.stop)

    # --- the cluster and the disks --------------------------------------------------------------------------------

    async def _find_cluster(self) -> joining.Membership:
        links = controller_links(self.settings, self.world.entropy)
        try:
            home = joining.look_at(self.world.disk, self.settings.log_dirs)
            ask = joining.ask_over(links)
            found = await joining.find_cluster(home, self.settings.cluster, ask=ask, entropy=self.world.entropy)
            if home.cluster_id is not None:
                self._account = await ask_leader(links, self.settings.cluster.bootstrap_servers)
            return found
        finally:
            await links.close()

    async def _open_store(self, cleanup: AsyncExitStack) -> LogStore:
        store = await LogStore.open(
            self.world,
            self._timers,
            self.settings.log_dirs,
            node_id=self.settings.node_id,
            cluster_id=self.cluster_id,
            defaults=self.settings.topic_defaults,
            settings_of=lambda topic: self.settings.topic_defaults,
            on_offline=self._on_offline,
            on_progress=self.on_recovery,
        )
        self._store = store
        self._previous_epoch = store.previous_broker_epoch

        async def close() -> None:
            await store.close(clean=True, broker_epoch=self._broker_epoch)

        cleanup.push_async_callback(close)
        if self.settings.log_dirs[0] in store.offline:
            raise store.offline[self.settings.log_dirs[0]]
        return store

    # --- the quorum -----------------------------------------------------------------------------------------------

    async def _start_quorum(self, parts: Assembly, cleanup: AsyncExitStack) -> None:
        """A single node is a quorum of one; others answer each other before any of them knows the cluster."""
        self._listeners = Listeners(self.services)
        cleanup.push_async_callback(self._listeners.stop)
        await self._listeners.bind()
        bound = self._listeners.addresses
        parts.found(
            tuple(Endpoint(each.name, each.host, each.port) for each in self.settings.advertised_to_controllers(bound))
        )

        async def stop_raft() -> None:
            await parts.raft.stop(hands_over=self._hands_over)

        cleanup.push_async_callback(stop_raft)
        cleanup.push_async_callback(parts.controller.stop)
        cleanup.push_async_callback(parts.active.stop)
        cleanup.push_async_callback(parts.life_watch.stop)
        cleanup.push_async_callback(self.services.tasks.stop)
        parts.raft.on_opened = lambda state, end: check_replica(self._account, parts.raft.local.key, state, end)
        await self._listeners.serve_controllers()
        await parts.raft.start()
        is_alone = not self.settings.cluster.bootstrap_servers
        joining.check_voters(parts.raft.voters, parts.raft.local.key, self.settings.log_dirs, is_alone=is_alone)
        if self.settings.cluster.is_controller and self._listeners.has_for_controllers:
            membership = ControllerMembership(
                timers=self._timers,
                link=self.services.controller_link,
                image=lambda: parts.controller.image,
                request=controller_registration(self.settings, bound, incarnation_id=self.world.entropy.uuid()),
            )
            membership.start()
            cleanup.push_async_callback(membership.stop)

    # --- the broker -----------------------------------------------------------------------------------------------

    async def _start_broker(self, parts: Assembly, store: LogStore, cleanup: AsyncExitStack) -> None:
        services, replicas = self.services, parts.replicas
        lifecycle = self._lifecycle = self._make_lifecycle(parts, store)
        self._listeners.on_change = lifecycle.renew
        cleanup.push_async_callback(replicas.stop)
        replication = Replication(
            replicas,
            clock=self.world.clock,
            timers=self._timers,
            links=parts.broker_links,
            ask=lambda message, timeout_ms: services.controller_link.ask(message, timeout_ms=timeout_ms),
            broker_epoch=lambda: lifecycle.broker_epoch,
            settings=lambda: services.settings.replication,
            on_failure=self._on_replication_failure,
        )
        self.observed.metrics.add(lambda: of_replication(replication))
        replication.start()
        cleanup.push_async_callback(replication.stop)
        assignments = DirectoryAssignments(
            replicas=replicas,
            directory_ids=lambda: store.directory_ids,
            link=services.controller_link,
            timers=self._timers,
            broker_epoch=lambda: lifecycle.broker_epoch,
        )
        cleanup.push_async_callback(assignments.stop)

        def on_log_offline(key: TopicPartition) -> None:
            if (partition := replicas.log_failed(key)) is not None:
                assignments.changed(partition)

        store.on_log_offline = on_log_offline
        cleanup.push_async_callback(services.log_moves.stop)
        cleanup.push_async_callback(services.groups.stop)
        cleanup.push_async_callback(services.transactions.stop)
        cleanup.push_async_callback(services.share_state.stop)
        cleanup.push_async_callback(services.share_leaders.stop)
        cleanup.push_async_callback(self._listeners.stop_clients)
        cleanup.push_async_callback(lifecycle.stop)
        cleanup.callback(replicas.on_image_in_force(lifecycle.on_image))
        await self._until_seen(parts, await self._register(parts, store, lifecycle))
        self._follow_metadata(cleanup)
        await replicas.caught_up(parts.controller.image.offset)
        await self._remove_strays(store)
        services.log_moves.resume(assignments.changed)
        await lifecycle.unfence()
        await replicas.caught_up(parts.controller.image.offset)
        self._start_chores(store, cleanup)
        await self._listeners.serve_clients()

    async def _register(self, parts: Assembly, store: LogStore, lifecycle: Lifecycle) -> int:
        incarnations = Incarnations(self.world.disk, store.directory_ids, self._incarnation_id, parts.raft.found_end)
        await catch_up(self._account, parts.raft)
        await incarnations.add(known=parts.controller.image.brokers.get(self.settings.node_id))
        epoch = await lifecycle.register()
        await incarnations.settle()
        return epoch

    def _make_lifecycle(self, parts: Assembly, store: LogStore) -> Lifecycle:
        settings, cluster = self.settings, self.settings.cluster
        return Lifecycle(
            world=self.world,
            timers=self._timers,
            link=self.services.controller_link,
            registration=lambda: broker_registration(
                self.services.settings,
                store,
                self._listeners.addresses,
                cluster_id=self.cluster_id,
                incarnation_id=self._incarnation_id,
            ),
            registered=lambda: parts.controller.image.brokers.get(settings.node_id),
            metadata_offset=lambda: self.services.image.offset,
            online_directories=lambda: store.directory_ids.values(),
            heartbeat_interval_ms=cluster.heartbeat_interval_ms,
            session_timeout_ms=cluster.session_timeout_ms,
            registration_timeout_ms=cluster.registration_timeout_ms,
            was_member=lambda: parts.raft.found_end > 0,
            is_controlled=self._is_controlled,
            on_failure=lambda error: self.failed.set(),
        )

    @property
    def _broker_epoch(self) -> int:
        """Of the latest registration; a start that fails leaves that of the last life behind."""
        is_registered = self._lifecycle is not None and self._lifecycle.broker_epoch >= 0
        return self._lifecycle.broker_epoch if self._lifecycle and is_registered else self._previous_epoch

    def _is_controlled(self) -> bool:
        is_wanted = self.services.settings.cluster.has_controlled_shutdown
        return is_wanted and self._hands_over and not self.failed.is_set()

    async def _until_seen(self, parts: Assembly, broker_epoch: int) -> None:
        """Until this node's own picture of the cluster has the broker in it: what is missing then, is gone."""
        seen = asyncio.Event()

        def look(_: object, image: ClusterImage, __: object) -> None:
            known = image.brokers.get(self.settings.node_id)
            if known is not None and known.epoch >= broker_epoch:
                seen.set()

        forget = parts.controller.on_image(look)
        look(None, parts.controller.image, None)
        await seen.wait()
        forget()

    async def _remove_strays(self, store: LogStore) -> None:
        """Partitions that were deleted, or given to others, while this broker was away."""
        ours = {partition.id for partition in self.services.replicas}
        for key in sorted(store.logs.keys() - ours):
            await self.services.replicas.give_up(store.logs[key])

    async def _start_health(self, cleanup: AsyncExitStack) -> None:
        if self.settings.barnabas_http_port:
            self.http = HttpServer(pages(self.services, self._listeners, self.failed.is_set))
            cleanup.push_async_callback(self.http.stop)
            await open_at(self.http, self.settings)

    def _start_chores(self, store: LogStore, cleanup: AsyncExitStack) -> None:
        chores = self.chores = Chores(self._timers)
        cleanup.push_async_callback(chores.stop)
        settings = self.settings

        async def expire_producers() -> None:
            store.expire_producers(expiration_ms=self.services.settings.producer_id_expiration_ms)

        async def flush() -> None:
            await store.flush_due()
            self.services.replicas.retry()

        chores.every(settings.replica_high_watermark_checkpoint_interval_ms, "checkpoint", store.checkpoint)
        chores.every(settings.log_retention_check_interval_ms, "retention", store.retain_all)
        chores.every(FLUSH_CHECK_MS, "flush", flush)
        chores.every(settings.producer_id_expiration_check_interval_ms, "producers", expire_producers)
        chores.every(WINDOW_MS, "windows", self.observed.turn)
        self.observed.loop.start()
        cleanup.callback(self.observed.loop.stop)
        self.services.cleaner.start()
        cleanup.push_async_callback(self.services.cleaner.stop)

    # --- following the metadata -----------------------------------------------------------------------------------

    def _follow_metadata(self, cleanup: AsyncExitStack) -> None:
        """From the picture as it is now, in one step, and then with every change."""
        controller = self._parts.controller
        self._neighbours = Neighbours(
            self._parts.broker_links,
            broker_id=self.settings.node_id,
            listener_name=self.settings.cluster.inter_broker_listener_name or "",
        )
        image = controller.image
        self._on_image(EMPTY, image, difference(EMPTY, image))
        cleanup.callback(controller.on_image(self._on_image))

    def _on_image(self, old: ClusterImage, image: ClusterImage, changes: MetadataChanges) -> None:
        self.observed.on_image(old, image, changes, self.services.controller.append_time_ms)
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
            settings = self.services.settings = BrokerSettings.of(self.settings.given, dynamic)
            self.services.quotas.connections.settings = settings.quotas
            self._listeners.follow(settings)
            renew_links(settings, to_brokers=self._parts.broker_links, to_controllers=self._parts.controller_links)
        except InvalidSetting as error:
            log.error("dynamic settings are not applied", reason=error)

    # --- failing --------------------------------------------------------------------------------------------------

    def _on_replication_failure(self, error: BaseException) -> None:
        log.error("replication has failed", reason=repr(error))
        self.failed.set()

    def _on_raft_failure(self, error: Exception) -> None:
        log.error("metadata log has failed", reason=error)
        self.failed.set()

    def _on_offline(self, directory: str, failure: DiskFailure) -> None:
        is_home = directory == self.settings.log_dirs[0]
        if is_home and self._store is None:
            return  # there is no node without its first directory: the start ends with this very failure
        log.error("directory is offline", directory=directory, reason=failure)
        if hasattr(self, "services"):
            self.services.replicas.directory_failed(directory)
        if self._lifecycle is not None:
            self._lifecycle.hurry()
        if is_home:
            self.failed.set()  # no metadata log: better gone than half alive
