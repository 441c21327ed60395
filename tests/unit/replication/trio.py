"""Three brokers' replicas of one topic on a simulated loop, with links in memory and a controller that is a variable.

The partitions, fetchers, fetch handler and the decision on AlterPartition are the production code; elections are made
by the test. A link encodes and decodes what it carries, and can be cut, slow or reordering.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any, Self, cast

from barnabas.broker.fetching.sessions import FetchSessions
from barnabas.broker.fetching.turns import FetchTurns
from barnabas.broker.handlers import delete_records, fetch, list_offsets
from barnabas.broker.requests.request import Deferred, Request
from barnabas.broker.settings.broker import BROKER_SETTINGS, BrokerSettings
from barnabas.metadata.alter_partition import alter_partition
from barnabas.metadata.bootstrap import bootstrap_records
from barnabas.metadata.config_schema import ConfigSchema
from barnabas.metadata.decision import Facts
from barnabas.metadata.image import EMPTY, ClusterImage
from barnabas.metadata.image_builder import ImageBuilder
from barnabas.metadata.image_difference import difference
from barnabas.metadata.partition_image import PartitionImage
from barnabas.metadata.records import (
    ConfigRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    UnfenceBrokerRecord,
)
from barnabas.model.ids import Uuid
from barnabas.observe.traffic import Traffic
from barnabas.replication.partition import Partition
from barnabas.replication.replicas import Replicas
from barnabas.replication.replication import Replication
from barnabas.storage.settings import TopicSettings
from barnabas.storage.store import LogStore
from barnabas.storage.validate import Origin, Rules, validate
from barnabas.testing.loop import SimulatedLoop
from barnabas.testing.world import simulated_world
from barnabas.transport.channel import PeerGone
from barnabas.wire.api import ApiKey
from barnabas.wire.batch import iterate
from barnabas.wire.frame import decode_request_header, decode_response, encode_request
from barnabas.wire.message import Message, decode
from barnabas.wire.messages import request_of, response_of
from barnabas.wire.messages.alter_partition import AlterPartitionRequest
from barnabas.wire.records import encode_batch
from barnabas.world.disk import FileSlice
from barnabas.world.memory import MemoryDisk
from barnabas.world.timers import Timers

TOPIC = "t"
TOPIC_ID = Uuid(bytes(range(16)))
VERSIONS = {ApiKey.FETCH: 18, ApiKey.LIST_OFFSETS: 11}
HANDLERS: dict[ApiKey, Callable[[Request, Any], Any]] = {
    ApiKey.FETCH: fetch.handle,
    ApiKey.LIST_OFFSETS: list_offsets.handle,
    ApiKey.DELETE_RECORDS: delete_records.handle,
}


def directory(broker_id: int) -> Uuid:
    return Uuid((1000 + broker_id).to_bytes(16))


class Broker:
    """One broker's storage and replication; ``life`` is what dies with its process."""

    def __init__(self, trio: Trio, broker_id: int) -> None:
        self.trio = trio
        self.id = broker_id
        self.world = simulated_world(trio.loop, f"{trio.seed}/{broker_id}")
        self.disk.make_directory("/data")
        self.disk.sync_all()
        self.epoch = 0
        self.is_alive = False

    @property
    def disk(self) -> MemoryDisk:
        assert isinstance(self.world.disk, MemoryDisk)
        return self.world.disk

    async def start(self) -> None:
        trio = self.trio
        self.timers = Timers(self.world.clock)
        self.store = await LogStore.open(
            self.world,
            self.timers,
            ["/data"],
            node_id=self.id,
            cluster_id="c",
            defaults=trio.topic_settings,
            settings_of=lambda topic: trio.topic_settings,
        )
        self.replicas = Replicas(
            broker_id=self.id, store=self.store, settings_of=lambda image, topic: trio.topic_settings
        )
        self.replication = Replication(
            self.replicas,
            clock=self.world.clock,
            timers=self.timers,
            links=Link(trio, self),
            ask=lambda message, timeout_ms: trio.ask(self, message),
            broker_epoch=lambda: self.epoch,
            settings=lambda: trio.settings.replication,
            on_failure=trio.failures.append,
        )
        self.fetch_sessions = FetchSessions(self.world.clock, self.world.entropy, sessions_max=100)
        self.is_alive = True
        self.seen = EMPTY
        self.see()
        await self.replicas.caught_up(trio.image.offset)
        self.replication.start()

    def see(self) -> None:
        """Hear what the controller has decided, if it is in reach."""
        image = self.trio.image
        if self.is_alive and self.seen is not image and (0, self.id) not in self.trio.cuts:
            self.replicas.on_image(difference(self.seen, image), image)
            self.seen = image

    async def stop(self, *, loses_power: bool = False) -> None:
        """The process is gone, and with the power what was not synced."""
        self.is_alive = False
        await self.replication.stop()
        await self.replicas.stop()
        await self.store.close(clean=False)
        self.timers.close()
        if loses_power:
            self.disk.crash(self.trio.entropy)
        else:
            self.disk.kill()

    # --- what the handlers ask a broker's services for ---

    @property
    def services(self) -> Any:
        return SimpleNamespace(
            replicas=self.replicas,
            image=self.replicas.image,
            fetch_sessions=self.fetch_sessions,
            fetch_turns=FetchTurns(),
            settings=self.trio.settings,
            world=self.world,
            timers=self.timers,
            observed=SimpleNamespace(strays=Traffic()),
            endpoint_of=lambda broker_id, connection: None,
        )

    @property
    def partition(self) -> Partition:
        return self.replicas.by_id[TOPIC_ID, 0]


