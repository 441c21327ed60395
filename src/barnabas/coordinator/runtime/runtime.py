"""Runs the shards of one coordinator on the partitions of its topic: load, decide, append, replay, answer.

A shard is here while this broker leads its partition; :mod:`barnabas.coordinator.runtime.shard_runner` has its life.
This module follows leadership and finds the shard for a request. The broker's handlers ask; the group and the
transaction coordinator are two of these with different shards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload

from barnabas.coordinator.runtime.effects import Question, Shard
from barnabas.coordinator.runtime.load_times import LoadTimes
from barnabas.coordinator.runtime.shard_runner import ShardRunner
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.observe.log import logger
from barnabas.replication.partition import Partition
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timers
from barnabas.world.world import World

R = TypeVar("R")

log = logger("coordinator")


class Leadership(Protocol):
    """Who knows which partitions this broker leads: :class:`barnabas.replication.replicas.Replicas`."""

    def on_leadership(self, callback: Callable[[Partition, bool], None]) -> Callable[[], None]: ...


class CoordinatorRuntime:
    def __init__(
        self,
        *,
        topic: str,
        replicas: Leadership,
        world: World,
        timers: Timers,
        make_shard: Callable[[int], Shard],
        perform: Callable[[int, Any], None] | None = None,
    ) -> None:
        """``perform(index, message)`` does what the shards decide to send, when that decision is committed."""
        self.topic = topic
        self.load_times = LoadTimes(world.clock.monotonic_ns)
        self._clock = world.clock
        self._timers = timers
        self._make_shard = make_shard
        self._perform = perform or _nothing_to_send
        self._runners: dict[int, ShardRunner] = {}
        self._tasks = Tasks()  # loading of shards
        self._is_stopped = False
        self._last_now_ms = 0
        self._forget_leadership = replicas.on_leadership(self._on_leadership)

    # --- asking ---------------------------------------------------------------------------------------------------

    @property
    def active(self) -> list[int]:
        """The partitions whose shards are loaded, in order."""
        return sorted(index for index, runner in self._runners.items() if runner.is_active)

    @property
    def loading(self) -> list[int]:
        return sorted(index for index, runner in self._runners.items() if runner.is_loading)

    @property
    def failed(self) -> list[int]:
        """Those whose logs cannot be read here."""
        return sorted(index for index, runner in self._runners.items() if runner.has_failed)

    @overload
    async def ask(self, partition_index: int, request: Question[R]) -> R: ...

    @overload
    async def ask(self, partition_index: int, request: object) -> Any: ...

    async def ask(self, partition_index: int, request: object) -> Any:
        """The answer of the shard, once all that it rests on is committed; ApiError if there is none to be had."""
        return await self._runner(partition_index).ask(request)

    def post(self, partition_index: int, event: object) -> None:
        """Tell a shard something that nobody waits for. A shard that is not loaded does not hear it."""
        runner = self._runners.get(partition_index)
        if runner is not None and runner.is_active:
            runner.post(event)

    def post_all(self, event: object) -> None:
        for index in self.active:
            self.post(index, event)

    async def append_marker(self, partition_index: int, batch: bytearray, *, transaction_version: int = 0) -> None:
        """End a transaction in the shard's partition with a control batch; return when that is committed."""
        await self._runner(partition_index).append_marker(batch, transaction_version=transaction_version)

    def shard(self, partition_index: int) -> Shard:
        """The loaded shard itself, to look at; ApiError if it is elsewhere or not ready."""
        return self._runner(partition_index).ready()

    async def until_loaded(self) -> None:
        """Wait until no shard is being loaded: for tests and for a broker's start."""
        while tasks := [runner.loading_task for runner in self._runners.values() if runner.loading_task is not None]:
            await asyncio.wait(tasks)

    async def stop(self) -> None:
        self._is_stopped = True
        self._forget_leadership()
        for index in sorted(self._runners):
            self._drop(index)
        await self._tasks.done()

    def _runner(self, index: int) -> ShardRunner:
        runner = self._runners.get(index)
        if runner is None:
            raise ApiError(errors.NOT_COORDINATOR)
        return runner

    # --- following leadership -------------------------------------------------------------------------------------

    def _on_leadership(self, partition: Partition, is_leader: bool) -> None:
        if partition.id.topic != self.topic or self._is_stopped:
            return
        index = partition.id.partition
        self._drop(index)
        if is_leader:
            log.info("coordinator is taken on", partition=partition.id, leader_epoch=partition.leader_epoch)
            self._runners[index] = ShardRunner(
                partition,
                timers=self._timers,
                clock=self._clock,
                now_ms=self.now_ms,
                load_times=self.load_times,
                tasks=self._tasks,
                make_shard=lambda: self._make_shard(index),
                perform=lambda message: self._perform(index, message),
            )

    def _drop(self, index: int) -> None:
        runner = self._runners.pop(index, None)
        if runner is None:
            return
        runner.close()

    def now_ms(self) -> int:
        """The wall clock's time as shards see it: it never goes back."""
        self._last_now_ms = max(self._last_now_ms, self._clock.wall_ms())
        return self._last_now_ms


def _nothing_to_send(index: int, message: Any) -> None:
    raise AssertionError(f"shard {index} has nobody to send {message} through")
