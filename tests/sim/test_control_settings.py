"""What the settings of a cluster change, each shown by a cluster in virtual time that behaves otherwise without it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

import pytest
from waiting import until_async

from barnabas.broker.node.node import Node
from barnabas.testing.loop import simulate
from barnabas.testing.simulated_cluster import CONTROLLER_PORT, SimulatedCluster
from barnabas.transport.channel import Channel
from barnabas.transport.links import Links
from barnabas.transport.versions import agree
from barnabas.wire.message import Message
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest

VIRTUAL_SECONDS_MAX = 900.0
METADATA = "__cluster_metadata-0"
T = TypeVar("T")


_made: list[SimulatedCluster] = []


def made(**more: Any) -> SimulatedCluster:
    """A cluster that is stopped when its story is over."""
    cluster = SimulatedCluster(7, **more)
    _made.append(cluster)
    return cluster


def run(story: Callable[[], Coroutine[Any, Any, T]]) -> T:
    async def whole() -> T:
        try:
            return await story()
        finally:
            while _made:
                await _made.pop().stop_all()

    return simulate(whole, time_s_max=VIRTUAL_SECONDS_MAX)


async def started(settings: Mapping[str, str] | None = None, *, brokers: int = 3) -> SimulatedCluster:
    cluster = made(brokers=brokers, settings=settings)
    await cluster.start_all()
    await until_async(lambda: all(len(node.services.raft.voters) == min(3, brokers) for node in cluster.nodes.values()))
    return cluster


def active(cluster: SimulatedCluster) -> int:
    found = [number for number, node in cluster.nodes.items() if node.services.controller.is_active]
    return found[0] if len(found) == 1 else -1


def is_fenced(cluster: SimulatedCluster, watcher: int, number: int) -> bool:
    return cluster.nodes[watcher].services.controller.image.brokers[number].is_fenced


async def create(number: int, name: str, *, partitions: int = 1, replicas: int = 1) -> None:
    channel = await Channel.connect(f"node{number}", 9092, client_id="test")
    ranges = await agree(channel)
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=20_000)
    answer = await channel.send(request, ranges.highest_common(CreateTopicsRequest))
    assert answer.topics[0].error_code == 0, answer
    channel.close()


def names(node: Node) -> list[str]:
    return node.world.disk.list(f"{node.settings.log_dirs[0]}/{METADATA}")


@pytest.mark.parametrize("session_ms", [3000, 20_000])
def test_a_silent_broker_is_fenced_after_its_session(session_ms: int) -> None:
    async def whole() -> float:
        given = {"broker.session.timeout.ms": str(session_ms), "broker.heartbeat.interval.ms": "500"}
        cluster = await started(given)
        leader = active(cluster)
        silent = next(number for number in cluster.nodes if number != leader)
        cluster.pause(silent)
        return await until_async(partial(is_fenced, cluster, leader, silent))

    assert session_ms - 600 < run(whole) * 1000 < session_ms + 600


@pytest.mark.parametrize("interval_ms", [100, 4000])
def test_heartbeats_come_at_their_interval(interval_ms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: Counter[int] = Counter()  # by broker, but for the one that has the controller beside it
    send = Links.send

    async def counted(links: Links, node_id: int, request: Message, **options: Any) -> Message:
        if isinstance(request, BrokerHeartbeatRequest):
            sent[request.broker_id] += 1
        return await send(links, node_id, request, **options)

    async def whole() -> None:
        await started({"broker.heartbeat.interval.ms": str(interval_ms)})
        sent.clear()
        await asyncio.sleep(40)

    monkeypatch.setattr(Links, "send", counted)
    run(whole)
    expected = 40_000 / interval_ms
    assert len(sent) == 2
    assert all(0.7 * expected <= count <= expected + 1 for count in sent.values()), sent


@pytest.mark.parametrize("is_controlled", [True, False])
def test_leaders_move_before_a_broker_stops_unless_that_is_switched_off(is_controlled: bool) -> None:
    async def whole() -> bool:
        cluster = await started({"controlled.shutdown.enable": str(is_controlled).lower()})
        await create(1, "t", partitions=6, replicas=3)
        leader = active(cluster)
        number = next(each for each in cluster.nodes if each != leader)
        await cluster.stop(number)
        return is_fenced(cluster, leader, number)

    assert run(whole) is is_controlled


def test_a_broker_that_was_a_member_waits_for_its_cluster_however_long_that_takes() -> None:
    """``initial.broker.registration.timeout.ms`` is for brokers that no cluster knows: see ``test_lifecycle``."""

    async def whole() -> bool:
        cluster = await started({"initial.broker.registration.timeout.ms": "1000"})
        for number in (1, 2, 3):
            cluster.kill(number)
        alone = asyncio.ensure_future(cluster.start(2))
        await asyncio.sleep(60)
        is_waiting = not alone.done()
        await asyncio.gather(cluster.start(1), cluster.start(3), alone)
        return is_waiting

    assert run(whole)


def test_a_record_is_written_when_nothing_else_is_unless_that_is_switched_off() -> None:
    async def whole(interval_ms: int) -> int:
        cluster = await started({"metadata.max.idle.interval.ms": str(interval_ms)})
        await asyncio.sleep(10)
        before = cluster.nodes[1].services.controller.image.offset
        await asyncio.sleep(10)
        return cluster.nodes[1].services.controller.image.offset - before

    assert run(partial(whole, 0)) == 0
    assert 8 <= run(partial(whole, 1000)) <= 11


def test_roles_say_who_votes_and_who_holds_data() -> None:
    async def whole() -> None:
        cluster = made()
        cluster.settings[2] = {
            **cluster.settings[2],
            "process.roles": "controller",
            "listeners": f"CONTROLLER://node2:{CONTROLLER_PORT}",
        }
        cluster.settings[3] = {
            **cluster.settings[3],
            "process.roles": "broker",
            "listeners": "PLAINTEXT://node3:9092",
        }
        await cluster.start_all()
        await until_async(lambda: cluster.nodes[1].services.raft.voters.ids == (1, 2))
        await asyncio.sleep(20)
        assert cluster.nodes[1].services.raft.voters.ids == (1, 2)
        assert sorted(cluster.nodes[1].services.controller.image.brokers) == [1, 3]

    run(whole)


def test_a_static_quorum_of_a_file_for_kafka_becomes_one_cluster_with_these_voters() -> None:
    async def whole() -> None:
        cluster = made()
        voters = ",".join(f"{number}@{host}:{CONTROLLER_PORT}" for number, host in cluster.hosts.items())
        for number, given in cluster.settings.items():
            without = {name: text for name, text in given.items() if name != "controller.quorum.bootstrap.servers"}
            cluster.settings[number] = {**without, "controller.quorum.voters": voters}
        await asyncio.gather(*(cluster.start(number) for number in (3, 2, 1)))
        await until_async(lambda: cluster.nodes[2].services.raft.voters.ids == (1, 2, 3))
        # A node that lost its disk joins the cluster that is there, even the one that founded it.
        cluster.lose_disk(1)
        await cluster.start(1)
        assert cluster.nodes[1].services.cluster_id == cluster.nodes[2].services.cluster_id

    run(whole)


def test_controllers_listen_under_the_name_they_are_given() -> None:
    async def whole() -> None:
        cluster = made()
        for number, given in cluster.settings.items():
            cluster.settings[number] = {
                **given,
                "controller.listener.names": "QUORUM",
                "listeners": f"PLAINTEXT://node{number}:9092,QUORUM://node{number}:{CONTROLLER_PORT}",
            }
        await cluster.start_all()
        await until_async(lambda: cluster.nodes[2].services.raft.voters.ids == (1, 2, 3))
        endpoints = [voter.endpoints for voter in cluster.nodes[1].services.raft.voters.voters]
        assert {endpoint.listener for each in endpoints for endpoint in each} == {"QUORUM"}

    run(whole)


def test_brokers_reach_each_other_by_the_listener_they_are_given() -> None:
    async def whole() -> None:
        cluster = made()
        for number, given in cluster.settings.items():
            cluster.settings[number] = {
                **given,
                "inter.broker.listener.name": "INSIDE",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "listeners": f"PLAINTEXT://node{number}:9092,INSIDE://node{number}:9094,"
                f"CONTROLLER://node{number}:{CONTROLLER_PORT}",
            }
        await cluster.start_all()
        links = cluster.nodes[1].services.broker_links
        await until_async(lambda: links._addresses == {2: ("node2", 9094), 3: ("node3", 9094)})

    run(whole)


@pytest.mark.parametrize("fetch_ms", [1000, 10_000])
def test_a_frozen_leader_is_missed_after_the_fetch_timeout(fetch_ms: int) -> None:
    async def whole() -> float:
        cluster = await started({"controller.quorum.fetch.timeout.ms": str(fetch_ms)})
        frozen = active(cluster)
        cluster.pause(frozen)
        return await until_async(
            lambda: any(
                node.services.controller.is_active for number, node in cluster.nodes.items() if number != frozen
            )
        )

    seconds = run(whole)
    assert fetch_ms / 1000 - 0.6 < seconds < fetch_ms / 1000 + 4


@pytest.mark.parametrize("election_ms", [200, 8000])
def test_voters_without_a_leader_wait_for_the_election_timeout(election_ms: int) -> None:
    async def whole() -> float:
        cluster = await started({"controller.quorum.election.timeout.ms": str(election_ms)})
        for number in (1, 2, 3):
            cluster.kill(number, loses_power=True)
        for number in (1, 2, 3):
            disk, given = cluster.disk(number), cluster.settings[number]
            path = f"{given['log.dirs']}/{METADATA}/quorum-state"
            disk.remove(path)  # nobody remembers who led
        loop = asyncio.get_running_loop()
        start = loop.time()
        starting = [cluster.begin(number) for number in (1, 2, 3)]
        await until_async(lambda: any(node_leads(cluster, number) for number in (1, 2, 3)))
        seconds = loop.time() - start
        await asyncio.gather(*starting)
        return seconds

    seconds = run(whole)
    assert seconds >= election_ms / 1000 * 0.9
    assert seconds < election_ms / 1000 * 4 + 3  # a vote may be split once


def node_leads(cluster: SimulatedCluster, number: int) -> bool:
    node = cluster.nodes[number]
    return hasattr(node, "services") and node.services.controller.is_active


def test_files_of_the_metadata_log_are_begun_anew_after_a_time() -> None:
    async def whole(segment_ms: int) -> int:
        cluster = await started({"metadata.log.segment.ms": str(segment_ms)}, brokers=1)
        for number in range(3):
            await create(1, f"t{number}")
            await asyncio.sleep(5)
        return sum(name.endswith(".log") for name in names(cluster.nodes[1]))

    assert run(partial(whole, 1_000_000)) == 1
    assert run(partial(whole, 1000)) >= 3


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [
        ({"metadata.max.retention.bytes": "-1", "metadata.max.retention.ms": "-1"}, True),
        ({"metadata.max.retention.bytes": "1", "metadata.max.retention.ms": "-1"}, False),
        ({"metadata.max.retention.bytes": "-1", "metadata.max.retention.ms": "1000"}, False),
    ],
)
def test_old_snapshots_of_the_metadata_go_when_they_are_too_large_or_too_old(
    given: dict[str, str], is_kept: bool
) -> None:
    async def whole() -> int:
        often = {"metadata.log.max.record.bytes.between.snapshots": "300", "metadata.log.segment.ms": "1000"}
        cluster = await started({**given, **often}, brokers=1)
        for number in range(6):
            await create(1, f"t{number}")
            await asyncio.sleep(5)
        before = sum(name.endswith(".checkpoint") for name in names(cluster.nodes[1]))
        assert before >= 3
        await asyncio.sleep(10 * 61)  # it is looked for every minute, one snapshot at a time
        return sum(name.endswith(".checkpoint") for name in names(cluster.nodes[1])) - before

    change = run(whole)
    assert change == 0 if is_kept else change < 0
