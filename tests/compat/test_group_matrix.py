"""Every client, protocol and assignor: members join, leave, die and return while a load runs, and nothing is lost.

The judge is in `group_judge.py`. Each member is a process of its own, so that one of them can be killed. A slice of the
table runs always; the rest is slow, and Java's part needs Java. `BARNABAS_TEST_BOOTSTRAP` names another broker to be
judged by, whose groups may then be slower to notice.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from bootstrapping import bootstrap
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from group_judge import Load, load_on, missing, read_again
from group_members import COMMITTED
from member_process import ProcessMember, as_process
from waiting import until

PARTITIONS = 6
ADMIN_SECONDS_MAX = 20.0
SHORT_SESSION_MS = 6000 if "BARNABAS_TEST_BOOTSTRAP" in os.environ else 3000
LONG_SESSION_MS = 45_000
EVENTS = ("join", "leave", "die", "return")
CLASSIC_EVENTS = (*EVENTS, "revive")  # in the consumer protocol an instance that died is missed before it is replaced
CLASSIC = {
    "confluent": ("range", "roundrobin", "cooperative-sticky"),
    "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "aiokafka": ("range", "roundrobin", "sticky"),  # it has no cooperative one
    "barnabas": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "java": ("range", "roundrobin", "sticky", "cooperative-sticky"),
}
CONSUMER = {"confluent": ("uniform", "range"), "barnabas": ("uniform",), "java": ("uniform", "range")}
OFTEN = {
    *(("confluent", "consumer", "uniform", event) for event in EVENTS),
    *(("kafka-python", "classic", "cooperative-sticky", event) for event in ("join", "die")),
    *(("aiokafka", "classic", "range", event) for event in ("leave", "die")),
    *(("confluent", "classic", "cooperative-sticky", event) for event in ("die", "return")),
    ("kafka-python", "classic", "range", "return"),
    ("confluent", "classic", "range", "revive"),
    ("aiokafka", "classic", "sticky", "return"),
}


def cases() -> Iterator[Any]:
    for protocol, table in (("classic", CLASSIC), ("consumer", CONSUMER)):
        for client, assignors in table.items():
            for assignor in assignors:
                for event in CLASSIC_EVENTS if protocol == "classic" else EVENTS:
                    case = (client, protocol, assignor, event)
                    rare = pytest.mark.java if client == "java" else pytest.mark.slow
                    yield pytest.param(*case, id="-".join(case), marks=() if case in OFTEN else rare)


def quick_to_notice(session_ms: int) -> dict[str, str]:
    """A broker's settings with which a rebalance takes a moment, and a session as long as that."""
    return {
        "group.min.session.timeout.ms": str(session_ms),
        "group.initial.rebalance.delay.ms": "100",
        "group.consumer.heartbeat.interval.ms": "200",
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.session.timeout.ms": str(session_ms),
        "group.consumer.min.session.timeout.ms": str(session_ms),
    }


@pytest.fixture(scope="module")
def brokers() -> Iterator[dict[int, str]]:
    """By the session of their members: one on which the dead are soon missed, one that waits for those who return."""
    with ExitStack() as stack:
        yield {ms: stack.enter_context(bootstrap(quick_to_notice(ms))) for ms in (SHORT_SESSION_MS, LONG_SESSION_MS)}


