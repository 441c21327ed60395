"""Decisions in flight, commits, loss of leadership, snapshots: on a log in memory that commits when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import pytest
from hand_clock import HandClock

from barnabas.metadata import records as r
from barnabas.metadata.decision import RECORDS_MAX, Decision
from barnabas.metadata.image import EMPTY, ClusterImage
from barnabas.metadata.image_builder import MetadataChanges
from barnabas.metadata.loader import SnapshotRules
from barnabas.metadata.quorum_controller import QuorumController
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed
from barnabas.model.ids import Uuid
from barnabas.raft.delivery import LeaderAndEpoch
from barnabas.raft.leading import NotLeader
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.wire.message import Message

ME, OTHER = 1, 2


class MemoryLog:
    """Batches that are committed one by one, by hand or at once; deposing the leader drops the rest."""

    def __init__(self) -> None:
        self.listener: Any = None
        self.epoch = 0
        self.is_leader = False
        self.commits_at_once = True
        self.end_offset = 0
        self.committed: list[tuple[int, int, list[bytes]]] = []
        self.uncommitted: list[tuple[int, int, list[bytes]]] = []
        self.waiting: list[tuple[int, asyncio.Future[None]]] = []
        self.snapshots: list[tuple[OffsetAndEpoch, list[bytes]]] = []

    def lead(self, node_id: int) -> None:
        self.epoch += 1
        self.is_leader = node_id == ME
        if not self.is_leader:
            dropped, self.waiting = self.waiting, []
            for _, future in dropped:
                if not future.done():
                    future.set_exception(NotLeader("deposed"))
            if self.uncommitted:
                self.end_offset = self.uncommitted[0][0]
                self.uncommitted = []
        self.end_offset += 1  # the record of the leader change
        self.listener.on_leader(LeaderAndEpoch(node_id, self.epoch))

    def propose(self, records: Sequence[bytes], *, epoch: int) -> int:
        if not self.is_leader or epoch != self.epoch:
            raise NotLeader("not we")
        self.uncommitted.append((self.end_offset, epoch, list(records)))
        self.end_offset += len(records)
        if self.commits_at_once:
            asyncio.get_running_loop().call_soon(self.commit)
        return self.end_offset - 1

    def commit(self, count: int | None = None) -> None:
        batches, self.uncommitted = self.uncommitted[:count], self.uncommitted[count:] if count else []
        for base_offset, epoch, records in batches:
            self.committed.append((base_offset, epoch, records))
            self.listener.on_commit(base_offset, epoch, 1000 + base_offset, records)
            last_offset = base_offset + len(records) - 1
            for offset, future in self.waiting:
                if offset <= last_offset and not future.done():
                    future.set_result(None)

    def append_of_another(self, *records: Message) -> None:
        """What the other controller wrote, committed."""
        values = [r.encode_record(record) for record in records]
        base_offset = self.end_offset
        self.end_offset += len(values)
        self.committed.append((base_offset, self.epoch, values))
        self.listener.on_commit(base_offset, self.epoch, 0, values)

    async def wait_committed(self, offset: int, *, epoch: int) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append((offset, future))
        await future

    async def create_snapshot(
        self, offset: int, epoch: int, append_time_ms: int, records: Iterable[bytes]
    ) -> OffsetAndEpoch:
        await asyncio.sleep(0)
        snapshot = OffsetAndEpoch(offset, epoch)
        self.snapshots.append((snapshot, list(records)))
        return snapshot


class Bench:
    """A controller on a log in memory, and the pictures it has shown."""

    def __init__(self, **more: Any) -> None:
        self.log = MemoryLog()
        self.clock = HandClock()
        self.controller = QuorumController(self.log, node_id=ME, clock=self.clock, **more)
        self.log.listener = self.controller
        self.shown: list[tuple[ClusterImage, ClusterImage, MetadataChanges]] = []
        self.controller.on_image(lambda old, new, changes: self.shown.append((old, new, changes)))

    async def lead(self) -> None:
        self.log.lead(ME)
        await self.controller.activated()

    def topic(self, name: str) -> Callable[[ClusterImage], Decision[int]]:
        """Creates a topic, or answers as Kafka does if it is there."""

        def decide(image: ClusterImage) -> Decision[int]:
            if name in image.topics:
                return Decision([], errors.TOPIC_ALREADY_EXISTS.code)
            topic_id = Uuid(name.encode().rjust(16, b"\x01"))
            return Decision([r.TopicRecord(name=name, topic_id=topic_id)], 0)

        return decide


def run(scenario: Callable[[Bench], Awaitable[None]], **more: Any) -> None:
    async def main() -> None:
        await scenario(Bench(**more))

    asyncio.run(main())


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_new_cluster_is_founded_by_its_first_leader() -> None:
    async def scenario(bench: Bench) -> None:
        with pytest.raises(ApiError, match="NOT_CONTROLLER"):
            await bench.controller.submit(bench.topic("t"))
        await bench.lead()
        assert bench.controller.is_active
        assert bench.controller.image.features["metadata.version"] == 30
        assert len(bench.shown) == 1
        old, new, changes = bench.shown[0]
        assert old is EMPTY
        assert new is bench.controller.image
        assert changes.has_new_features

    run(scenario)


def test_decisions_wait_until_the_cluster_is_founded() -> None:
    async def scenario(bench: Bench) -> None:
        bench.log.commits_at_once = False
        bench.log.lead(ME)
        submitted = asyncio.ensure_future(bench.controller.submit(bench.topic("t")))
        await settle()
        assert len(bench.log.uncommitted) == 1
        bench.log.commit()
        await settle()
        assert bench.controller.is_active
        assert len(bench.log.uncommitted) == 1
        bench.log.commit()
        assert await submitted == 0

    run(scenario)


def test_an_answer_comes_with_the_commit_and_not_before() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.lead()
        bench.log.commits_at_once = False
        submitted = asyncio.ensure_future(bench.controller.submit(bench.topic("t")))
        await settle()
        assert not submitted.done()
        assert bench.controller.image.topic("t") is None
        bench.log.commit()
        assert await submitted == 0
        assert bench.controller.image.topic("t") is not None
        assert bench.controller.image.offset == bench.log.end_offset - 1

    run(scenario)


def test_two_decisions_in_flight_see_each_other() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.lead()
        bench.log.commits_at_once = False
        first = asyncio.ensure_future(bench.controller.submit(bench.topic("t")))
        second = asyncio.ensure_future(bench.controller.submit(bench.topic("t")))
        third = asyncio.ensure_future(bench.controller.submit(bench.topic("u")))
        await settle()
        assert len(bench.log.uncommitted) == 2
        # The second wrote nothing, but its answer rests on what the first wrote.
        assert not second.done()
        bench.log.commit(1)
        assert await first == 0
        assert await second == errors.TOPIC_ALREADY_EXISTS.code
        assert not third.done()
        assert bench.controller.image.topic("u") is None
        bench.log.commit()
        assert await third == 0

    run(scenario)


def test_a_lost_leadership_fails_what_is_in_flight_and_forgets_it() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.lead()
        bench.log.commits_at_once = False
        in_flight = [asyncio.ensure_future(bench.controller.submit(bench.topic(name))) for name in ("t", "t", "u")]
        await settle()
        bench.log.lead(OTHER)
        for submitted in in_flight:
            with pytest.raises(ApiError, match="NOT_CONTROLLER"):
                await submitted
        with pytest.raises(ApiError, match="NOT_CONTROLLER"):
            await bench.controller.submit(bench.topic("v"))
        assert not bench.controller.is_active
        # The other one has created it meanwhile; then this node leads again.
        bench.log.append_of_another(r.TopicRecord(name="u", topic_id=Uuid(b"u" * 16)))
        bench.log.commits_at_once = True
        await bench.lead()
        assert await bench.controller.submit(bench.topic("u")) == errors.TOPIC_ALREADY_EXISTS.code
        assert await bench.controller.submit(bench.topic("t")) == 0
        assert set(bench.controller.image.topics.by_name) == {"t", "u"}

    run(scenario)


def test_a_proposal_that_raft_refuses_is_no_decision() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.lead()
        bench.log.is_leader = False  # the news is still on its way
        with pytest.raises(ApiError, match="NOT_CONTROLLER"):
            await bench.controller.submit(bench.topic("t"))
        assert not bench.controller.is_active

    run(scenario)


def test_an_error_writes_nothing() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.lead()
        end_offset = bench.log.end_offset

        def refuse(image: ClusterImage) -> Decision[None]:
            raise ApiError(errors.STALE_BROKER_EPOCH)

        with pytest.raises(ApiError, match="STALE_BROKER_EPOCH"):
            await bench.controller.submit(refuse)
        with pytest.raises(Malformed):
            await bench.controller.submit(lambda image: Decision([r.RemoveTopicRecord()], None))
        assert bench.log.end_offset == end_offset
        assert await bench.controller.submit(bench.topic("t")) == 0

    run(scenario)


def test_whoever_gives_up_waiting_disturbs_nobody() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.lead()
        bench.log.commits_at_once = False
        gone = asyncio.ensure_future(bench.controller.submit(bench.topic("t")))
        staying = asyncio.ensure_future(bench.controller.submit(bench.topic("u")))
        await settle()
        gone.cancel()
        await settle()
        bench.log.commit()
        assert await staying == 0
        assert bench.controller.image.topic("t") is not None

    run(scenario)


def test_a_very_large_decision_travels_in_several_batches() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.lead()
        await bench.controller.submit(lambda image: Decision([r.NoOpRecord()] * (2 * RECORDS_MAX + 1), None))
        assert [len(records) for _, _, records in bench.log.committed[1:]] == [RECORDS_MAX, RECORDS_MAX, 1]

    run(scenario)


def test_a_follower_sees_what_the_leader_writes() -> None:
    async def scenario(bench: Bench) -> None:
        bench.log.lead(OTHER)
        bench.log.append_of_another(r.FeatureLevelRecord(name="metadata.version", feature_level=30))
        bench.log.append_of_another(r.TopicRecord(name="t", topic_id=Uuid(b"t" * 16)))
        assert [changes.created_topics for _, _, changes in bench.shown] == [(), (Uuid(b"t" * 16),)]
        assert bench.controller.image.epoch == 1
        assert bench.controller.image.offset == bench.log.end_offset - 1

    run(scenario)


def test_nobody_sees_the_inside_of_a_transaction() -> None:
    async def scenario(bench: Bench) -> None:
        bench.log.lead(OTHER)
        bench.log.append_of_another(r.FeatureLevelRecord(name="metadata.version", feature_level=30))
        bench.log.append_of_another(r.BeginTransactionRecord(), r.TopicRecord(name="t", topic_id=Uuid(b"t" * 16)))
        bench.log.append_of_another(r.TopicRecord(name="u", topic_id=Uuid(b"u" * 16)))
        assert len(bench.shown) == 1
        assert bench.controller.image.topic("t") is None
        bench.log.append_of_another(r.EndTransactionRecord())
        assert len(bench.shown) == 2
        assert set(bench.shown[1][2].created_topics) == {Uuid(b"t" * 16), Uuid(b"u" * 16)}

    run(scenario)


def test_a_new_leader_aborts_what_the_old_one_left_half_done() -> None:
    async def scenario(bench: Bench) -> None:
        bench.log.lead(OTHER)
        bench.log.append_of_another(r.BeginTransactionRecord(name="Bootstrap records"))
        bench.log.append_of_another(r.FeatureLevelRecord(name="metadata.version", feature_level=30))
        bench.log.append_of_another(r.TopicRecord(name="t", topic_id=Uuid(b"t" * 16)))
        await bench.lead()
        assert isinstance(r.decode_record(bench.log.committed[-1][2][0]), r.AbortTransactionRecord)
        assert bench.controller.image.features["metadata.version"] == 30
        assert bench.controller.image.topic("t") is None
        assert bench.shown[-1][2].created_topics == ()
        assert await bench.controller.submit(bench.topic("t")) == 0

    run(scenario)


def test_a_snapshot_is_taken_after_so_much_or_so_long() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.lead()
        for number in range(20):
            await bench.controller.submit(bench.topic(f"t{number}"))
            await settle()
        assert 1 <= len(bench.log.snapshots) <= 10
        snapshot, _ = bench.log.snapshots[-1]
        assert snapshot.epoch == 1
        bench.clock.now_ms += 10_000
        await bench.controller.submit(bench.topic("last"))
        await bench.controller.stop()
        snapshot, values = bench.log.snapshots[-1]
        assert snapshot.offset == bench.log.end_offset
        # Another node starts from it.
        other = Bench()
        other.controller.on_snapshot(snapshot, iter(values))
        assert other.controller.image == bench.controller.image
        assert len(other.shown[-1][2].created_topics) == 21

    run(scenario, snapshots=SnapshotRules(size_bytes=200, interval_ms=10_000))


def test_a_snapshot_replaces_what_a_follower_knew() -> None:
    async def scenario(bench: Bench) -> None:
        bench.log.lead(OTHER)
        bench.log.append_of_another(r.FeatureLevelRecord(name="metadata.version", feature_level=30))
        bench.log.append_of_another(r.TopicRecord(name="old", topic_id=Uuid(b"o" * 16)))
        records = [
            r.FeatureLevelRecord(name="metadata.version", feature_level=30),
            r.TopicRecord(name="new", topic_id=Uuid(b"n" * 16)),
        ]
        bench.controller.on_snapshot(OffsetAndEpoch(500, 3), iter([r.encode_record(record) for record in records]))
        changes = bench.shown[-1][2]
        assert [topic.name for topic in changes.deleted_topics] == ["old"]
        assert changes.created_topics == (Uuid(b"n" * 16),)
        assert not changes.has_new_features
        assert (bench.controller.image.offset, bench.controller.image.epoch) == (499, 3)

    run(scenario)


def test_who_listens_for_activity_hears_of_both_ends() -> None:
    async def scenario(bench: Bench) -> None:
        heard: list[bool] = []
        bench.controller.on_activity(heard.append)
        await bench.lead()
        bench.log.lead(OTHER)
        bench.log.lead(OTHER)
        await bench.lead()
        await bench.lead()
        assert heard == [True, False, True, False, True]

    run(scenario)
