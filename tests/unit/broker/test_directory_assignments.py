"""The controller learns in which directory a replica lies, also of one that moves on while it is being told."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from barnabas.broker.controller.directory_assignments import DirectoryAssignments
from barnabas.metadata.image_builder import MetadataChanges
from barnabas.metadata.partition_image import PartitionImage, TopicIdPartition
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import simulated_world
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from barnabas.world.timers import Timers

BROKER = 1
TOPIC_ID = Uuid(bytes(range(16)))
KEY = TopicIdPartition(TOPIC_ID, 0)
IDS = {"/first": Uuid(bytes(range(1, 17))), "/second": Uuid(bytes(range(2, 18)))}


class Scene:
    """One replica, a picture of the cluster, and a controller that takes its time to answer."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.timers = Timers(simulated_world(loop, 1).clock)
        self.state = PartitionImage((BROKER,), (IDS["/first"],), (BROKER,), leader=BROKER, leader_epoch=0)
        self.log = SimpleNamespace(directory="/first/t-0")
        self.partition = cast(Any, SimpleNamespace(topic_id=TOPIC_ID, id=SimpleNamespace(partition=0), log=self.log))
        self.failures = 0
        self.assignments = DirectoryAssignments(
            replicas=cast(Any, self),
            directory_ids=lambda: IDS,
            link=cast(Any, self),
            timers=self.timers,
            broker_epoch=lambda: 5,
        )

    # As replicas.

    broker_id = BROKER

    @property
    def by_id(self) -> dict[tuple[Uuid, int], Any]:
        return {(TOPIC_ID, 0): self.partition}

    @property
    def image(self) -> Any:
        return SimpleNamespace(topics=SimpleNamespace(by_id={TOPIC_ID: SimpleNamespace(partitions=[self.state])}))

    def on_image_in_force(self, callback: Any) -> Any:
        self._on_image = callback
        return lambda: None

    # As the way to the controller: the picture changes before its answer is here.

    async def ask(self, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
        await asyncio.sleep(0.1)
        if self.failures:
            self.failures -= 1
            raise ApiError(errors.REQUEST_TIMED_OUT)
        self.state = self.state._replace(directories=(request.directories[0].id,))
        self._on_image(MetadataChanges(changed_partitions=(KEY,)), self.image)
        await asyncio.sleep(0.1)
        return AssignReplicasToDirsResponse()

    def move(self, path: str) -> None:
        self.log.directory = f"{path}/t-0"
        self.assignments.changed(self.partition)

    @property
    def told(self) -> Uuid:
        return self.state.directory_of(BROKER)


def play(delays: tuple[float, ...], *, failures: int = 0) -> None:
    async def main() -> None:
        scene = Scene()
        scene.failures = failures
        for place, delay in enumerate(delays):
            scene.move(("/second", "/first")[place % 2])
            await asyncio.sleep(delay)
        await asyncio.sleep(10)
        assert scene.told == IDS[scene.log.directory.rpartition("/")[0]]
        await scene.assignments.stop()
        scene.timers.close()

    simulate(main, time_s_max=60)


def test_the_controller_is_told_of_every_move() -> None:
    play((1.0, 1.0, 1.0))


def test_a_replica_that_moves_back_before_the_controller_knows_is_not_forgotten() -> None:
    play((0.05, 0.0))


def test_a_replica_that_moves_back_before_the_controller_has_answered_is_not_forgotten() -> None:
    play((0.15, 0.0))


def test_a_controller_that_does_not_answer_is_told_again() -> None:
    play((0.05,), failures=3)
    play((0.15, 0.0), failures=1)