class Scene:
    """A group of one kind of client on a topic of its own, under a load."""

    def __init__(self, address: str, stack: ExitStack, client: str, **options: Any) -> None:
        self.address, self._stack, self._client, self._options = address, stack, client, options
        self.name = f"matrix-{uuid.uuid4().hex[:12]}"
        self.admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
        topic = NewTopic(self.name, num_partitions=PARTITIONS, replication_factor=1)
        self.admin.create_topics([topic])[self.name].result(ADMIN_SECONDS_MAX)
        self.load: Load = stack.enter_context(load_on(address, self.name, PARTITIONS))
        self.members: list[ProcessMember] = []  # all that there ever were
        self.present: list[ProcessMember] = []

    def join(self, **options: Any) -> ProcessMember:
        member = as_process(self._client, self.address, self.name, self.name, **{**self._options, **options})
        self.members.append(member)
        self.present.append(member)
        member.start()
        self._stack.callback(member.kill)
        return member

    def leave(self, member: ProcessMember) -> None:
        self.present.remove(member)
        member.stop()

    def die(self, member: ProcessMember) -> None:
        self.present.remove(member)
        member.kill()

    def settle(self) -> None:
        """Everyone has something, nothing is with two, all is with someone, and everyone reads and commits."""
        until(self._is_shared, f"{len(self.present)} members share {PARTITIONS} partitions")
        marks = [len(member.events) for member in self.present]
        until(lambda: self._have_committed(marks), "everyone reads and commits")

    def _check(self) -> None:
        for member in self.members:
            if member.failure is not None:
                raise member.failure

    def _is_shared(self) -> bool:
        self._check()
        shares = [member.assigned for member in self.present]
        return all(shares) and sorted(index for share in shares for index in share) == list(range(PARTITIONS))

    def _have_committed(self, marks: list[int]) -> bool:
        self._check()
        return all(
            any(event.kind == COMMITTED for event in member.events[mark:])
            for member, mark in zip(self.present, marks, strict=True)
        )

    def judge(self) -> None:
        """Every record is read, none that was committed is read again, and all is committed in the end."""
        written = self.load.stop()

        def all_read() -> bool:
            self._check()
            return not missing(self.members, written)

        until(all_read, f"all {written} records are read")
        for member in list(self.present):
            self.leave(member)
        assert missing(self.members, written) == set()
        assert read_again(self.members) == []
        assert sum(self._committed()) == written

    def _committed(self) -> list[int]:
        asked = [ConsumerGroupTopicPartitions(self.name)]
        found = self.admin.list_consumer_group_offsets(asked)[self.name].result(ADMIN_SECONDS_MAX)
        return [each.offset for each in found.topic_partitions]


def someone_joins(scene: Scene) -> None:
    scene.join()
    scene.settle()


def someone_leaves(scene: Scene) -> None:
    scene.leave(scene.present[0])
    scene.settle()


def someone_dies(scene: Scene) -> None:
    scene.die(scene.present[-1])
    scene.settle()


def someone_returns(scene: Scene) -> None:
    _someone_is_replaced(scene, scene.leave)


def someone_dies_and_returns(scene: Scene) -> None:
    _someone_is_replaced(scene, scene.die)


def _someone_is_replaced(scene: Scene, end: Callable[[ProcessMember], None]) -> None:
    stays, returns = scene.present
    share, rebalances = returns.assigned, stays.rebalances
    end(returns)
    again = scene.join(instance=returns.instance)
    scene.settle()
    assert again.assigned == share
    assert stays.rebalances == rebalances, "nobody else notices"


HAPPENS: dict[str, Callable[[Scene], None]] = {
    "join": someone_joins,
    "leave": someone_leaves,
    "die": someone_dies,
    "return": someone_returns,
    "revive": someone_dies_and_returns,
}


@pytest.mark.parametrize(("client", "protocol", "assignor", "event"), list(cases()))
def test_nothing_is_lost_and_nothing_that_was_committed_is_read_again(
    brokers: dict[int, str], client: str, protocol: str, assignor: str, event: str
) -> None:
    is_static = event in ("return", "revive")
    session_ms = SHORT_SESSION_MS if event == "die" else LONG_SESSION_MS
    with ExitStack() as stack:
        options = {"protocol": protocol, "assignor": assignor, "session_ms": session_ms}
        scene = Scene(brokers[session_ms], stack, client, **options)
        for number in range(2):
            scene.join(instance=f"instance-{number}" if is_static else None)
        scene.settle()
        HAPPENS[event](scene)
        scene.judge()


@pytest.mark.slow
def test_the_judge_sees_offsets_that_were_moved_under_a_group(brokers: dict[int, str]) -> None:
    with ExitStack() as stack:
        scene = Scene(brokers[LONG_SESSION_MS], stack, "confluent", session_ms=LONG_SESSION_MS)
        scene.join()
        scene.settle()
        scene.leave(scene.present[0])
        moved = [TopicPartition(scene.name, 0, 0), TopicPartition(scene.name, 1, 1_000_000)]
        request = [ConsumerGroupTopicPartitions(scene.name, moved)]
        scene.admin.alter_consumer_group_offsets(request)[scene.name].result(ADMIN_SECONDS_MAX)
        until(lambda: scene.load.written > 1000, "there is something to be missed")
        heir = scene.join()
        until(lambda: len({partition for partition, _, _ in heir.seen}) >= PARTITIONS - 1, "the others are read on")
        written = scene.load.stop()
        lost = missing(scene.members, written)
        assert read_again(scene.members)
        assert lost
