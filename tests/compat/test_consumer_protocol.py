"""The consumer protocol with other people's clients: patterns, new partitions, migration, and what tools see.

How members come, go, die and return under a load is in `test_group_matrix.py`.
The broker's heartbeats are quick, so that a rebalance takes a moment and not seconds. Run with
`BARNABAS_TEST_BOOTSTRAP` the tests judge any broker, at its own pace.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from bootstrapping import bootstrap
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]
from consumer_members import KINDS, Confluent, ConsumerMember
from kafka_tools import run_tool
from waiting import until

from barnabas.testing import Broker

PARTITIONS = 4
ADMIN_SECONDS_MAX = 20.0
SETTLE_SECONDS_MAX = 60.0
BOTH = ["confluent", pytest.param("java", marks=pytest.mark.java)]

Join = Callable[..., ConsumerMember]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    settings = {
        "group.consumer.heartbeat.interval.ms": "150",
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.session.timeout.ms": "3000",
        "group.consumer.min.session.timeout.ms": "1000",
    }
    with bootstrap(settings) as servers:
        yield servers


@pytest.fixture(scope="module")
def admin(address: str) -> Any:
    return AdminClient({"bootstrap.servers": address, "log_level": 2})


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def new_topic(admin: Any) -> Callable[..., str]:
    def make(prefix: str = "consumer-protocol", partitions: int = PARTITIONS) -> str:
        name = f"{prefix}-{uuid.uuid4().hex[:8]}"
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(ADMIN_SECONDS_MAX)
        return name

    return make


@pytest.fixture
def join(address: str, group: str) -> Iterator[Join]:
    """Members of the test's group; whoever is left at the end leaves."""
    with ExitStack() as stack:

        def start(kind: str, *topics: str, **options: Any) -> ConsumerMember:
            member = KINDS[kind](address, options.pop("group", group), *topics, **options).start()
            stack.callback(member.stop)
            return member

        yield start


