"""The controller on the real Raft driver, in virtual time: sessions, restarts and snapshots."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from barnabas.metadata import records as r
from barnabas.metadata.active_controller import ActiveController
from barnabas.metadata.config_schema import ConfigSchema
from barnabas.metadata.decision import Decision, Facts
from barnabas.metadata.features_image import SUPPORTED_FEATURES
from barnabas.metadata.heartbeats import fence_expired
from barnabas.metadata.loader import SnapshotRules
from barnabas.metadata.quorum_controller import QuorumController
from barnabas.metadata.sessions import Session
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid
from barnabas.raft.driver import RaftDriver
from barnabas.raft.voters import ReplicaKey, Voter, VoterSet
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import simulated_world
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.world.timers import Timers
from barnabas.world.world import World

ME = Voter(ReplicaKey(1, Uuid(b"\x01" * 16)))
FEATURES = [
    BrokerRegistrationRequest.Feature(
        name=name, min_supported_version=levels.lowest, max_supported_version=levels.highest
    )
    for name, levels in SUPPORTED_FEATURES.items()
]


class Node:
    """A controller of one, with its files."""

    def __init__(self, world: World, **more: Any) -> None:
        self.timers = Timers(world.clock)
        self.raft = RaftDriver(
            world,
            self.timers,
            "/data/__cluster_metadata-0",
            local=ME,
            cluster_id="c",
            initial_voters=VoterSet.of(ME),
        )
        snapshots = more.pop("snapshots", None)
        self.controller = QuorumController(self.raft, node_id=1, clock=world.clock, snapshots=snapshots)
        self.raft.listener = self.controller
        facts = Facts(cluster_id="c", node_id=1, schema=ConfigSchema(node_id=1))
        self.active = ActiveController(self.controller, lambda: facts, clock=world.clock, timers=self.timers, **more)

    async def start(self) -> None:
        await self.raft.start()
        await self.controller.until_active()

    async def stop(self) -> None:
        await self.active.stop()
        await self.controller.stop()
        await self.raft.stop()
        self.timers.close()

    async def register(self, broker: int, incarnation: int = 0, **more: Any) -> int:
        request = BrokerRegistrationRequest(
            broker_id=broker,
            cluster_id="c",
            incarnation_id=Uuid(bytes([7, broker, incarnation]).rjust(16, b"\x01")),
            features=FEATURES,
            log_dirs=[Uuid(bytes([9, broker]).rjust(16, b"\x01"))],
        )
        return (await self.active.register_broker(request, **more)).broker_epoch

    async def heartbeat(self, broker: int, epoch: int, **more: Any) -> Any:
        return await self.active.broker_heartbeat(
            BrokerHeartbeatRequest(
                broker_id=broker,
                broker_epoch=epoch,
                current_metadata_offset=self.controller.image.offset,
                **more,
            )
        )

    async def topic(self, name: str, replicas: list[int]) -> None:
        topic_id = Uuid(name.encode().rjust(16, b"\x01"))
        partition = r.PartitionRecord(
            partition_id=0,
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=[Uuid(bytes([9, broker]).rjust(16, b"\x01")) for broker in replicas],
        )
        await self.controller.submit(
            lambda image: Decision([r.TopicRecord(name=name, topic_id=topic_id), partition], None)
        )


def run(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(simulated_world(cast(SimulatedLoop, asyncio.get_running_loop()), "world"))

    simulate(main, seed=5, time_s_max=4000)


def test_a_cluster_survives_a_restart() -> None:
    async def scenario(world: World) -> None:
        node = Node(world)
        await node.start()
        epoch = await node.register(1)
        await node.heartbeat(1, epoch)
        await node.topic("t", [1])
        before = node.controller.image
        await node.stop()
        node = Node(world)
        await node.start()
        after = node.controller.image
        assert (after.topics, after.brokers, after.features) == (before.topics, before.brokers, before.features)
        assert after.brokers[1].registered_offset == before.brokers[1].registered_offset
        await node.stop()

    run(scenario)


def test_a_snapshot_is_where_a_restart_begins() -> None:
    async def scenario(world: World) -> None:
        node = Node(world, snapshots=SnapshotRules(size_bytes=300))
        await node.start()
        for number in range(12):
            await node.topic(f"t{number}", [1])
        before = node.controller.image
        await node.stop()
        names = world.disk.list("/data/__cluster_metadata-0")
        assert any(name.endswith(".checkpoint") and not name.startswith("0" * 20) for name in names)
        node = Node(world)
        await node.start()
        assert node.controller.image.topics == before.topics
        await node.topic("more", [1])
        await node.stop()

    run(scenario)


def test_a_silent_broker_is_fenced_when_its_session_ends() -> None:
    async def scenario(world: World) -> None:
        node = Node(world)
        await node.start()
        epochs = {broker: await node.register(broker) for broker in (1, 2)}
        for broker, epoch in epochs.items():
            assert not (await node.heartbeat(broker, epoch)).is_fenced
        await node.topic("t", [1, 2])
        for _ in range(10):
            await asyncio.sleep(2)
            await node.heartbeat(2, epochs[2])
        image = node.controller.image
        assert image.brokers[1].is_fenced
        assert not image.brokers[2].is_fenced
        assert image.topic("t").partitions[0].leader == 2  # type: ignore[union-attr]
        assert not (await node.heartbeat(1, epochs[1])).is_fenced
        await node.stop()

    run(scenario)


def test_a_restarted_broker_waits_for_its_former_self_unless_it_runs_right_here() -> None:
    async def scenario(world: World) -> None:
        node = Node(world)
        await node.start()
        for broker in (1, 2):
            await node.heartbeat(broker, await node.register(broker))
        with pytest.raises(ApiError, match="DUPLICATE_BROKER_REGISTRATION"):
            await node.register(2, incarnation=1)
        epoch = await node.register(1, incarnation=1, is_own_node=True)
        assert node.controller.image.brokers[1].epoch == epoch
        await asyncio.sleep(10)
        assert await node.register(2, incarnation=1) > epoch
        with pytest.raises(ApiError, match="STALE_BROKER_EPOCH"):
            await node.heartbeat(2, epoch)
        await node.stop()

    run(scenario)


def test_a_controlled_shutdown_ends_when_the_others_know() -> None:
    async def scenario(world: World) -> None:
        node = Node(world)
        await node.start()
        epochs = {broker: await node.register(broker) for broker in (1, 2)}
        for broker, epoch in epochs.items():
            await node.heartbeat(broker, epoch)
        await node.topic("t", [1, 2])
        assert not (await node.heartbeat(1, epochs[1], want_shut_down=True)).should_shut_down
        assert node.controller.image.topic("t").partitions[0].leader == 2  # type: ignore[union-attr]
        assert not (await node.heartbeat(1, epochs[1], want_shut_down=True)).should_shut_down
        await node.heartbeat(2, epochs[2])
        assert (await node.heartbeat(1, epochs[1], want_shut_down=True)).should_shut_down
        assert node.controller.image.brokers[1].is_fenced
        await node.stop()

    run(scenario)


def test_preferred_leaders_come_back_and_an_idle_log_grows() -> None:
    async def scenario(world: World) -> None:
        node = Node(world, rebalance_interval_ms=60_000, idle_interval_ms=500)
        await node.start()
        epochs = {broker: await node.register(broker) for broker in (1, 2)}
        for broker, epoch in epochs.items():
            await node.heartbeat(broker, epoch)
        await node.topic("t", [1, 2])
        topic_id = node.controller.image.topic("t").id  # type: ignore[union-attr]
        await node.controller.submit(
            lambda image: Decision([r.PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=2)], None)
        )
        offset = node.controller.image.offset
        for _ in range(35):
            await asyncio.sleep(2)
            for broker, epoch in epochs.items():
                await node.heartbeat(broker, epoch)
        assert node.controller.image.topic("t").partitions[0].leader == 1  # type: ignore[union-attr]
        assert node.controller.image.offset > offset + 100
        await node.stop()

    run(scenario)


class FullDisk:
    """For as long as it is entered, the metadata log has no room."""

    def __init__(self, node: Node) -> None:
        self.log = cast(Any, node.raft)

    def __enter__(self) -> None:
        def propose(records: Any, *, epoch: int) -> int:
            raise ApiError(errors.KAFKA_STORAGE_ERROR, "no space is left")

        self.log.propose = propose

    def __exit__(self, *details: object) -> None:
        del self.log.propose


def test_a_silent_broker_is_fenced_when_there_is_room_to_write_it() -> None:
    async def scenario(world: World) -> None:
        node = Node(world)
        await node.start()
        await node.heartbeat(1, await node.register(1))
        with FullDisk(node):
            await asyncio.sleep(20)
            assert not node.controller.image.brokers[1].is_fenced
        await asyncio.sleep(5)
        assert node.controller.image.brokers[1].is_fenced
        await node.stop()

    run(scenario)


def test_a_broker_that_is_gone_is_fenced_when_there_is_room_to_write_it() -> None:
    async def scenario(world: World) -> None:
        node = Node(world)
        await node.start()
        epoch = await node.register(1)
        await node.heartbeat(1, epoch)
        with FullDisk(node):
            await node.active.broker_gone(Session(1, epoch))
        await asyncio.sleep(5)
        assert node.controller.image.brokers[1].is_fenced
        await node.stop()

    run(scenario)


def test_chores_go_on_after_one_that_failed() -> None:
    async def scenario(world: World) -> None:
        node = Node(world, idle_interval_ms=500)
        await node.start()
        for broker in (1, 2):
            await node.register(broker)
        with FullDisk(node):
            await asyncio.sleep(3)
        offset = node.controller.image.offset
        await asyncio.sleep(3)
        assert node.controller.image.offset > offset
        await node.stop()

    run(scenario)


def test_a_silent_broker_is_fenced_although_a_decision_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        reports: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context["task_name"]))
        tries = 0

        def broken(*arguments: Any, **more: Any) -> Any:
            nonlocal tries
            tries += 1
            if tries <= 2:
                raise KeyError("a mistake")
            return fence_expired(*arguments, **more)

        monkeypatch.setattr("barnabas.metadata.active_controller.fence_expired", broken)
        node = Node(world)
        await node.start()
        await node.heartbeat(1, await node.register(1))
        await asyncio.sleep(60)
        assert node.controller.image.brokers[1].is_fenced
        assert (tries, reports) == (3, ["sessions", "sessions"])
        await node.stop()

    run(scenario)
