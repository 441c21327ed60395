"""Other people's clients in classic groups: members come and go, alone and mixed, and every record is read once.

How they die and return is in `test_group_matrix.py`. The tests know an address and little else; run with
`BARNABAS_TEST_BOOTSTRAP` they judge any broker.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bootstrapping import bootstrap
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from group_judge import Load
from group_members import MEMBERS as PYTHON_MEMBERS
from group_members import ConfluentMember, Member
from java_members import JavaMember
from waiting import until

from barnabas.testing import Broker

# kafka-python reads its schemas in a way that Python 3.11 frowns upon, and leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:(open_text|read_text) is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

PARTITIONS = 6
MEMBERS: dict[str, type[Member]] = {**PYTHON_MEMBERS, JavaMember.name: JavaMember}
EACH_MEMBER = [pytest.param(name, marks=[pytest.mark.java] if name == "java" else []) for name in MEMBERS]
ADMIN_SECONDS_MAX = 20.0


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with bootstrap() as servers:
        yield servers


@pytest.fixture(scope="module")
def admin(address: str) -> Any:
    return AdminClient({"bootstrap.servers": address, "log_level": 2})


@pytest.fixture
def topic(admin: Any) -> str:
    return new_topic(admin)


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:12]}"


def new_topic(admin: Any) -> str:
    name = f"groups-{uuid.uuid4().hex[:12]}"
    admin.create_topics([NewTopic(name, num_partitions=PARTITIONS, replication_factor=1)])[name].result(
        ADMIN_SECONDS_MAX
    )
    return name


def write(address: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": address, "log_level": 2})
    for number in range(count):
        producer.produce(topic, value=b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(ADMIN_SECONDS_MAX) == 0


def values(members: list[Member]) -> list[int]:
    return sorted(int(value) for member in members for _, _, value in member.seen)


def are_settled(*members: Member) -> Callable[[], bool]:
    """Everyone has something, nothing is with two, and all is with someone."""

    def check() -> bool:
        for member in members:
            if member.failure is not None:
                raise member.failure
        shares = [member.assigned for member in members]
        return all(shares) and sorted(index for share in shares for index in share) == list(range(PARTITIONS))

    return check


@pytest.mark.parametrize("name", EACH_MEMBER)
def test_the_next_member_goes_on_where_the_last_one_committed(address: str, topic: str, group: str, name: str) -> None:
    write(address, topic, 60)
    first = MEMBERS[name](address, group, topic).start()
    until(lambda: len(first.seen) >= 60 or first.failure is not None, "everything was read")
    first.stop()
    write(address, topic, 30)
    second = MEMBERS[name](address, group, topic).start()
    until(lambda: len(second.seen) >= 30 or second.failure is not None, "the rest was read")
    second.stop()
    assert values([first]) == list(range(60))
    assert values([second]) == list(range(30))


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["confluent"] * 3, id="confluent"),
        pytest.param(["kafka-python"] * 3, id="kafka-python"),
        pytest.param(["aiokafka"] * 3, id="aiokafka"),
        pytest.param(["confluent", "kafka-python", "aiokafka"], id="mixed"),
        pytest.param(["java"] * 3, id="java", marks=pytest.mark.java),
        pytest.param(["java", "confluent", "kafka-python", "aiokafka"], id="mixed-with-java", marks=pytest.mark.java),
    ],
)
def test_members_come_and_go_and_every_record_is_read_once(
    address: str, topic: str, group: str, names: list[str]
) -> None:
    load = Load(address, topic, PARTITIONS)
    members = [MEMBERS[name](address, group, topic) for name in names]
    for count, member in enumerate(members, 1):
        member.start()
        until(are_settled(*members[:count]), f"{count} members share {PARTITIONS} partitions")
    members[0].stop()
    until(are_settled(*members[1:]), "the others have taken over")
    written = load.stop()
    until(lambda: len(values(members)) >= written, "everything was read")
    for member in members[1:]:
        member.stop()
    assert values(members) == list(range(written))


@pytest.mark.parametrize("name", ["confluent", "kafka-python", pytest.param("java", marks=pytest.mark.java)])
def test_a_cooperative_group_moves_only_what_must_move(address: str, topic: str, group: str, name: str) -> None:
    load = Load(address, topic, PARTITIONS)
    members: list[Member] = [
        MEMBERS[name](address, group, topic, session_ms=10_000, assignor="cooperative-sticky") for _ in range(3)
    ]
    members[0].start()
    until(are_settled(members[0]), "the first has everything")
    before = members[0].assigned
    for count, member in enumerate(members[1:], 2):
        member.start()
        until(are_settled(*members[:count]), f"{count} members share")
        assert members[0].assigned < before, "the first keeps a part of what it had"
    written = load.stop()
    until(lambda: len(values(members)) >= written, "everything was read")
    for member in members:
        member.stop()
    assert values(members) == list(range(written))


def test_administrators_see_move_and_delete_what_a_group_committed(
    address: str, admin: Any, topic: str, group: str
) -> None:
    write(address, topic, 60)
    member = ConfluentMember(address, group, topic).start()
    until(lambda: len(member.seen) >= 60 or member.failure is not None, "everything was read")
    described = admin.describe_consumer_groups([group])[group].result(ADMIN_SECONDS_MAX)
    assert described.state.name == "STABLE"
    assert described.partition_assignor == "range"
    assert [len(each.assignment.topic_partitions) for each in described.members] == [PARTITIONS]
    member.stop()
    assert committed(admin, group) == dict.fromkeys(range(PARTITIONS), 10)
    wanted = [TopicPartition(topic, index, index) for index in range(PARTITIONS)]
    altered = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)])
    altered[group].result(ADMIN_SECONDS_MAX)
    assert committed(admin, group) == {index: index for index in range(PARTITIONS)}
    listed = admin.list_consumer_groups().result(ADMIN_SECONDS_MAX)
    assert (group, "EMPTY") in [(each.group_id, each.state.name) for each in listed.valid]
    admin.delete_consumer_groups([group])[group].result(ADMIN_SECONDS_MAX)
    assert committed(admin, group) == {}


def committed(admin: Any, group: str) -> dict[int, int]:
    asked = [ConsumerGroupTopicPartitions(group)]
    found = admin.list_consumer_group_offsets(asked)[group].result(ADMIN_SECONDS_MAX)
    return {each.partition: each.offset for each in found.topic_partitions}


def test_offsets_survive_a_restart_of_the_broker(tmp_path: Path, group: str) -> None:
    for expected, offset in ((-1001, 3), (3, 7), (7, 7)):
        with Broker(data_dir=tmp_path) as broker:
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 2})
            if offset == 3:
                topics = admin.create_topics([NewTopic("kept", num_partitions=1, replication_factor=1)])
                topics["kept"].result(ADMIN_SECONDS_MAX)
            consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "log_level": 2})
            (found,) = consumer.committed([TopicPartition("kept", 0)], timeout=ADMIN_SECONDS_MAX)
            assert found.offset == expected
            consumer.commit(offsets=[TopicPartition("kept", 0, offset)], asynchronous=False)
            consumer.close()
