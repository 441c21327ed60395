"""What happens to a whole cluster in virtual time, from a seed: brokers crash, freeze, lose power, disks, each other.

A story starts three brokers, lets its programs live on them while there is trouble, one fault at a time, and looks at
the invariants after every event on a node: nothing can change on a node but by what runs on it. What the programs do,
and what must be true of it afterwards, is said by who tells it.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Literal

from barnabas.broker.node.node import Node
from barnabas.client.admin.client import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.consumer import Consumer
from barnabas.client.offsets import LATEST_TIMESTAMP, ListedOffset
from barnabas.client.producer import Delivery, Producer
from barnabas.client.settings.client import Settings
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.testing.hosts import Host
from barnabas.testing.invariants import BrokenInvariant, Invariants, differences
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.simulated_cluster import CLIENTS, SimulatedCluster
from barnabas.testing.world import simulated_world

TOPIC = "orders"
PARTITIONS = 3
REPLICAS = 3
ASK_SECONDS = 0.2
ONLOOKER_MS_MAX = 1000
TROUBLE_SECONDS = 10.0
CALM_SECONDS_MAX = 120.0
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "3000",
    "log.segment.bytes": str(1 << 20),
}


Fault = Callable[[int], Awaitable[None]]


class Writer:
    """Sends numbered records to one partition after the other and remembers where each was acknowledged."""

    def __init__(self, name: str, chance: Random) -> None:
        self.name = name
        self.chance = chance
        self.acknowledged: dict[bytes, tuple[int, int]] = {}  # value: partition, offset
        self.sent: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        self.is_over = False

    async def run(self, producer: Producer) -> None:
        count = 0
        waiting: set[asyncio.Task[None]] = set()
        while not self.is_over:
            partition = self.chance.randrange(PARTITIONS)
            value = f"{self.name}/{count}".encode() + b"." * self.chance.choice((0, 100, 2000))
            count += 1
            self.sent[partition].append(value)
            try:
                delivery = await producer.send_soon(TOPIC, value, partition=partition)
            except BarnabasError:
                continue  # it was never taken
            task = asyncio.create_task(self._wait(delivery, partition, value))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
            await asyncio.sleep(self.chance.uniform(0, 0.2))
        await asyncio.gather(*waiting)

    async def _wait(self, delivery: Delivery, partition: int, value: bytes) -> None:
        try:
            metadata = await delivery
        except BarnabasError:
            return  # not acknowledged: it may or may not be there
        self.acknowledged[value] = (partition, metadata.offset)


class Onlooker:
    """Asks all the while where partitions end, for both levels of isolation. To a client that never goes back.

    A leader that has been deposed and does not know it yet may say less: clients tell its answer by its epoch.
    """

    def __init__(self) -> None:
        self.told: dict[tuple[TopicPartition, str], ListedOffset] = {}

    async def run(self, admin: Admin, topics: Sequence[str]) -> None:
        places = [TopicPartition(topic, partition) for topic in topics for partition in range(PARTITIONS)]
        await asyncio.gather(*(self.ask(admin, place) for place in places))

    async def ask(self, admin: Admin, place: TopicPartition) -> None:
        while True:
            for level in ("read_uncommitted", "read_committed"):
                await asyncio.sleep(ASK_SECONDS)
                try:
                    listed = await admin.list_offsets({place: LATEST_TIMESTAMP}, isolation_level=level)
                except BarnabasError:
                    continue
                self.hear(place, level, listed[place])

    def hear(self, place: TopicPartition, level: str, now: ListedOffset) -> None:
        before = self.told.setdefault((place, level), now)
        if now.leader_epoch >= before.leader_epoch:
            if now.offset < before.offset:
                raise BrokenInvariant(f"a client was told that {place} ends at {before}, and then at {now}, {level}")
            self.told[place, level] = now


class Story(ABC):
    topics: Sequence[str] = (TOPIC,)

    def __init__(
        self,
        seed: int,
        *,
        loses_power: bool = False,
        loses_all: bool = False,
        loses_disks: bool = False,
        is_flushed: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """``is_flushed``: an acknowledgement waits for the disks of all in-sync replicas; ``loses_all``: at once."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.loop = loop
        self.seed = seed
        self.chance = Random(f"story/{seed}")
        self.loses_power = loses_power
        self.loses_all = loses_all
        self.loses_disks = loses_disks
        self.is_flushed = is_flushed
        self.cluster = SimulatedCluster(seed, settings={**SETTINGS, **(settings or {})})
        self.world = simulated_world(loop, f"{CLIENTS}/{seed}")
        self.invariants = Invariants()
        self.onlooker = Onlooker()
        self.numbers = {host: number for number, host in self.cluster.hosts.items()}
        self.faults: list[str] = []
        self.disks_lost = 0

    @abstractmethod
    async def live(self) -> None:
        """Run the programs, call :meth:`trouble` and :meth:`calm` meanwhile, and judge what came of it."""

    async def run(self) -> None:
        self.loop.after_event = self.look
        try:
            await self.cluster.start_all()
            onlooking = asyncio.create_task(self.look_on())
            await self.live()
            onlooking.cancel()
            with suppress(asyncio.CancelledError):
                await onlooking
            assert self.onlooker.told, "nobody was told where any partition ends"
        finally:
            self.loop.after_event = None
        await self.cluster.stop_all()

    async def look_on(self) -> None:
        # A host that dies while it is being dialled says nothing: who looks on does not wait long for it.
        settings = Settings(
            bootstrap_servers=self.cluster.bootstrap_servers,
            socket_connection_setup_timeout_ms=ONLOOKER_MS_MAX,
            request_timeout_ms=ONLOOKER_MS_MAX,
        )
        async with Admin(settings, world=self.world) as admin:
            await self.onlooker.run(admin, self.topics)

    def look(self, host: Host | None) -> None:
        """What happened on a host may have changed its own node and no other."""
        number = self.numbers.get(host.name) if host is not None else None
        if number in self.cluster.nodes:
            try:
                self.invariants.look(number, self.cluster.nodes[number])
            except BrokenInvariant:
                self.loop.after_event = None  # the story ends here; what is left of it is taken down
                raise

    async def create_topic(self, name: str = TOPIC) -> None:
        configs = {"min.insync.replicas": "2"}
        if self.is_flushed:
            configs["flush.messages"] = "1"
        async with Admin(Settings(bootstrap_servers=self.cluster.bootstrap_servers), world=self.world) as admin:
            await admin.create_topic(NewTopic(name, PARTITIONS, replication_factor=REPLICAS, configs=configs))

    async def write(self, writer: Writer, acks: Literal[1, -1] = -1) -> None:
        settings = ProducerSettings(
            bootstrap_servers=self.cluster.bootstrap_servers,
            acks=acks,
            enable_idempotence=acks == -1,
            linger_ms=0,
            request_timeout_ms=2000,
            delivery_timeout_ms=200_000,
        )
        async with Producer(settings, world=self.world) as producer:
            await writer.run(producer)

    # --- trouble --------------------------------------------------------------------------------------------------

    async def trouble(self) -> None:
        end = self.loop.time() + TROUBLE_SECONDS
        while self.loop.time() < end:
            await asyncio.sleep(self.chance.uniform(0.1, 3.0))
            number = self.chance.choice(sorted(self.cluster.hosts))
            fault = self.chance.choice(self.possible_faults())
            self.faults.append(f"{self.loop.time():.3f} {fault.__name__} {number}")
            await fault(number)

    def possible_faults(self) -> list[Fault]:
        faults = [self.crash, self.crash, self.freeze, self.cut, self.slow, self.skew, self.restart]
        faults += [self.crash_all] * 2 * self.loses_all
        return faults + [self.lose_disk] * 3 * self.loses_disks

    def can_lose(self) -> bool:
        """One at a time: what two of three can lose at once is another promise.

        Without a flush a power cut takes the tail of a log with it, and a lost disk takes all of it, so the others must
        have it: the next loss comes only when all are in sync again.
        """
        if self.loses_disks or (self.loses_power and not self.is_flushed):
            return self.is_whole()
        return len(self.cluster.nodes) == len(self.cluster.hosts)

    async def crash(self, number: int) -> None:
        if self.can_lose():
            self.cluster.kill(number, loses_power=self.loses_power and self.chance.random() < 0.5)
            await asyncio.sleep(self.chance.choice((0.0, 0.5, 5.0)))
            self.cluster.begin(number)

    async def crash_all(self, number: int) -> None:
        """Also while some of them are on their way up: all go at once, and come back in any order."""
        for each in sorted(self.cluster.nodes):
            self.cluster.kill(each, loses_power=self.loses_power)
        for each in self.chance.sample(sorted(self.cluster.hosts), len(self.cluster.hosts)):
            await asyncio.sleep(self.chance.choice((0.0, 0.5, 5.0)))
            self.cluster.begin(each)

    async def lose_disk(self, number: int) -> None:
        """It comes back as new and has to fetch everything again."""
        if self.can_lose():
            self.disks_lost += 1
            self.cluster.lose_disk(number)
            await asyncio.sleep(self.chance.choice((0.0, 0.5, 5.0)))
            self.cluster.begin(number)

    async def restart(self, number: int) -> None:
        if self.can_lose() and self.cluster.is_serving(number):
            await self.cluster.stop(number)
            self.cluster.begin(number)

    async def freeze(self, number: int) -> None:
        self.cluster.pause(number)
        await asyncio.sleep(self.chance.choice((0.2, 2.0, 6.0)))
        self.cluster.resume(number)

    async def cut(self, number: int) -> None:
        self.cluster.cut_off(number, one_way=self.chance.random() < 0.3)
        await asyncio.sleep(self.chance.choice((0.2, 2.0, 6.0)))
        self.cluster.heal()

    async def slow(self, number: int) -> None:
        other = self.chance.choice([each for each in sorted(self.cluster.hosts) if each != number])
        delay_ms = self.chance.choice((50, 500, 3000))
        self.cluster.slow(number, other, delay_ms=delay_ms, one_way=self.chance.random() < 0.5)
        await asyncio.sleep(self.chance.choice((2.0, 6.0)))
        self.cluster.heal()

    async def skew(self, number: int) -> None:
        self.cluster.clock(number).wall_skew_ms = self.chance.choice((-3_600_000, -1000, 0, 1000, 3_600_000))

    # --- afterwards -----------------------------------------------------------------------------------------------

    async def calm(self) -> None:
        """Everything is healed; wait until every replica is in sync again."""
        self.cluster.heal()
        for number in self.cluster.hosts:
            self.cluster.resume(number)
        end = self.loop.time() + CALM_SECONDS_MAX
        while not self.is_whole():
            if self.loop.time() > end:
                raise AssertionError(f"the cluster did not recover: {self.describe()}")
            await asyncio.sleep(0.1)

    def is_whole(self) -> bool:
        nodes = self.cluster.nodes
        if len(nodes) < len(self.cluster.hosts) or not all(hasattr(node, "services") for node in nodes.values()):
            return False
        for node in nodes.values():
            topics = node.services.image.topics.by_name
            states = [state for topic in topics.values() for state in topic.partitions]
            if TOPIC not in topics or any(len(state.isr) < REPLICAS or state.leader < 0 for state in states):
                return False
            if len(list(node.services.replicas)) < len(states):
                return False
            if not self.is_quorum_whole(node):
                return False
        return True

    def is_quorum_whole(self, node: Node) -> bool:
        """Every node votes, under the directory that it has now."""
        voters = {voter.key for voter in node.services.raft.voters.voters}
        return voters == {each.services.raft.local.key for each in self.cluster.nodes.values()}

    def describe(self) -> str:
        lines = list(self.faults)
        for number, node in sorted(self.cluster.nodes.items()):
            if not hasattr(node, "services"):
                lines.append(f"node {number}: not started")
                continue
            topic = node.services.image.topics.by_name.get(TOPIC)
            states = [(s.leader, s.leader_epoch, s.isr) for s in topic.partitions] if topic else "no topic"
            lines.append(f"node {number}: quorum {node.services.raft.leader}, {states}")
        return "\n".join(lines)

    async def until_alike(self) -> None:
        end = self.loop.time() + CALM_SECONDS_MAX
        while found := differences(self.cluster.nodes):
            if self.loop.time() > end:
                raise AssertionError("\n".join(found))
            await asyncio.sleep(0.1)

    async def read_all(self, topic: str = TOPIC) -> dict[int, dict[int, bytes]]:
        """What was committed, by partition and offset."""
        partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        found: dict[int, dict[int, bytes]] = {partition: {} for partition in range(PARTITIONS)}
        settings = ConsumerSettings(
            bootstrap_servers=self.cluster.bootstrap_servers,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        async with Consumer(settings, world=self.world) as consumer:
            await consumer.assign(partitions, until_end=True)
            while not consumer.is_at_end:
                for record in await consumer.poll(timeout_ms=1000):
                    found[record.partition][record.offset] = record.value or b""
        return found


def tell(seed: int, make: Callable[[], Story], replay: str) -> str:
    """The whole story; its trace, of which the same seed gives the same."""
    stories: list[Story] = []

    async def main() -> str:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        stories.append(make())
        await loop.start_on(CLIENTS, stories[0].run())
        return loop.trace_hash()

    try:
        return simulate(main, seed=seed, time_s_max=3600)
    except BaseException as error:
        described = "\n".join(story.describe() for story in stories)
        error.add_note(f"BARNABAS_SIM_SEED={seed} pytest {replay}\n{described}")
        raise
