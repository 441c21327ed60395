"""Builds the parts of a node and connects them; nothing is started here, and nothing waits.

The metadata log with its controller, the links to other nodes, the replicas, the coordinators, and the ``Services``
that handlers use. The node starts and stops what is built here, in the order that its life asks for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from barnabas.broker.access.authorizer import Authorizer
from barnabas.broker.controller.auto_create import create_missing
from barnabas.broker.controller.link import ControllerLink
from barnabas.broker.controller.own_request import answer_own
from barnabas.broker.controller.producer_ids import ProducerIds
from barnabas.broker.controller.quorum_peers import SocketPeers
from barnabas.broker.controller.requests import allocate_producer_ids, facts
from barnabas.broker.coordinators.groups import Groups
from barnabas.broker.coordinators.share_state import ShareStateCoordinator
from barnabas.broker.coordinators.transactions import make_transaction_coordinator
from barnabas.broker.fetching.sessions import FetchSessions
from barnabas.broker.fetching.turns import FetchTurns
from barnabas.broker.metrics.observed import Observed
from barnabas.broker.node.joining import METADATA_DIRECTORY, Membership
from barnabas.broker.node.life_watch import LifeWatch
from barnabas.broker.node.link_security import broker_links, controller_links
from barnabas.broker.quotas.quotas import Quotas
from barnabas.broker.requests.routes import CONTROLLER_ROUTES, ROUTES, announced
from barnabas.broker.requests.services import Services
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.topics import topic_settings
from barnabas.broker.share.leaders import ShareLeaders
from barnabas.broker.share.persister import Persister
from barnabas.coordinator.transactions.cluster_markers import ClusterMarkers
from barnabas.coordinator.transactions.markers import LocalMarkers
from barnabas.metadata.active_controller import ActiveController
from barnabas.metadata.bootstrap import bootstrap_records
from barnabas.metadata.formatted import formatted_records
from barnabas.metadata.loader import SnapshotRules
from barnabas.metadata.quorum_controller import QuorumController
from barnabas.raft.driver import RaftDriver
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from barnabas.replication.log_moves import LogMoves
from barnabas.replication.replicas import Replicas
from barnabas.storage.cleaner import Cleaner
from barnabas.storage.store import LogStore
from barnabas.world.timers import Timers
from barnabas.world.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a node stands on before any of its parts exist."""

    world: World
    timers: Timers
    settings: BrokerSettings
    store: LogStore
    observed: Observed
    membership: Membership
    broker_epoch: Callable[[], int]
    try_listeners: Callable[[BrokerSettings], Awaitable[None]]
    on_raft_failure: Callable[[Exception], None]

    @property
    def replica_key(self) -> ReplicaKey:
        """This node in the quorum: its id, and the directory that holds its metadata log."""
        return ReplicaKey(self.settings.node_id, self.store.directory_ids[self.settings.log_dirs[0]])


