"""Settings of share groups and of the share coordinator, each shown by what members or tools see of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from sharing import ACCEPT, RELEASE, Sharer, set_group
from talk import Talk, batch

from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.share.persister import Persister
from barnabas.coordinator.share_state.records import SharePartitionKey
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import SHARE_STATE_TOPIC, Uuid
from barnabas.model.settings import InvalidSetting
from barnabas.testing import Broker
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest
from barnabas.wire.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.world.real import RealClock
from barnabas.world.timers import Timers


@contextmanager
def running(**settings: str) -> Iterator[tuple[Broker, Talk]]:
    """A broker with these settings of its share groups, underscores for dots, and a topic ``t`` with ten records."""
    named = {f"group.share.{name.replace('_', '.')}": value for name, value in settings.items()}
    small = {"offsets.topic.num.partitions": "1", "share.coordinator.state.topic.num.partitions": "1"}
    with Broker(settings={**named, **small}) as broker, Talk(broker.bootstrap_servers) as talk:
        talk.create("t")
        talk.produce("t", batch(*(b"%d" % number for number in range(10))))
        set_group(talk, "g", auto_offset_reset="earliest")
        yield broker, talk


def join(broker: Broker, member: str, group: str = "g") -> Sharer:
    return Sharer(broker.bootstrap_servers, group, member, "t")


def test_heartbeat_interval_size_and_sessions() -> None:
    """group.share.heartbeat.interval.ms, group.share.max.size, group.share.max.share.sessions"""
    with running(heartbeat_interval_ms="7000", max_size="1", max_share_sessions="1") as (broker, talk):
        set_group(talk, "h", auto_offset_reset="earliest")
        with join(broker, "a") as one, join(broker, "b") as other, join(broker, "c", "h") as third:
            assert one.beat().heartbeat_interval_ms == 7000
            assert other.beat().error_code == errors.GROUP_MAX_SIZE_REACHED.code
            assert third.beat().error_code == 0
            assert len(one.fetch(("t", 0))) == 10
            assert third.fetch_answer(("t", 0)).error_code == errors.SHARE_SESSION_LIMIT_REACHED.code


def test_session_timeout_ms() -> None:
    """group.share.session.timeout.ms"""
    with (
        running(
            session_timeout_ms="300",
            min_session_timeout_ms="300",
            heartbeat_interval_ms="100",
            min_heartbeat_interval_ms="100",
        ) as (broker, talk),
        join(broker, "a") as member,
    ):
        member.beat()
        for _ in range(2000):
            (group,) = talk.ask(ShareGroupDescribeRequest(group_ids=["g"])).groups
            if group.group_state == "Empty":
                break
        assert group.group_state == "Empty"


def test_assignment_interval_ms() -> None:
    """group.share.assignment.interval.ms: a second assignment within the interval has to wait."""
    with running(assignment_interval_ms="15000") as (broker, _), join(broker, "a") as one, join(broker, "b") as other:
        assert one.beat().assignment.topic_partitions  # type: ignore[union-attr]
        assert not other.beat().assignment.topic_partitions  # type: ignore[union-attr]
    with running(assignment_interval_ms="0") as (broker, _), join(broker, "a") as one, join(broker, "b") as other:
        assert one.beat().assignment.topic_partitions  # type: ignore[union-attr]
        assert other.beat().assignment.topic_partitions  # type: ignore[union-attr]


def test_locks_and_deliveries() -> None:
    """group.share.record.lock.duration.ms, group.share.delivery.count.limit, group.share.partition.max.record.locks"""
    given = {"min_record_lock_duration_ms": "1000", "record_lock_duration_ms": "2000", "delivery_count_limit": "2"}
    with running(partition_max_record_locks="100", **given) as (broker, talk), join(broker, "a") as member:
        member.beat()
        for first in range(10, 200, 10):
            talk.produce("t", batch(*(b"%d" % number for number in range(first, first + 10))))
        answer = member.fetch_answer(("t", 0), records=1000)
        assert answer.acquisition_lock_timeout_ms == 2000
        assert answer.responses[0].partitions[0].acquired_records[-1].last_offset == 99
        assert len(member.fetch(acknowledge={("t", 0): [(0, 0, [RELEASE]), (1, 99, [ACCEPT])]}, records=1)) == 1
        assert [offset for offset, _, _ in member.fetch(acknowledge={("t", 0): [(0, 0, [RELEASE])]}, records=1)] == [
            *range(100, 110)
        ], "after two deliveries a record is archived"


def test_groups_may_set_what_the_broker_allows() -> None:
    """The bounds of group.share.session.timeout.ms and of the other settings that a group may have for itself.

    group.share.min.session.timeout.ms, group.share.max.session.timeout.ms, group.share.min.heartbeat.interval.ms,
    group.share.max.heartbeat.interval.ms, group.share.min.assignment.interval.ms,
    group.share.max.assignment.interval.ms, group.share.min.record.lock.duration.ms,
    group.share.max.record.lock.duration.ms, group.share.min.delivery.count.limit,
    group.share.max.delivery.count.limit, group.share.min.partition.max.record.locks,
    group.share.max.partition.max.record.locks
    """
    for name, low, default, high in (
        ("session.timeout.ms", 45_000, 50_000, 55_000),
        ("heartbeat.interval.ms", 4_000, 5_000, 6_000),
        ("assignment.interval.ms", 100, 1_000, 2_000),
        ("record.lock.duration.ms", 20_000, 30_000, 40_000),
        ("delivery.count.limit", 3, 4, 6),
        ("partition.max.record.locks", 200, 300, 3_000),
    ):
        given = {f"group.share.{name}": default, f"group.share.min.{name}": low, f"group.share.max.{name}": high}
        settings = BrokerSettings.of({key: str(value) for key, value in given.items()}).share_groups
        attribute = name.replace(".", "_")
        assert getattr(settings, attribute) == default
        config = settings.group_configs[f"share.{name}"]
        for wrong in (low - 1, high + 1):
            with pytest.raises(InvalidSetting):
                config.parse(str(wrong))
            assert getattr(settings.for_group({f"share.{name}": str(wrong)}), attribute) in (low, high)
        with pytest.raises(InvalidSetting):
            BrokerSettings.of({f"group.share.{name}": str(low - 1), f"group.share.min.{name}": str(low)})
        assert getattr(settings.for_group({f"share.{name}": str(low)}), attribute) == low


def test_assignors() -> None:
    """group.share.assignors"""
    with pytest.raises(InvalidSetting, match=r"group\.share\.assignors"):
        BrokerSettings.of({"group.share.assignors": "uniform"})


@pytest.mark.parametrize("text", ["by_duration:PT1H", "by_duration:P1DT2H3M4.5S", "earliest", "latest"])
def test_where_a_group_may_start(text: str) -> None:
    config = BrokerSettings.of({}).share_groups.group_configs["share.auto.offset.reset"]
    assert config.parse(text) == text
    for wrong in ("by_duration:", "by_duration:PT", "by_duration:1h", "none"):
        with pytest.raises(InvalidSetting):
            config.parse(wrong)


def test_a_group_may_start_some_time_ago() -> None:
    with running() as (broker, talk), join(broker, "a") as member:
        set_group(talk, "g", auto_offset_reset="by_duration:PT1H")  # the ten records are of 2023
        clock = RealClock()
        talk.produce("t", batch(b"new", timestamp=clock.wall_ms()))
        member.beat()
        assert member.fetch(("t", 0)) == [(10, b"new", 1)]


def test_the_topic_of_share_state_is_made_as_the_settings_say() -> None:
    """The settings share.coordinator.state.topic.num.partitions and .segment.bytes, .min.isr, .replication.factor.

    share.coordinator.state.topic.segment.bytes, share.coordinator.state.topic.min.isr,
    share.coordinator.state.topic.replication.factor
    """
    given = {
        "share.coordinator.state.topic.num.partitions": "3",
        "share.coordinator.state.topic.segment.bytes": "2097152",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
    }
    with Broker(settings=given) as broker, Talk(broker.bootstrap_servers) as talk:
        talk.create("t")
        with join(broker, "a") as member:
            assert member.beat().error_code == 0
        resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=2, resource_name=SHARE_STATE_TOPIC)
        (answer,) = talk.ask(DescribeConfigsRequest(resources=[resource])).results
        values = {config.name: config.value for config in answer.configs}
        assert (values["segment.bytes"], values["cleanup.policy"]) == ("2097152", "delete")
        assert (values["retention.ms"], values["min.insync.replicas"]) == ("-1", "1")
        row = CreatePartitionsRequest.CreatePartitionsTopic(name=SHARE_STATE_TOPIC, count=3)
        (refused,) = talk.ask(CreatePartitionsRequest(topics=[row], timeout_ms=5000)).results
        assert refused.error_code == errors.INVALID_PARTITIONS.code, "there are three of them already"
    with pytest.raises(InvalidSetting):
        BrokerSettings.of({"share.coordinator.state.topic.replication.factor": "0"})


def test_write_timeout_ms() -> None:
    """share.coordinator.write.timeout.ms"""
    assert BrokerSettings.of({"share.coordinator.write.timeout.ms": "123"}).share_state.timeout_ms == 123
    asked: list[int] = []

    class Links:
        async def send(self, node_id: int, request: Any, *, lane: str, timeout_ms: int) -> Any:
            asked.append(timeout_ms)
            raise ApiError(errors.UNSUPPORTED_VERSION)

    async def main() -> None:
        topic = SimpleNamespace(partitions=[SimpleNamespace(leader=2)])
        image = SimpleNamespace(topics=SimpleNamespace(by_name={SHARE_STATE_TOPIC: topic}))
        clock = RealClock()
        persister: Any = Persister(
            replicas=SimpleNamespace(image=image, broker_id=1),  # type: ignore[arg-type]
            ask_local=lambda *_: None,  # type: ignore[arg-type, return-value]
            links=Links(),  # type: ignore[arg-type]
            clock=clock,
            timers=Timers(clock),
            timeout_ms=lambda: 123,
            create_topic=lambda _: None,  # type: ignore[arg-type, return-value]
        )
        with pytest.raises(ApiError):
            await persister.delete(SharePartitionKey("g", Uuid(bytes(16)), 0))

    asyncio.run(main())
    assert asked == [123]
