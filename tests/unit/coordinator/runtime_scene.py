"""A shard that counts, the log it is kept in and the runtime that drives it. Shared by the tests of the runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import replace
from typing import Any

import pytest

from barnabas.coordinator.runtime.effects import Answer, Effects, ProducerIdEpoch
from barnabas.coordinator.runtime.runtime import CoordinatorRuntime
from barnabas.metadata.partition_image import UNASSIGNED_DIRECTORY, PartitionImage
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.replication.partition import Partition
from barnabas.storage.log import PartitionLog
from barnabas.storage.settings import TopicSettings
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import simulated_world
from barnabas.world.timers import Timers

TOPIC = "__consumer_offsets"
TOPIC_ID = Uuid(bytes(range(16)))
BROKER = 1
FOLLOWER = 2
COMMIT_KEY, COMMIT_VALUE = b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x07"


class Stage:
    """Make it on a simulated loop, ``await open()``, hand it to a runtime as its replicas, and change leadership."""

    def __init__(self, **settings: Any) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.world = simulated_world(loop, 1)
        self.timers = Timers(self.world.clock)
        self.settings = TopicSettings(cleanup_policy=("compact",), **settings)
        self._callbacks: list[Callable[[Partition, bool], None]] = []
        self._epoch = 0

    async def open(self) -> Partition:
        log = await PartitionLog.open(
            self.world,
            f"/data/{TOPIC}-0",
            TopicPartition(TOPIC, 0),
            self.settings,
            topic_id=TOPIC_ID,
            was_clean=False,
        )
        self.partition = Partition(broker_id=BROKER, log=log, topic_id=TOPIC_ID, image=self._image(FOLLOWER))
        return self.partition

    def on_leadership(self, callback: Callable[[Partition, bool], None]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def lead(self, leader: int = BROKER, *, isr: tuple[int, ...] = (BROKER,)) -> None:
        was_leader = self.partition.is_leader
        self.partition.apply(self._image(leader, isr))
        if self.partition.is_leader != was_leader:
            for callback in tuple(self._callbacks):
                callback(self.partition, self.partition.is_leader)

    def hold_the_high_watermark(self) -> None:
        """It waits for the disk, and nobody syncs that."""
        self.partition._start_flush = lambda: None
        self.partition.log.settings = replace(self.settings, flush_messages=1)
        self.partition.apply_settings()

    def let_the_high_watermark_go(self) -> None:
        self.partition.log.settings = self.settings
        self.partition.apply_settings()
        self.partition._advance()

    def _image(self, leader: int, isr: tuple[int, ...] = (BROKER,)) -> PartitionImage:
        self._epoch += 1
        return PartitionImage(
            replicas=(BROKER, FOLLOWER),
            directories=(UNASSIGNED_DIRECTORY, UNASSIGNED_DIRECTORY),
            isr=isr,
            leader=leader,
            leader_epoch=self._epoch,
        )


class Counter:
    """Adds up numbers by key; what a transaction adds counts when it is committed."""

    def __init__(self) -> None:
        self.sums: dict[bytes, int] = {}
        self.pending: dict[int, list[tuple[bytes, int]]] = {}
        self.patient: list[int] = []

    def replay(
        self, key: bytes, value: bytes | None, *, offset: int, producer: ProducerIdEpoch | None, timestamp_ms: int
    ) -> None:
        assert value is not None
        if producer is not None:
            self.pending.setdefault(producer.producer_id, []).append((key, int(value)))
        else:
            self.sums[key] = self.sums.get(key, 0) + int(value)

    def replay_marker(self, producer_id: int, producer_epoch: int, *, is_commit: bool) -> None:
        for key, number in self.pending.pop(producer_id, []):
            if is_commit:
                self.sums[key] = self.sums.get(key, 0) + number

    def loaded(self, now_ms: int) -> Effects:
        return Effects()

    def handle(self, request_id: int, request: Any, now_ms: int) -> Effects:
        match request:
            case ("add", number):
                return Effects().record(b"n", b"%d" % number).answer(request_id, self.sums.get(b"n", 0) + number)
            case ("add or forget it", number):
                effects = Effects().record(b"n", b"%d" % number).answer(request_id, None)
                effects.rescue = Effects
                return effects
            case ("add or add", number):
                effects = Effects().record(b"n", b"%d" % number).answer(request_id, None)
                effects.rescue = lambda: Effects().record(b"n", b"1")
                return effects
            case ("add in a transaction", number):
                effects = Effects().record(b"n", b"%d" % number).answer(request_id, None)
                effects.producer = ProducerIdEpoch(9, 0)
                return effects
            case ("read",):
                return Effects().answer(request_id, self.sums.get(b"n", 0))
            case ("wait", delay_ms):
                self.patient.append(request_id)
                return Effects().timer("wake", now_ms + delay_ms)
            case ("send", message):
                return Effects().record(b"n", b"1").send(message).answer(request_id, None)
            case ("refuse",):
                raise ApiError(errors.INVALID_REQUEST, "no")
            case ("break",):
                raise ZeroDivisionError
        raise AssertionError(request)

    def on_timer(self, key: Hashable, now_ms: int) -> Effects:
        effects = Effects()
        for request_id in self.patient:
            effects.answer(request_id, now_ms)
        self.patient.clear()
        return effects

    def unloaded(self) -> list[Answer]:
        return [Answer(request_id, "unloaded") for request_id in self.patient]


class Scene:
    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.sent: list[Any] = []
        self.runtime = self.new_runtime()

    def new_runtime(self) -> CoordinatorRuntime:
        return CoordinatorRuntime(
            topic=TOPIC,
            replicas=self.stage,
            world=self.stage.world,
            timers=self.stage.timers,
            make_shard=lambda index: Counter(),
            perform=lambda index, message: self.sent.append(message),
        )

    async def ask(self, *request: Any) -> Any:
        return await self.runtime.ask(0, request)

    async def lead(self) -> None:
        self.stage.lead()
        await self.runtime.until_loaded()

    async def refusal(self, *request: Any) -> errors.WireError:
        with pytest.raises(ApiError) as caught:
            await self.ask(*request)
        return caught.value.error


def play(story: Callable[[Scene], Coroutine[Any, Any, None]], **settings: Any) -> None:
    async def main() -> None:
        stage = Stage(**settings)
        await stage.open()
        scene = Scene(stage)
        await story(scene)
        await scene.runtime.stop()
        stage.timers.close()
        await stage.partition.log.close()

    simulate(main, time_s_max=1000)