class Link:
    """From one broker to the others, in memory."""

    def __init__(self, trio: Trio, source: Broker) -> None:
        self._trio = trio
        self._source = source

    async def send(self, node_id: int, request: Message, *, lane: str, timeout_ms: int) -> Message:
        trio, target = self._trio, self._trio.brokers[node_id]
        assert request.api_key is not None
        version = VERSIONS[request.api_key]
        frame = b"".join(cast("list[bytes]", encode_request(request, version, correlation_id=1, client_id="c")))[4:]
        async with asyncio.timeout(timeout_ms / 1000):
            await trio.travel(self._source.id, node_id)
            life = target.replicas
            answer = await answer_of(target, frame, request.api_key)
            if target.replicas is not life or not target.is_alive:
                raise PeerGone("it died")
            await trio.travel(node_id, self._source.id)
        return answer


async def answer_of(broker: Broker, frame: bytes, api_key: ApiKey) -> Message:
    """Through the codecs and the handler, and back."""
    header, position = decode_request_header(frame)
    request = Request(broker.services, cast(Any, None), header)
    message = decode(request_of(api_key), header.api_version, frame, position)
    answer = HANDLERS[api_key](request, message)
    parts = await answer.future if isinstance(answer, Deferred) else request.encode(answer)
    data = b"".join(
        part.file.read(part.position, part.size_bytes) if isinstance(part, FileSlice) else bytes(part)
        for part in parts or ()
    )
    return decode_response(response_of(api_key), header.api_version, data[4:])[1]


