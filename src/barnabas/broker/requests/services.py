"""The parts of a running broker that handlers may use; the node fills it in, the handlers only read it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from barnabas.broker.access.authorizer import Authorizer
from barnabas.broker.controller.link import ControllerLink
from barnabas.broker.controller.producer_ids import ProducerIds
from barnabas.broker.coordinators.groups import Groups
from barnabas.broker.coordinators.share_state import ShareStateCoordinator
from barnabas.broker.fetching.sessions import FetchSessions
from barnabas.broker.fetching.turns import FetchTurns
from barnabas.broker.metrics.observed import Observed
from barnabas.broker.node.life_watch import LifeWatch
from barnabas.broker.quotas.quotas import Quotas
from barnabas.broker.requests.api import Route
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.share.leaders import ShareLeaders
from barnabas.broker.share.persister import Persister
from barnabas.broker.share.sessions import ShareSessions
from barnabas.coordinator.transactions.coordinator import TransactionCoordinator
from barnabas.coordinator.transactions.markers import LocalMarkers
from barnabas.metadata.active_controller import ActiveController
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.quorum_controller import QuorumController
from barnabas.raft.driver import RaftDriver
from barnabas.replication.log_moves import LogMoves
from barnabas.replication.replicas import Replicas
from barnabas.storage.cleaner import Cleaner
from barnabas.storage.store import LogStore
from barnabas.transport.connection import Connection
from barnabas.transport.links import Links
from barnabas.wire.api import ApiKey
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timers
from barnabas.world.turns import Turns
from barnabas.world.world import World


@dataclass(slots=True, kw_only=True, eq=False)
class Services:
    world: World
    timers: Timers
    tasks: Tasks = field(default_factory=Tasks)  # work of handlers that outlives its connection
    settings: BrokerSettings
    broker_id: int
    cluster_id: str
    store: LogStore
    cleaner: Cleaner
    log_moves: LogMoves
    raft: RaftDriver
    controller: QuorumController
    active: ActiveController  # sessions of brokers, while this node is the active controller
    controller_link: ControllerLink  # requests to the active controller, wherever it is
    replicas: Replicas
    fetch_sessions: FetchSessions
    fetch_turns: FetchTurns
    producer_ids: ProducerIds
    groups: Groups
    transactions: TransactionCoordinator
    share_state: ShareStateCoordinator
    persister: Persister  # calls of the share coordinator, wherever it is
    share_leaders: ShareLeaders
    share_sessions: ShareSessions = field(default_factory=ShareSessions)
    markers: LocalMarkers
    broker_links: Links  # to the other brokers of the cluster
    observed: Observed  # whoever has numbers to show adds a source to its metrics
    quotas: Quotas
    life_watch: LifeWatch | None = None  # on a controller
    authorizer: Authorizer | None = None  # without one everybody may do everything

    try_listeners: Callable[[BrokerSettings], Awaitable[None]]  # InvalidSetting if they could not be opened here

    served_versions: tuple[tuple[ApiKey, int, int], ...]  # what ApiVersions announces to clients
    controller_versions: tuple[tuple[ApiKey, int, int], ...] = ()  # and on the controller's listeners
    controller_routes: Mapping[int, Route]  # what the controller's listeners serve
    turns: Turns = field(init=False)  # of requests that take longer than one turn of the loop may be

    def __post_init__(self) -> None:
        self.turns = Turns(self.world.clock)

    @property
    def image(self) -> ClusterImage:
        return self.replicas.image

    def is_for_controllers(self, connection: Connection) -> bool:
        return self.settings.cluster.is_for_controllers(connection.listener_name)

    def endpoint_of(self, node_id: int, connection: Connection) -> tuple[str, int, str | None] | None:
        """Host, port and rack of a broker, under the listener that the client used; None if it has none there.

        A broker that was not told what to advertise answers with the address on which the client found it.
        """
        node = self.image.brokers.get(node_id)
        end_point = node.end_point(connection.listener_name) if node is not None else None
        if node is None or end_point is None:
            return None
        if node_id == self.broker_id and self.settings.advertised_listeners is None:
            return connection.local[0], connection.local[1], node.rack
        return end_point.host, end_point.port, node.rack