class Assembly:
    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        settings = ground.settings
        node_id = settings.node_id
        self.controller_links = controller_links(settings, ground.world.entropy)
        self.broker_links = broker_links(settings, ground.world.entropy)
        self.raft = self._make_raft()
        self.controller = self._make_controller()
        self.active = self._make_active()
        self.life_watch = LifeWatch(
            controller=self.controller,
            active=self.active,
            timers=ground.timers,
            node_id=node_id,
            listener_name=settings.cluster.inter_broker_listener_name,
        )
        self.replicas = Replicas(
            broker_id=node_id,
            store=ground.store,
            settings_of=lambda image, topic: topic_settings(image, topic, self.services.settings),
        )
        self.services = self._make_services()

    def found(self, endpoints: tuple[Endpoint, ...]) -> None:
        """The addresses are taken: tell the quorum where this controller is. Called before anything is started."""
        self.raft.local = Voter(self._ground.replica_key, endpoints)
        if self._ground.membership.is_founder:
            self.raft.initial_voters = VoterSet.of(self.raft.local)

    def _make_raft(self) -> RaftDriver:
        ground, cluster = self._ground, self._ground.settings.cluster
        return RaftDriver(
            ground.world,
            ground.timers,
            f"{ground.settings.log_dirs[0]}/{METADATA_DIRECTORY}",
            local=Voter(ground.replica_key),
            cluster_id=ground.membership.cluster_id,
            settings=cluster.raft,
            peers=SocketPeers(
                self.controller_links,
                listener_names=cluster.controller_listener_names,
            ),
            bootstrap_servers=[
                Endpoint(cluster.controller_listener_names[0], server.host, server.port)
                for server in cluster.bootstrap_servers
            ],
            on_failure=ground.on_raft_failure,
        )

    def _make_controller(self) -> QuorumController:
        settings = self._ground.settings
        controller = QuorumController(
            self.raft,
            node_id=settings.node_id,
            clock=self._ground.world.clock,
            bootstrap=bootstrap_records(
                min_insync_replicas=settings.topic_defaults.min_insync_replicas,
                extra=formatted_records(self._ground.world.disk, settings.log_dirs[0]),
            ),
            snapshots=SnapshotRules(
                size_bytes=settings.metadata_log_max_record_bytes_between_snapshots,
                interval_ms=settings.metadata_log_max_snapshot_interval_ms,
            ),
        )
        self.raft.listener = controller
        return controller

    def _make_active(self) -> ActiveController:
        ground, replication = self._ground, self._ground.settings.replication
        return ActiveController(
            self.controller,
            lambda: facts(self.services),
            clock=ground.world.clock,
            timers=ground.timers,
            session_timeout_ms=ground.settings.cluster.session_timeout_ms,
            rebalance_interval_ms=replication.rebalance_interval_ms if replication.is_rebalanced else 0,
            idle_interval_ms=ground.settings.cluster.idle_interval_ms,
        )

    def _make_services(self) -> Services:
        ground, settings, replicas = self._ground, self._ground.settings, self.replicas
        world, timers = ground.world, ground.timers
        producer_ids = ProducerIds(lambda: allocate_producer_ids(self.services, ground.broker_epoch()))
        markers = LocalMarkers(replicas, world.clock, self._append_to_offsets)
        share_state, persister = self._make_share_state()
        return Services(
            observed=ground.observed,
            quotas=Quotas(world.clock, settings.quotas),
            world=world,
            timers=timers,
            settings=settings,
            broker_id=settings.node_id,
            cluster_id=ground.membership.cluster_id,
            store=ground.store,
            cleaner=Cleaner(world, timers, ground.store, settings=lambda: self.services.settings.cleaner),
            log_moves=LogMoves(
                replicas,
                ground.store,
                clock=world.clock,
                timers=timers,
                bytes_per_second=lambda: self.services.settings.replication.move_bytes_per_second,
            ),
            raft=self.raft,
            controller=self.controller,
            active=self.active,
            controller_link=ControllerLink(
                node_id=settings.node_id,
                leader=lambda: self.raft.leader,
                local=lambda message: answer_own(self.services, message),
                links=self.controller_links,
                chance=world.entropy.below,
            ),
            replicas=replicas,
            fetch_turns=FetchTurns(),
            fetch_sessions=FetchSessions(
                world.clock, world.entropy, sessions_max=settings.max_incremental_fetch_session_cache_slots
            ),
            producer_ids=producer_ids,
            groups=Groups(
                replicas=replicas,
                links=self.broker_links,
                world=world,
                timers=timers,
                settings=lambda: self.services.settings,
            ),
            transactions=make_transaction_coordinator(
                world=world,
                timers=timers,
                replicas=replicas,
                settings=lambda: self.services.settings,
                next_producer_id=producer_ids.next,
                sender=ClusterMarkers(markers, replicas, self.broker_links),
            ),
            share_state=share_state,
            persister=persister,
            share_leaders=self._make_share_leaders(persister),
            markers=markers,
            broker_links=self.broker_links,
            life_watch=self.life_watch,
            authorizer=self._make_authorizer(),
            try_listeners=ground.try_listeners,
            served_versions=announced(ROUTES),
            controller_versions=announced(CONTROLLER_ROUTES),
            controller_routes=CONTROLLER_ROUTES,
        )

    def _make_share_state(self) -> tuple[ShareStateCoordinator, Persister]:
        ground = self._ground
        coordinator = ShareStateCoordinator(
            replicas=self.replicas,
            world=ground.world,
            timers=ground.timers,
            settings=lambda: self.services.settings,
        )
        persister = Persister(
            replicas=self.replicas,
            ask_local=coordinator.ask,
            links=self.broker_links,
            clock=ground.world.clock,
            timers=ground.timers,
            timeout_ms=lambda: self.services.settings.share_state.timeout_ms,
            create_topic=lambda name: create_missing(self.services, [name]),
        )
        return coordinator, persister

    def _make_share_leaders(self, persister: Persister) -> ShareLeaders:
        return ShareLeaders(
            replicas=self.replicas,
            persister=persister,
            clock=self._ground.world.clock,
            timers=self._ground.timers,
            settings_of=lambda group_id: self.services.groups.share_settings_of(group_id),
        )

    async def _append_to_offsets(self, index: int, batch: bytearray, transaction_version: int) -> None:
        await self.services.groups.runtime.append_marker(index, batch, transaction_version=transaction_version)

    def _make_authorizer(self) -> Authorizer | None:
        security = self._ground.settings.security
        if not security.has_authorizer:
            return None
        return Authorizer(
            lambda: self.replicas.image.security,
            super_users=security.super_users,
            is_open_without_rules=security.is_open_without_rules,
        )
