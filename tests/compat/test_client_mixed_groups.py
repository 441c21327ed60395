"""Our members in one group with those of other clients, in every protocol that they share.

Records keep coming while members come and go; in the end each was read, and none twice: every member commits what it
has read before it reads on. `BARNABAS_TEST_BOOTSTRAP` names another broker to be judged by.
"""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from bootstrapping import bootstrap
from consumer_members import Confluent, ConsumerMember, Java
from group_members import AiokafkaMember, ConfluentMember, KafkaPythonMember, Member
from our_members import OurConsumerMember, OurMember
from waiting import until

from barnabas import NewTopic, ProducerSettings, Settings, blocking

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:(open_text|read_text) is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

PARTITIONS = 6
SECONDS_MAX = 60.0


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    quick = {"group.consumer.min.heartbeat.interval.ms": "100", "group.consumer.heartbeat.interval.ms": "100"}
    with bootstrap(quick) as servers:
        yield servers


@pytest.fixture
def topic(address: str) -> str:
    name = f"mixed-{uuid.uuid4().hex[:12]}"
    with blocking.Admin(Settings(bootstrap_servers=(address,))) as admin:
        admin.create_topic(NewTopic(name, partition_count=PARTITIONS))
    return name


class Load:
    """Our producer, which writes numbers until it is told to stop."""

    def __init__(self, address: str, topic: str) -> None:
        self._settings = ProducerSettings(bootstrap_servers=(address,))
        self._topic = topic
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self.written = 0
        self._thread.start()

    def _run(self) -> None:
        with blocking.Producer(self._settings) as producer:
            while not self._is_over.wait(0.005):
                producer.send_soon(self._topic, b"%d" % self.written, partition=self.written % PARTITIONS)
                self.written += 1

    def stop(self) -> int:
        self._is_over.set()
        self._thread.join(SECONDS_MAX)
        return self.written


def check(members: Sequence[Any]) -> None:
    for member in members:
        if member.failure is not None:
            raise member.failure


def shared(members: Sequence[Any]) -> bool:
    """Everyone has something, nothing is with two, and all is with someone."""
    check(members)
    owned = Counter(place for member in members for place in member.assigned)
    return all(member.assigned for member in members) and len(owned) == PARTITIONS == sum(owned.values())


def java(*arguments: Any, **options: Any) -> Member:
    from java_members import JavaMember

    return JavaMember(*arguments, **options)


CLASSIC = [
    pytest.param([ConfluentMember, KafkaPythonMember], "range", id="range-confluent-kafka_python"),
    pytest.param([AiokafkaMember, ConfluentMember], "range", id="range-aiokafka-confluent"),
    pytest.param([ConfluentMember, KafkaPythonMember], "roundrobin", id="roundrobin-confluent-kafka_python"),
    pytest.param([AiokafkaMember, KafkaPythonMember], "sticky", id="sticky-aiokafka-kafka_python"),
    pytest.param([ConfluentMember], "cooperative-sticky", id="cooperative-confluent"),
    pytest.param([ConfluentMember, KafkaPythonMember], "cooperative-sticky", id="cooperative-confluent-kafka_python"),
    pytest.param([java, ConfluentMember], "range", id="range-java-confluent", marks=pytest.mark.java),
    pytest.param([java, AiokafkaMember], "roundrobin", id="roundrobin-java-aiokafka", marks=pytest.mark.java),
    pytest.param([java, KafkaPythonMember], "sticky", id="sticky-java-kafka_python", marks=pytest.mark.java),
    pytest.param([java, ConfluentMember], "cooperative-sticky", id="cooperative-java", marks=pytest.mark.java),
]


@pytest.mark.parametrize(("others", "assignor"), CLASSIC)
def test_a_mixed_classic_group_loses_and_doubles_nothing(
    address: str, topic: str, others: list[Any], assignor: str
) -> None:
    load = Load(address, topic)
    kinds: list[Any] = [OurMember, *others]
    members: list[Any] = []
    gone: list[Any] = []
    for kind in kinds:  # one after the other, each of which makes the group share anew
        members.append(kind(address, topic, topic, assignor=assignor).start())
        until(lambda: shared(members), f"{len(members)} members share all partitions", seconds_max=SECONDS_MAX)
    members[0].stop()
    gone.append(members.pop(0))
    until(lambda: shared(members), "the others share what ours had", seconds_max=SECONDS_MAX)
    members.append(OurMember(address, topic, topic, assignor=assignor).start())
    until(lambda: shared(members), "ours is back", seconds_max=SECONDS_MAX)
    members[0].stop()
    gone.append(members.pop(0))
    until(lambda: shared(members), "one of the others has left", seconds_max=SECONDS_MAX)
    count = load.stop()
    everyone = [*gone, *members]

    def all_read() -> bool:
        check(everyone)
        return len({value for member in everyone for _, _, value in member.seen}) >= count

    until(all_read, f"all {count} records are read", seconds_max=SECONDS_MAX)
    for member in members:
        member.stop()
    read = Counter(int(value) for member in everyone for _, _, value in member.seen)
    assert set(read) == set(range(count))
    assert [number for number, times in read.items() if times > 1] == []
    assert all(len(member.seen) > 0 for member in everyone)


MODERN = [
    pytest.param([Confluent], id="confluent"),
    pytest.param([Java, Confluent], id="java-confluent", marks=pytest.mark.java),
]


@pytest.mark.parametrize("others", MODERN)
def test_a_mixed_group_of_the_consumer_protocol_loses_and_doubles_nothing(
    address: str, topic: str, others: list[type[ConsumerMember]]
) -> None:
    load = Load(address, topic)
    members: list[Any] = []
    gone: list[Any] = []
    for kind in (OurConsumerMember, *others):
        members.append(kind(address, topic, topic).start())
        until(lambda: shared(members), f"{len(members)} members share all partitions", seconds_max=SECONDS_MAX)
    members[0].stop()
    gone.append(members.pop(0))
    until(lambda: shared(members), "the others share what ours had", seconds_max=SECONDS_MAX)
    members.append(OurConsumerMember(address, topic, topic).start())
    until(lambda: shared(members), "ours is back", seconds_max=SECONDS_MAX)
    members[0].stop()
    gone.append(members.pop(0))
    until(lambda: shared(members), "one of the others has left", seconds_max=SECONDS_MAX)
    count = load.stop()
    everyone = [*gone, *members]

    def all_read() -> bool:
        check(everyone)
        return len({each for member in everyone for each in member.seen}) >= count

    until(all_read, f"all {count} records are read", seconds_max=SECONDS_MAX)
    for member in members:
        member.stop()
    read = Counter(each for member in everyone for each in member.seen)
    assert len(read) == count
    assert [each for each, times in read.items() if times > 1] == []
