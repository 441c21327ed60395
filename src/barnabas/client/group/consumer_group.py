"""A consumer's part of its group's work: which partitions it reads, from where, and what is stored of that.

Everything that the user can notice (partitions that come and go, his listener, automatic commits) happens here and
only between two polls, so that a record which was handed out is done with before its partition is given away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.errors import OffsetGone
from barnabas.client.fetch.cursor import Cursor
from barnabas.client.group.commits import Commits, OffsetAndMetadata
from barnabas.client.group.consumer_session import ConsumerSession
from barnabas.client.group.session import GroupSession
from barnabas.client.group.standing import Topics
from barnabas.client.offsets import EARLIEST, LATEST, resolve
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError
from barnabas.model.ids import NO_OFFSET, TopicPartition
from barnabas.observe.log import logger
from barnabas.transport.lane import retrieved

AUTO_COMMIT_MS_MAX: Final = 5_000
POSITIONS_SECONDS_MAX: Final = 10.0

_OVERTAKEN: Final = frozenset({errors.STALE_MEMBER_EPOCH, errors.ILLEGAL_GENERATION, errors.REBALANCE_IN_PROGRESS})

_log: Final = logger("client")


class RebalanceListener:
    """Told between two polls of what comes and goes; override what is of interest. Committing in here works."""

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """These are ours from now on; whoever seeks here decides where they are read from."""

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """These go to others as soon as this returns."""

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """These already belong to others: the group had given us up. Nothing can be committed for them."""
        await self.on_revoked(partitions)


class Group:
    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        topics: Topics,
        *,
        cursors: dict[TopicPartition, Cursor],
        listener: RebalanceListener | None,
        position: Callable[[TopicPartition], int],
        on_change: Callable[[], None],
    ) -> None:
        """``cursors`` are filled and emptied here; ``position`` says how far the user has got."""
        kind = ConsumerSession if settings.group_protocol == "consumer" else GroupSession
        self.session: GroupSession | ConsumerSession = kind(cluster, settings, topics, on_change=on_change)
        self.commits = Commits(cluster, self.session.coordinator, on_error=self.session.told)
        self._cluster = cluster
        self._settings = settings
        self._cursors = cursors
        self._listener = listener or RebalanceListener()
        self._position = position
        self._turn: asyncio.Task[None] | None = None
        self._stored: dict[TopicPartition, int] = {}  # what the last commits said
        self._commit_at = asyncio.get_running_loop().time() + settings.auto_commit_interval_ms / 1000
        self._resolve_at = 0.0
        self.session.start()

    # --- between two polls ----------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Do what is due. A caller who gives up leaves it to be finished, and the next one waits for it."""
        while self._turn is not None or self._has_work():
            if self._turn is None:
                self._turn = asyncio.get_running_loop().create_task(self._step(), name="rebalance")
                self._turn.add_done_callback(retrieved)
            turn = self._turn
            try:
                await asyncio.shield(turn)
            finally:
                if turn.done():
                    self._turn = None

    def _has_work(self) -> bool:
        session, membership = self.session, self.session.membership
        if session.failure is not None or membership.is_lost or session.has_arrived:
            return True
        if membership.needs_join and not session.is_joining:
            return True
        now = asyncio.get_running_loop().time()
        return (now >= self._resolve_at and bool(self._unresolved())) or self._is_commit_due(now)

    async def _step(self) -> None:
        session, membership = self.session, self.session.membership
        if membership.is_lost:
            membership.is_lost = False
            session.has_arrived = False
            await self._drop(sorted(self._cursors), is_lost=True)
        if session.failure is not None:
            failure, session.failure = session.failure, None
            raise failure
        if session.has_arrived:  # even if it is out of date: the next join speaks of what we have
            await self._apply()
        if membership.needs_join and not session.is_joining:
            await self._prepare()
            session.join()
        if self._unresolved():
            await self._resolve()
        now = asyncio.get_running_loop().time()
        if self._is_commit_due(now):
            self._commit_at = now + self._settings.auto_commit_interval_ms / 1000
            await self._store(sorted(self._cursors))

    async def _prepare(self) -> None:
        """Before a join: an eager member gives up everything, a cooperative one what it no longer subscribes to."""
        self.session.has_arrived = False
        topics = self.session.topics
        if not self.session.membership.is_cooperative:
            leaving = sorted(self._cursors)
        elif isinstance(topics, tuple):
            leaving = sorted(place for place in self._cursors if place.topic not in topics)
        else:
            leaving = sorted(place for place in self._cursors if not topics.fullmatch(place.topic))
        await self._revoke(leaving)

    async def _apply(self) -> None:
        """What a join brought. A cooperative member that must let go joins again, so that others get it."""
        membership = self.session.membership
        self.session.has_arrived = False
        assigned = self.session.assigned
        leaving = sorted(set(self._cursors) - set(assigned))
        added = [place for place in assigned if place not in self._cursors]
        if leaving:
            await self._revoke(leaving)
            membership.rejoin("partitions were given up")
        for place in added:
            self._cursors[place] = Cursor(place, self._settings)
        self.session.applied(sorted(self._cursors))
        # A join that brings nothing new is told too: it says that the round is over, as in Java.
        await self._listener.on_assigned(added)

    async def _revoke(self, partitions: Sequence[TopicPartition]) -> None:
        if self._settings.enable_auto_commit:
            await self._store(sorted(self._cursors))
        if partitions:
            await self._drop(partitions, is_lost=False)

    async def _drop(self, partitions: Sequence[TopicPartition], *, is_lost: bool) -> None:
        try:
            await (self._listener.on_lost(partitions) if is_lost else self._listener.on_revoked(partitions))
        finally:
            self.session.membership.revoked(partitions)
            for place in partitions:
                self._cursors.pop(place, None)
                self._stored.pop(place, None)

    # --- positions ------------------------------------------------------------------------------------------------

    def _unresolved(self) -> list[TopicPartition]:
        return [
            place for place, cursor in self._cursors.items() if cursor.position == NO_OFFSET and cursor.error is None
        ]

    async def _resolve(self) -> None:
        """Where the group stopped; where it never was, what auto.offset.reset says."""
        cursors = {place: self._cursors[place] for place in self._unresolved()}
        try:
            async with asyncio.timeout(POSITIONS_SECONDS_MAX):
                offsets = await self._starts(sorted(cursors))
        except (BarnabasError, TimeoutError) as error:
            if isinstance(error, BarnabasError) and not error.retriable:
                raise
            self._resolve_at = asyncio.get_running_loop().time() + self._cluster.backoff().next_ms() / 1000
            return
        for place, cursor in cursors.items():
            if self._cursors.get(place) is not cursor or cursor.position != NO_OFFSET:
                continue
            if place in offsets:
                cursor.seek(offsets[place].offset, offsets[place].leader_epoch)
            else:
                cursor.error = OffsetGone(f"{place}: the group has no offset and auto.offset.reset is none")

    async def _starts(self, places: list[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        group_id = self.session.membership.group_id
        stored = await self.commits.fetch(group_id, places)
        offsets = {place: found for place, found in stored.items() if found is not None}
        self._stored |= {place: found.offset for place, found in offsets.items()}
        missing = [place for place in places if place not in offsets]
        policy = self._settings.auto_offset_reset
        if missing and policy != "none":
            starts = dict.fromkeys(missing, EARLIEST if policy == "earliest" else LATEST)
            found = await resolve(self._cluster, starts, isolation_level=self._settings.isolation_level)
            offsets |= {place: OffsetAndMetadata(offset) for place, offset in found.items()}
        return offsets

    def _is_commit_due(self, now: float) -> bool:
        return self._settings.enable_auto_commit and now >= self._commit_at and bool(self._cursors)

    async def _store(self, places: Sequence[TopicPartition]) -> None:
        """Positions that moved, as an automatic commit: it may fail, then records are only read again."""
        positions = {place: self._position(place) for place in places}
        moved = {
            place: OffsetAndMetadata(offset, leader_epoch=self._cursors[place].epoch_before(offset))
            for place, offset in positions.items()
            if offset != NO_OFFSET and self._stored.get(place) != offset
        }
        try:
            await self.commit(moved, timeout_ms=AUTO_COMMIT_MS_MAX)
        except BarnabasError as error:
            _log.warning("automatic commit failed", reason=error)

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, timeout_ms: int | None) -> None:
        limit_ms = self._settings.default_api_timeout_ms if timeout_ms is None else timeout_ms
        deadline = asyncio.get_running_loop().time() + limit_ms / 1000
        while True:
            member = self.session.member
            try:
                await self.commits.commit(member, offsets, timeout_ms=timeout_ms)
                break
            except ApiError as error:
                # The epoch has moved on while the partitions stayed: the same commit in the new epoch is right. A
                # cooperative member keeps its partitions through a join, which may be over for the group already.
                if error.error in _OVERTAKEN and self.session.is_joining:
                    await self.session.wait_for_join(deadline)
                is_ours = all(place in self._cursors for place in offsets)
                if error.error not in _OVERTAKEN or not is_ours or self.session.member == member:
                    raise
        self._stored |= {place: entry.offset for place, entry in offsets.items()}

    async def close(self, *, commit: bool) -> None:
        """Store positions, let everything go, and leave the group."""
        if self._turn is not None:
            self._turn.cancel()
            await asyncio.wait([self._turn])
        membership = self.session.membership
        try:
            if not membership.is_lost and membership.failure is None:
                if commit and self._settings.enable_auto_commit:
                    await self._store(sorted(self._cursors))
                if self._cursors:
                    await self._drop(sorted(self._cursors), is_lost=False)
        finally:
            await self.session.stop()
            try:
                await self.session.leave()
            except BarnabasError as error:
                _log.info("the group was not told that we leave", reason=error)