class Trio:
    def __init__(
        self, seed: int = 0, *, brokers: int = 3, settings: dict[str, str] | None = None, **topic: Any
    ) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.loop = loop
        self.seed = seed
        self.random = Random(seed)
        self.entropy = simulated_world(loop, f"entropy/{seed}").entropy
        self.settings = BrokerSettings.of(settings or {})
        self.topic_settings = TopicSettings(**{"min_insync_replicas": 2, **topic})
        self.failures: list[BaseException] = []
        self.cuts: set[tuple[int, int]] = set()
        self.delay_ms_max = 0
        self.is_controller_deaf = False
        self.epochs = 1000
        self.image = _image(
            EMPTY,
            [
                *bootstrap_records(min_insync_replicas=self.topic_settings.min_insync_replicas),
                TopicRecord(name=TOPIC, topic_id=TOPIC_ID),
                ConfigRecord(
                    resource_type=2,
                    resource_name=TOPIC,
                    name="min.insync.replicas",
                    value=str(self.topic_settings.min_insync_replicas),
                ),
            ],
        )
        self.brokers = {number: Broker(self, number) for number in range(1, brokers + 1)}
        ids = list(self.brokers)
        for broker in self.brokers.values():
            self.register(broker)
        self.image = _image(
            self.image,
            [
                PartitionRecord(
                    partition_id=0,
                    topic_id=TOPIC_ID,
                    replicas=ids,
                    isr=ids,
                    leader=1,
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=[directory(number) for number in ids],
                )
            ],
        )

    async def __aenter__(self) -> Self:
        for broker in self.brokers.values():
            await broker.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        for broker in self.brokers.values():
            if broker.is_alive:
                await broker.stop()
        assert self.failures == [] or failure[0] is not None

    # --- the controller -------------------------------------------------------------------------------------------

    def commit(self, *records: Message) -> None:
        """Write records and tell every broker that is alive and in reach of the controller."""
        builder = ImageBuilder(self.image)
        for offset, record in enumerate(records, self.image.offset + 1):
            builder.apply(record, offset)
        self.image = builder.build(epoch=1)
        for broker in self.brokers.values():
            if self.delay_ms_max:
                self.loop.call_later(self.random.randrange(self.delay_ms_max * 1000) / 1_000_000, broker.see)
            else:
                broker.see()

    def register(self, broker: Broker, *, rack: str | None = None) -> None:
        self.epochs += 1
        broker.epoch = self.epochs
        self.commit(
            RegisterBrokerRecord(
                broker_id=broker.id,
                incarnation_id=Uuid(self.epochs.to_bytes(16)),
                broker_epoch=broker.epoch,
                end_points=[],
                rack=rack,
                log_dirs=[directory(broker.id)],
                fenced=True,
            ),
            UnfenceBrokerRecord(id=broker.id, epoch=broker.epoch),
        )

    def fence(self, broker: Broker) -> None:
        self.commit(FenceBrokerRecord(id=broker.id, epoch=broker.epoch))

    @property
    def state(self) -> PartitionImage:
        return self.image.topics.by_id[TOPIC_ID].partitions[0]

    @property
    def isr(self) -> list[int]:
        return sorted(self.state.isr)

    def add_partition(self, index: int, *, leader: int) -> None:
        ids = list(self.brokers)
        self.commit(
            PartitionRecord(
                partition_id=index,
                topic_id=TOPIC_ID,
                replicas=ids,
                isr=ids,
                leader=leader,
                leader_epoch=0,
                partition_epoch=0,
                directories=[directory(number) for number in ids],
            )
        )

    def change(self, *, leader: int | None = None, isr: list[int] | None = None) -> None:
        record = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID)
        if leader is not None:
            record.leader = leader
        if isr is not None:
            record.isr = isr
        self.commit(record)

    async def ask(self, broker: Broker, message: Message) -> Message:
        await self.travel(broker.id, 0)
        if self.is_controller_deaf:
            raise PeerGone("the controller is away")
        facts = Facts(
            cluster_id="c",
            node_id=1,
            schema=ConfigSchema(
                node_id=1,
                broker_settings=BROKER_SETTINGS,
                group_settings=self.settings.consumer_groups.group_configs,
                static={},
            ),
        )
        assert isinstance(message, AlterPartitionRequest)
        records, response = alter_partition(self.image, message, facts)
        if records:
            self.commit(*records)
        await self.travel(0, broker.id)
        return response

    # --- the network ----------------------------------------------------------------------------------------------

    async def travel(self, source: int, target: int) -> None:
        if self.delay_ms_max:
            await asyncio.sleep(self.random.randrange(self.delay_ms_max * 1000) / 1_000_000)
        if (source, target) in self.cuts or (target and not self.brokers[target].is_alive):
            raise PeerGone(f"{source} does not reach {target}")

    def isolate(self, broker_id: int) -> None:
        for other in (0, *self.brokers):
            self.cuts |= {(broker_id, other), (other, broker_id)}

    def part(self) -> None:
        """No broker reaches another; all reach the controller."""
        self.cuts |= {(source, target) for source in self.brokers for target in self.brokers if source != target}

    def heal(self) -> None:
        self.cuts.clear()
        for broker in self.brokers.values():
            broker.see()

    # --- clients --------------------------------------------------------------------------------------------------

    def leader(self) -> Partition:
        return self.brokers[self.state.leader].partition

    def append(self, partition: Partition, value: bytes, *, is_waiting_for_all: bool = True) -> int:
        """The offset of a record that may not be acknowledged yet."""
        now_ms = partition.log.clock.wall_ms()
        batch = memoryview(bytearray(encode_batch([(now_ms, None, value, ())])))
        validated = validate(batch, Rules.of(partition.log.settings, origin=Origin.CLIENT), now_ms=now_ms)
        return partition.append(validated, is_waiting_for_all=is_waiting_for_all, now_ms=now_ms).base_offset

    async def ask_broker(self, broker: Broker, request: Message, version: int) -> Any:
        """What a broker answers a client."""
        assert request.api_key is not None
        parts = encode_request(request, version, correlation_id=1, client_id="c")
        return await answer_of(broker, b"".join(cast("list[bytes]", parts))[4:], request.api_key)

    async def settled(self, ms: int = 2000) -> None:
        await asyncio.sleep(ms / 1000)


def _image(image: ClusterImage, records: list[Message]) -> ClusterImage:
    return image.apply_all(records, base_offset=image.offset + 1, epoch=1)


def content(partition: Partition, *, end: int | None = None) -> list[tuple[int, int, int]]:
    """Base offset, epoch and checksum of each batch below an offset."""
    log = partition.log
    end = log.end_offset if end is None else end
    found = []
    for segment in log.segments.all():
        data = segment.opened().read(0, segment.size_bytes)
        found += [(h.base_offset, h.leader_epoch, h.crc) for _, h in iterate(data) if h.next_offset <= end]
    return found
