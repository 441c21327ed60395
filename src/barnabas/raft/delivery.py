"""Brings what is committed to the listener, in order, and wakes those who wait for it.

A listener first gets the newest snapshot, then every committed batch of metadata records after it; control records stay
here. A new leader hears of its leadership only when it has got everything before its epoch, so its first decision rests
on all that was ever committed. The driver owns this; nothing here writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Final, NamedTuple, Protocol

from barnabas.model.ids import NO_BROKER
from barnabas.raft.leading import NotLeader
from barnabas.raft.log_view import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch
from barnabas.raft.metadata_log import MetadataLog
from barnabas.wire.batch import iterate
from barnabas.wire.records import decode_batch

TURN_BYTES: Final = 32 * 1024  # what is delivered before others get their turn


class LeaderAndEpoch(NamedTuple):
    leader_id: int = NO_BROKER
    epoch: int = 0


class RaftListener(Protocol):
    def on_commit(self, base_offset: int, epoch: int, append_time_ms: int, records: list[bytes]) -> None:
        """One committed batch."""

    def on_snapshot(self, snapshot_id: OffsetAndEpoch, records: Iterator[bytes]) -> None:
        """Forget everything: the state at ``snapshot_id.offset`` is this. Read the records before you return."""

    def on_leader(self, leader: LeaderAndEpoch) -> None:
        """Somebody leads, or nobody (-1) in a new epoch."""


class Delivery:
    def __init__(self, log: MetadataLog, listener: RaftListener | None) -> None:
        self._log = log
        self._listener = listener
        self.next_offset = 0
        self.high_watermark = -1
        self.on_turn_due: Callable[[], None] = lambda: None  # there is more: have ``go_on`` called soon
        self._is_running = False
        self._is_closed = False
        self._is_turn_due = False
        self._waiting: list[tuple[int, int, bool, asyncio.Future[None]]] = []
        self._wait_count = 0
        self._leader: tuple[LeaderAndEpoch, int | None] | None = None  # not announced yet

    def start(self) -> None:
        """What is in a snapshot is committed, whatever the quorum is doing."""
        self._load_snapshot()

    def close(self) -> None:
        self._is_closed = True
        while self._waiting:
            _fail(heappop(self._waiting)[3], "the quorum was stopped")

    def advance(self, high_watermark: int) -> None:
        self.high_watermark = max(self.high_watermark, high_watermark)
        self._run()

    def lead(self, leader: LeaderAndEpoch, epoch_start_offset: int | None) -> None:
        """``epoch_start_offset`` is where the records of our own leadership begin; None if we do not lead."""
        if epoch_start_offset is None:
            self._give_up_leadership()
        self._leader = (leader, epoch_start_offset)
        self._announce()

    async def wait(self, offset: int, *, is_leading: bool) -> None:
        """Return when the record at an offset was delivered. A leader that is deposed first raises NotLeader."""
        if offset < self.next_offset:
            return
        if self._is_closed:
            raise NotLeader("the quorum was stopped")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wait_count += 1
        heappush(self._waiting, (offset, self._wait_count, is_leading, future))
        await future

    def _run(self) -> None:
        if self._is_running or self._is_closed:
            return
        self._is_running = True
        try:
            if self.next_offset < self._log.start_offset:
                self._load_snapshot()
            if self.next_offset < self.high_watermark:
                self._deliver()
        finally:
            self._is_running = False
        self._wake()
        self._announce()
        if self.next_offset < self.high_watermark and not self._is_turn_due:
            self._is_turn_due = True
            self.on_turn_due()

    def go_on(self) -> None:
        """The next turn, after others have had theirs."""
        self._is_turn_due = False
        self._run()

    def _deliver(self) -> None:
        chunk = self._log.read(self.next_offset, end_offset=self.high_watermark, size_bytes_max=TURN_BYTES)
        for position, header in iterate(chunk):
            if not header.is_control and self._listener is not None:
                values = [record.value or b"" for record in decode_batch(chunk, position)]
                self._listener.on_commit(header.base_offset, header.leader_epoch, header.max_timestamp, values)
            self.next_offset = header.next_offset

    def _load_snapshot(self) -> None:
        snapshot = self._log.latest_snapshot
        if snapshot is None or snapshot == BOOTSTRAP_SNAPSHOT:
            return  # the first voters are no metadata
        if self._listener is not None:
            reader = self._log.open_snapshot(snapshot)
            try:
                self._listener.on_snapshot(snapshot, iter(reader))
            finally:
                reader.close()
        self.next_offset = snapshot.offset

    def _announce(self) -> None:
        if self._leader is None:
            return
        leader, epoch_start_offset = self._leader
        if epoch_start_offset is not None and self.next_offset <= epoch_start_offset:
            return
        self._leader = None
        if self._listener is not None:
            self._listener.on_leader(leader)

    def _wake(self) -> None:
        while self._waiting and self._waiting[0][0] < self.next_offset:
            future = heappop(self._waiting)[3]
            if not future.done():
                future.set_result(None)

    def _give_up_leadership(self) -> None:
        """Whether what we wrote is ever committed is for the next leader to say."""
        kept = []
        for entry in self._waiting:
            if entry[2]:
                _fail(entry[3], "the leadership was lost before the commit")
            else:
                kept.append(entry)
        self._waiting = sorted(kept, key=lambda entry: entry[:2])


def _fail(future: asyncio.Future[None], reason: str) -> None:
    if not future.done():
        future.set_exception(NotLeader(reason))