def produce(address: str, topic: str, count: int, partitions: int = PARTITIONS) -> set[tuple[str, int, int]]:
    """Writes to all partitions in turn; where each record went."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "log_level": 2})
    written: set[tuple[str, int, int]] = set()

    def on_delivery(error: Any, message: Any) -> None:
        assert error is None, error
        written.add((message.topic(), message.partition(), message.offset()))

    for number in range(count):
        producer.produce(topic, value=str(number), partition=number % partitions, on_delivery=on_delivery)
    assert producer.flush(ADMIN_SECONDS_MAX) == 0
    return written


def all_of(topic: str, partitions: int = PARTITIONS) -> frozenset[tuple[str, int]]:
    return frozenset((topic, index) for index in range(partitions))


def settled(members: list[ConsumerMember], wanted: frozenset[tuple[str, int]]) -> bool:
    """Whether the members have everything, nothing twice, and about the same number each."""
    for member in members:
        if member.failure is not None:
            raise member.failure
    assigned = [partition for member in members for partition in member.assigned]
    sizes = [len(member.assigned) for member in members]
    return sorted(assigned) == sorted(wanted) and max(sizes) - min(sizes) <= 1


def until_settled(members: list[ConsumerMember], wanted: frozenset[tuple[str, int]]) -> None:
    until(
        lambda: settled(members, wanted),
        f"{len(members)} members share {sorted(wanted)}",
        seconds_max=SETTLE_SECONDS_MAX,
    )


def until_read(members: list[ConsumerMember], written: set[tuple[str, int, int]]) -> None:
    until(
        lambda: written <= {row for member in members for row in member.seen},
        f"all {len(written)} records are read",
        seconds_max=SETTLE_SECONDS_MAX,
    )


@pytest.mark.java
def test_clients_of_both_kinds_share_a_group(address, new_topic, join):
    topic = new_topic(partitions=6)
    members = [join("java", topic), join("confluent", topic), join("java", topic)]
    until_settled(members, all_of(topic, 6))
    until_read(members, produce(address, topic, 300, 6))


@pytest.mark.parametrize("kind", BOTH)
def test_a_pattern_finds_the_topics_that_are_there_and_those_to_come(kind, address, new_topic, join):
    prefix = f"pattern-{uuid.uuid4().hex[:8]}"
    first, _ = new_topic(prefix, 1), new_topic(f"not-{prefix}", 1)
    member = join(kind, f"^{prefix}.*")
    until_settled([member], all_of(first, 1))
    second = new_topic(prefix, 2)
    until_settled([member], all_of(first, 1) | all_of(second, 2))
    until_read([member], produce(address, first, 10, 1) | produce(address, second, 10, 2))


@pytest.mark.parametrize("kind", BOTH)
def test_new_partitions_are_read(kind, address, admin, new_topic, join):
    topic = new_topic()
    member = join(kind, topic)
    until_settled([member], all_of(topic))
    admin.create_partitions([NewPartitions(topic, 6)])[topic].result(ADMIN_SECONDS_MAX)
    until_settled([member], all_of(topic, 6))
    until_read([member], produce(address, topic, 60, 6))


@pytest.mark.parametrize("kind", BOTH)
def test_a_group_passes_to_the_new_protocol_and_back_while_it_reads(kind, address, admin, group, new_topic, join):
    topic = new_topic()
    written = produce(address, topic, 100)
    old = join(kind, topic, protocol="classic")
    until_settled([old], all_of(topic))
    new = join(kind, topic)
    until_settled([old, new], all_of(topic))
    assert described(admin, group).type.name == "CONSUMER"
    written |= produce(address, topic, 100)
    until_read([old, new], written)
    new.stop()
    until_settled([old], all_of(topic))
    assert described(admin, group).type.name == "CLASSIC"
    written |= produce(address, topic, 100)
    until_read([old, new], written)
    assert sorted(old.seen + new.seen) == sorted(written), "a record was read twice"


def described(admin: Any, group: str) -> Any:
    return admin.describe_consumer_groups([group])[group].result(ADMIN_SECONDS_MAX)


def test_tools_see_the_group(admin, group, new_topic, join):
    topic = new_topic()
    member = join("confluent", topic, instance="one")
    until_settled([member], all_of(topic))
    until(lambda: described(admin, group).state.name == "STABLE", "the group is stable")
    found = described(admin, group)
    assert found.type.name == "CONSUMER"
    (row,) = found.members
    assert row.group_instance_id == "one"
    assert {(p.topic, p.partition) for p in row.assignment.topic_partitions} == member.assigned
    assert {(p.topic, p.partition) for p in row.target_assignment.topic_partitions} == member.assigned
    listed = {each.group_id: each for each in admin.list_consumer_groups().result(ADMIN_SECONDS_MAX).valid}
    assert (listed[group].type.name, listed[group].state.name) == ("CONSUMER", "STABLE")


@pytest.mark.java
def test_kafkas_own_tool_sees_the_group(address, group, new_topic, join):
    topic = new_topic()
    member = join("java", topic)
    until_settled([member], all_of(topic))
    command = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    where = ("--bootstrap-server", address, "--describe", "--group", group)
    code, text = run_tool(command, *where, "--state", "--verbose")
    assert code == 0, text
    assert "uniform" in text
    assert "Stable" in text
    code, text = run_tool(command, *where, "--members", "--verbose")
    assert code == 0, text
    assert f"{topic}:0,1,2,3" in text


def test_a_member_that_was_thrown_out_joins_again_and_reads_on(group):
    with Broker() as broker:
        address = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
        admin.create_topics([NewTopic("t", PARTITIONS, 1)])["t"].result(ADMIN_SECONDS_MAX)
        member = Confluent(address, group, "t").start()
        until_settled([member], all_of("t"))
        before = described(admin, group).members[0].member_id
        broker.clock.advance("1m")  # no heartbeat can have come in that minute
        assert described(admin, group).members == []
        until(lambda: member.assignments == 2, "the member has joined again", seconds_max=SETTLE_SECONDS_MAX)
        until_settled([member], all_of("t"))
        assert described(admin, group).members[0].member_id == before
        until_read([member], produce(address, "t", 20))
        member.stop()
