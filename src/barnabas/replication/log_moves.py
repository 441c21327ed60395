"""Moves replicas from one log directory of this broker to another while they are in use.

A task per move copies the log piece by piece, throttled, and replaces the log by the copy once the copy is complete.
``storage.future_logs`` makes this safe against crashes. AlterReplicaLogDirs starts moves; after a restart the node
resumes unfinished ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError, CorruptBatch
from barnabas.model.ids import TopicPartition
from barnabas.observe.log import logger
from barnabas.replication.partition import Partition
from barnabas.replication.replicas import Replicas
from barnabas.replication.throttle import Throttle
from barnabas.storage import trimming
from barnabas.storage.directory import DELETE_TOPIC_LENGTH_MAX
from barnabas.storage.future_logs import FutureLog
from barnabas.storage.index import CorruptIndex
from barnabas.storage.log import PartitionLog, UnexpectedOffset
from barnabas.storage.slices import load
from barnabas.storage.store import LogStore
from barnabas.world.clock import Clock
from barnabas.world.disk import DiskFailure, DiskFull, FileClosed, FileSlice
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timers

log = logger("moves")

PIECE_BYTES: Final = 256 * 1024
REST_PIECES: Final = 8  # pieces copied without a pause right before the copy replaces the log
REST_PIECES_MAX: Final = 128  # limit of these pieces, which double while the log grows faster than the copy is synced
COPIES_MAX: Final = 4  # moves at the same time
THROTTLE_MS: Final = 50  # pause while the throttle is exceeded
RETRY_MS: Final = 1000  # pause while the disk is full


class Uncopyable(BarnabasError):
    """A log that has no batch at an offset where one is expected."""


class LogMoves:
    def __init__(
        self,
        replicas: Replicas,
        store: LogStore,
        *,
        clock: Clock,
        timers: Timers,
        bytes_per_second: Callable[[], int],
    ) -> None:
        self._replicas = replicas
        self._store = store
        self._clock = clock
        self._timers = timers
        self._bytes_per_second = bytes_per_second
        self._throttle = Throttle()
        self._gate = asyncio.Semaphore(COPIES_MAX)
        # Held while a copy replaces its log, and while a move is started or aborted.
        self._lock = asyncio.Lock()
        self._tasks = Tasks()
        self._moves: dict[TopicPartition, asyncio.Task[None]] = {}  # latest move of each partition
        self.on_moved: Callable[[Partition], None] = lambda partition: None

    def resume(self, on_moved: Callable[[Partition], None]) -> None:
        """Resume the moves that were unfinished when the broker stopped; ``on_moved`` is called after each move."""
        self.on_moved = on_moved
        for future in self._store.futures.all():
            hosted = self._replicas.by_name.get((future.log.partition.topic, future.log.partition.partition))
            if hosted is not None:
                self._begin(hosted, future)

    async def stop(self) -> None:
        """Stop copying; the next start resumes with the partial copies."""
        async with self._lock:
            self._tasks.cancel()
        await self._tasks.done()

    # --- what is asked for ----------------------------------------------------------------------------------------

    async def move(self, key: TopicPartition, directory: str) -> None:
        """Start to move a replica; a move to its own directory aborts one. ApiError if there is no such directory."""
        if len(key.topic) > DELETE_TOPIC_LENGTH_MAX:
            raise ApiError(errors.INVALID_TOPIC_EXCEPTION, "the topic's name is too long for a directory of a copy")
        home = self._store.home_at(directory)
        if directory in self._store.offline:
            raise ApiError(errors.KAFKA_STORAGE_ERROR, f"{directory} is offline")
        if home is None:
            raise ApiError(errors.LOG_DIR_NOT_FOUND, f"{directory} is not one of log.dirs")
        async with self._lock:
            hosted = self._replicas.by_name.get((key.topic, key.partition))
            if hosted is None:
                if self._replicas.is_offline(key):
                    raise ApiError(errors.KAFKA_STORAGE_ERROR, f"{key} is offline")
                self._store.prefer(key, directory)
                raise ApiError(errors.REPLICA_NOT_AVAILABLE, f"{key} will be made in {directory}, should it come here")
            future = self._store.futures.get(key)
            if future is not None and future.home is not home:
                self._store.futures.discard(key)
                future = None
            is_under_way = future is not None and key in self._moves
            if future is None and self._store.home_of(hosted.log) is not home:
                if self._store.offline:
                    raise ApiError(errors.KAFKA_STORAGE_ERROR, "a directory is offline; the log may have a copy there")
                try:
                    future = await self._store.futures.create(hosted.log, home)
                except DiskFailure as error:
                    if not isinstance(error, DiskFull):
                        self._store.take_offline(home.path, error)
                    raise ApiError(errors.KAFKA_STORAGE_ERROR, str(error)) from error
                if hosted.is_gone:
                    self._store.futures.discard(key)
                    raise ApiError(errors.REPLICA_NOT_AVAILABLE)
            if future is not None and not is_under_way:
                self._begin(hosted, future)

    def _begin(self, hosted: Partition, future: FutureLog) -> None:
        older = self._moves.get(hosted.id)
        move = self._tasks.start(self._run(hosted, future, older), f"move:{hosted.id}")
        self._moves[hosted.id] = move

        def forget(_: object) -> None:
            if self._moves[hosted.id] is move:
                del self._moves[hosted.id]

        move.add_done_callback(forget)

    # --- copying --------------------------------------------------------------------------------------------------

    async def _run(self, hosted: Partition, future: FutureLog, older: asyncio.Task[None] | None) -> None:
        if older is not None:
            await asyncio.wait([older])  # it ends by itself, since its copy is gone
        rest_pieces = REST_PIECES
        async with self._gate:
            while self._is_wanted(hosted, future):
                try:
                    await self._catch_up(hosted, future)
                    if await self._take_over(hosted, future, rest_pieces):
                        return
                    rest_pieces = min(2 * rest_pieces, REST_PIECES_MAX)
                    await asyncio.sleep(0)
                except DiskFull:
                    await self._timers.sleep(RETRY_MS)
                except DiskFailure as error:
                    log.error("replica cannot be moved", partition=hosted.id, reason=error)
                    return
                except (CorruptBatch, CorruptIndex, Uncopyable, UnexpectedOffset) as error:
                    log.error("replica cannot be moved", partition=hosted.id, reason=error)
                    self._store.futures.discard(hosted.id)

    def _is_wanted(self, hosted: Partition, future: FutureLog) -> bool:
        is_known = self._store.futures.get(hosted.id) is future and self._store.get(hosted.id) is hosted.log
        return is_known and not (hosted.is_gone or hosted.log.is_over or future.log.is_over)

    async def _catch_up(self, hosted: Partition, future: FutureLog) -> None:
        while self._is_wanted(hosted, future) and future.log.end_offset < hosted.log.end_offset:
            await self._copy_piece(hosted, future)
            await asyncio.sleep(0)

    async def _copy_piece(self, hosted: Partition, future: FutureLog) -> None:
        while self._throttle.is_exceeded(self._bytes_per_second(), self._clock.monotonic_ms()):
            await self._timers.sleep(THROTTLE_MS)
        current, made = hosted.log, future.log
        if not self._is_wanted(hosted, future):
            return
        if made.settings is not current.settings:
            made.settings = current.settings
        if made.end_offset < current.log_start_offset:
            made.truncate_fully(current.log_start_offset)
        place = made.end_offset, current.cut_count
        found = _rest(current, made)
        if found is None:
            return
        try:
            data = await load(found)
        except FileClosed:
            return  # retention or compaction has taken the segment away: it is looked up again
        except DiskFailure as error:
            current.reader.failed(error)
            raise
        if self._is_wanted(hosted, future) and place == (made.end_offset, current.cut_count):
            self._append(made, data)
            self._throttle.record(len(data))
            # Where transactions have ended need not be remembered below it.
            made.advance_high_watermark(current.high_watermark)

    def _append(self, made: PartitionLog, data: bytes) -> None:
        end_offset, now_ms = made.end_offset, self._clock.wall_ms()
        try:
            made.append_as_follower(data, leader_epoch_max=None, now_ms=now_ms)
        except UnexpectedOffset as error:
            if made.end_offset > made.segments.first.base_offset or not error.first_offset < end_offset:
                raise
            # The log starts in the middle of a batch: the whole batch is copied.
            made.truncate_fully(error.first_offset)
            made.append_as_follower(data, leader_epoch_max=None, now_ms=now_ms)
        if made.end_offset == end_offset:
            raise Uncopyable(f"there is no whole batch at offset {end_offset}")

    # --- taking over ----------------------------------------------------------------------------------------------

    async def _take_over(self, hosted: Partition, future: FutureLog, rest_pieces: int) -> bool:
        # Most of the copy, and its log start offset, are synced while the log is still in use.
        await future.log.flush()
        trimming.start_at(future.log, min(hosted.log.log_start_offset, future.log.end_offset))
        await self._store.checkpoints.write(future.home)
        await self._catch_up(hosted, future)
        async with self._lock:
            if not self._is_wanted(hosted, future):
                return False
            return await self._store.futures.take_over(
                hosted.id,
                copy_rest=partial(self._copy_rest, hosted, future, rest_pieces),
                on_switch=partial(self._switch, hosted),
            )

    def _copy_rest(self, hosted: Partition, future: FutureLog, rest_pieces: int) -> bool:
        current, made = hosted.log, future.log
        for _ in range(rest_pieces):
            if made.end_offset == current.end_offset:
                return True
            if made.end_offset < current.log_start_offset or (found := _rest(current, made)) is None:
                return False
            self._append(made, found.file.read(found.position, found.size_bytes))
        return made.end_offset == current.end_offset

    def _switch(self, hosted: Partition, made: PartitionLog) -> None:
        hosted.log = made
        log.info("replica has moved", partition=hosted.id, directory=made.directory)
        self.on_moved(hosted)


def _rest(current: PartitionLog, made: PartitionLog) -> FileSlice | None:
    """The position of the next bytes that a copy lacks; None if the copy is complete."""
    if made.end_offset >= current.end_offset:
        return None
    found = current.read(
        made.end_offset, size_bytes_max=PIECE_BYTES, end_offset_max=current.end_offset, at_least_one=True
    )
    if found.records is None:
        raise Uncopyable(f"there is no batch at or above offset {made.end_offset}")
    return found.records
