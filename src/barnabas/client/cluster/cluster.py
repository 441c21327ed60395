"""A client's way into a cluster: whom to ask, what is known of it, and when to ask again.

Metadata is asked for once and kept until an error says that it changed or it grows old. Producers, consumers and the
admin client share one cluster or have their own; bytes and connections are ``connections.py``'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self, TypeVar

from barnabas.client.cluster.connections import Connection
from barnabas.client.cluster.metadata import Broker, ClusterMetadata, TopicMetadata
from barnabas.client.errors import ClusterUnreachable, TimedOut
from barnabas.client.settings.client import Settings, address_of
from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError, error_of
from barnabas.model.ids import NO_BROKER, TopicPartition
from barnabas.transport.backoff import Backoff
from barnabas.transport.channel import PeerGone
from barnabas.transport.lane import retrieved
from barnabas.transport.versions import NO_LIMIT, Shaped
from barnabas.wire.message import Message
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from barnabas.client.cluster.tokens import Tokens
    from barnabas.world.world import World

R = TypeVar("R", bound=Message)
T = TypeVar("T")

MAIN_LANE: Final = "main"
BOOTSTRAP_ID: Final = -2  # configured addresses count down from here: nobody knows their real ids yet


class Cluster:
    def __init__(self, settings: Settings, *, world: World | None = None) -> None:
        self.settings = settings
        self._world = world
        self.metadata = ClusterMetadata()
        self._connections: dict[tuple[int, str], Connection] = {}
        self.fresh: dict[str, TopicMetadata] = {}  # the usable ones, while nothing has said that they changed
        self.coordinators: dict[tuple[int, str], int] = {}  # brokers by kind and key, see coordinators.py
        self._wanted: set[str] = set()
        self._is_stale = True
        self._time: Callable[[], float] = lambda: 0.0
        self._fresh_until = 0.0
        self._refreshing: asyncio.Task[None] | None = None
        self._turn = 0
        self._tokens: Tokens | None = None  # all connections share them

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def world(self) -> World:
        """The world that was given, or the real one, made when something is first asked of it."""
        if self._world is None:
            from barnabas.world.real import real_world

            self._world = real_world()
        return self._world

    def _chance(self, limit: int) -> int:
        return self.world.entropy.below(limit)

    async def open(self) -> None:
        """Reach the cluster once, or say at once why not; everything else dials by itself when needed."""
        await self.refresh()

    async def close(self) -> None:
        if self._refreshing is not None and not self._refreshing.done():
            self._refreshing.cancel()
            await asyncio.wait([self._refreshing])
        connections, self._connections = list(self._connections.values()), {}
        for connection in connections:
            await connection.close()

    # --- whom to ask ----------------------------------------------------------------------------------------------

    async def call(
        self,
        broker: int,
        message: Message | Shaped,
        response: type[R],
        *,
        lane: str = MAIN_LANE,
        timeout_ms: int | None = None,
        version_max: int = NO_LIMIT,
    ) -> R:
        """Ask one broker once."""
        connection = self.connection(broker, lane)
        return await connection.call(message, response, timeout_ms=timeout_ms, version_max=version_max)

    async def call_any(self, message: Message | Shaped, response: type[R], *, timeout_ms: int | None = None) -> R:
        """Ask whoever answers, those with an open connection first; the configured addresses come last."""
        reasons: list[BarnabasError] = []
        for broker in self._candidates():
            try:
                return await self.call(broker, message, response, timeout_ms=timeout_ms)
            except (PeerGone, TimedOut) as error:
                reasons.append(error)
        raise ClusterUnreachable(reasons)

    async def call_controller(self, message: Message, response: type[R], *, timeout_ms: int | None = None) -> R:
        """Ask the controller, or the broker that stands for it."""
        if self._is_stale or self.metadata.controller_id not in self.metadata.brokers:
            await self.refresh()
        controller_id = self.metadata.controller_id
        if controller_id not in self.metadata.brokers:
            raise ApiError(errors.COORDINATOR_NOT_AVAILABLE, "The cluster has no controller at the moment.")
        return await self.call(controller_id, message, response, timeout_ms=timeout_ms)

    def connection(self, broker: int, lane: str = MAIN_LANE) -> Connection:
        connection = self._connections.get((broker, lane))
        if connection is None:
            host, port = self._address(broker)
            if self._tokens is None and self.settings.sasl_mechanism == "OAUTHBEARER":
                from barnabas.client.cluster.tokens import Tokens

                self._tokens = Tokens(self.settings)
            connection = Connection(host, port, settings=self.settings, chance=self._chance, tokens=self._tokens)
            self._connections[broker, lane] = connection
        return connection

    def _address(self, broker: int) -> tuple[str, int]:
        if broker <= BOOTSTRAP_ID:
            return address_of(self.settings.bootstrap_servers[BOOTSTRAP_ID - broker])
        known = self.metadata.brokers.get(broker)
        if known is None:
            raise ApiError(errors.LEADER_NOT_AVAILABLE, f"Broker {broker} is not in the cluster at the moment.")
        return known.host, known.port

    def _candidates(self) -> list[int]:
        known = sorted(self.metadata.brokers)
        self._turn += 1
        turn = self._turn % len(known) if known else 0
        known = known[turn:] + known[:turn]
        known.sort(key=lambda broker: not self._is_connected(broker))
        if known and not self._recovers:
            return known
        return known + [BOOTSTRAP_ID - index for index in range(len(self.settings.bootstrap_servers))]

    @property
    def _recovers(self) -> bool:
        """From brokers that are all gone, by the configured addresses."""
        return self.settings.metadata_recovery_strategy == "rebootstrap"

    def _is_connected(self, broker: int) -> bool:
        connection = self._connections.get((broker, MAIN_LANE))
        return connection is not None and connection.is_open

    # --- what is known --------------------------------------------------------------------------------------------

    def invalidate(self) -> None:
        """An answer said that the picture is out of date."""
        self._is_stale = True
        self._renew({})

    async def topic(self, name: str, *, auto_create: bool = False, timeout_ms: int | None = None) -> TopicMetadata:
        """What is known of a topic; asks until the cluster knows it and every partition has been led."""
        known = self.known_topic(name)
        if known is not None:
            return known
        self._wanted.add(name)

        async def ask() -> TopicMetadata:
            await self.refresh(auto_create=auto_create)
            topic = self.metadata.topics.get(name)
            if topic is None:
                raise ApiError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
            if not topic.is_usable:
                raise ApiError(topic.error, _why(topic))
            return topic

        try:
            return await self.retrying(ask, timeout_ms=timeout_ms)
        except BarnabasError:
            self._wanted.discard(name)  # or a name that nobody may use would be asked for ever after
            raise

    async def look_up(self, names: Iterable[str], *, auto_create: bool = False) -> dict[str, TopicMetadata]:
        """Those of the topics that exist; asks once if one is not known, or what is known is out of date."""
        wanted = sorted(names)
        self._wanted.update(wanted)
        if any(self.known_topic(name) is None for name in wanted):
            await self.refresh(auto_create=auto_create)
        topics = self.metadata.topics
        return {name: topics[name] for name in wanted if name in topics and topics[name].is_usable}

    def known_topic(self, name: str) -> TopicMetadata | None:
        """What is known of a topic without asking; None if that would be out of date."""
        topic = self.metadata.topics.get(name)
        if topic is None or not topic.is_usable or self._is_stale or self._has_aged():
            return None
        return topic

    def leader_of(self, partition: TopicPartition) -> int | None:
        """The leader as far as known; None means ask for the topic again."""
        topic = self.known_topic(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        leader = topic.partitions[partition.partition].leader
        return leader if leader != NO_BROKER and leader in self.metadata.brokers else None

    async def all_topics(self) -> tuple[TopicMetadata, ...]:
        """Every topic of the cluster, asked for now."""
        response = await self.call_any(MetadataRequest(topics=None, allow_auto_topic_creation=False), MetadataResponse)
        self._learn(response)
        return tuple(sorted(ClusterMetadata().updated(response).topics.values()))

    async def refresh(self, *, auto_create: bool = False) -> None:
        """Ask for the cluster and the topics in use; those who ask while an answer is under way share it."""
        running = self._refreshing
        if running is not None and not running.done():
            await asyncio.shield(running)
            if not auto_create and not self._is_stale and self._wanted <= self.metadata.topics.keys():
                return
        task = asyncio.get_running_loop().create_task(self._ask(auto_create=auto_create), name="metadata")
        task.add_done_callback(retrieved)
        self._refreshing = task
        await asyncio.shield(task)

    async def _ask(self, *, auto_create: bool) -> None:
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in sorted(self._wanted)],
            allow_auto_topic_creation=auto_create,
        )
        response = await self.call_any(request, MetadataResponse)
        if response.error_code == errors.REBOOTSTRAP_REQUIRED.code and self._recovers:  # KIP-1102
            self._adopt(replace(self.metadata, brokers={}))  # only the configured addresses are left
            response = await self.call_any(request, MetadataResponse)
        if response.error_code != errors.NONE.code:
            raise ApiError(error_of(response.error_code))
        self._is_stale = False
        self._learn(response)
        self._time = asyncio.get_running_loop().time  # it is asked for every record that is sent
        self._fresh_until = self._time() + self.settings.metadata_max_age_ms / 1000

    def learn_leaders(self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Broker]) -> None:
        """What a broker that no longer leads says of who does (KIP-951): nobody needs to be asked then."""
        metadata = self.metadata.led_by(leaders, nodes)
        if metadata is not self.metadata:
            self._adopt(metadata)

    def _learn(self, response: MetadataResponse) -> None:
        self._adopt(self.metadata.updated(response))

    def _adopt(self, metadata: ClusterMetadata) -> None:
        self.metadata = metadata
        if not self._is_stale:
            self._renew({name: topic for name, topic in self.metadata.topics.items() if topic.is_usable})
        for key, connection in list(self._connections.items()):
            broker = self.metadata.brokers.get(key[0])
            if key[0] > BOOTSTRAP_ID and (broker is None or (broker.host, broker.port) != _end(connection)):
                connection.drop()
                del self._connections[key]

    def _has_aged(self) -> bool:
        return self._time() >= self._fresh_until

    # --- when to ask again ----------------------------------------------------------------------------------------

    def backoff(self) -> Backoff:
        return Backoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms, self._chance)

    async def retrying(self, attempt: Callable[[], Awaitable[T]], *, timeout_ms: int | None = None) -> T:
        """Call until it succeeds, fails for good, or the time is up; then the last reason is what is raised."""
        loop = asyncio.get_running_loop()
        timeout_ms = self.settings.default_api_timeout_ms if timeout_ms is None else timeout_ms
        deadline = loop.time() + timeout_ms / 1000
        backoff = self.backoff()
        while True:
            try:
                return await attempt()
            except BarnabasError as error:
                if not error.retriable:
                    raise
                self.invalidate()
                pause = backoff.next_ms() / 1000
                if loop.time() + pause >= deadline:
                    raise
            await asyncio.sleep(pause)

    def forget(self, topics: Iterable[str]) -> None:
        """These topics are no longer of interest, or are known to be gone."""
        gone = frozenset(topics)
        for topic in sorted(gone):
            self._wanted.discard(topic)
            self.metadata = self.metadata.without(topic)
        self._renew({name: entry for name, entry in self.fresh.items() if name not in gone})

    def _renew(self, fresh: dict[str, TopicMetadata]) -> None:
        """Whoever has decided something by what was known before finds it empty."""
        before, self.fresh = self.fresh, fresh
        before.clear()


def _end(connection: Connection) -> tuple[str, int]:
    return connection.host, connection.port


def _why(topic: TopicMetadata) -> str:
    if topic.error is errors.UNKNOWN_TOPIC_OR_PARTITION:
        return f"There is no topic {topic.name!r}."
    return f"Topic {topic.name!r}: {topic.error.text}"
