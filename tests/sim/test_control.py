"""The quorum and its controller, three nodes in virtual time: elections, failover, restarts, voters that come and go.

The production code runs unchanged on simulated hosts, so a session of nine seconds costs a moment. What replication
keeps through all this is shown in ``test_cluster``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from barnabas.broker.broker_life import Phase
from barnabas.broker.joining import WrongCluster
from barnabas.broker.node import Node
from barnabas.broker.settings import BrokerSettings
from barnabas.model import errors
from barnabas.model.ids import METADATA_TOPIC
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.simulated_cluster import BROKER_PORT, CONTROLLER_PORT, SimulatedCluster
from barnabas.transport.channel import Channel
from barnabas.transport.versions import agree
from barnabas.wire.message import Message
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.envelope import EnvelopeRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest
from barnabas.world.disk import DiskFailure

VIRTUAL_SECONDS_MAX = 600.0
ALL = (1, 2, 3)


def story(tell: Callable[[SimulatedCluster], Coroutine[Any, Any, None]], **more: Any) -> None:
    async def whole() -> None:
        cluster = SimulatedCluster(1, **more)
        await cluster.start_all()
        await until(lambda: voters(cluster) == {ALL[: len(cluster.hosts)]})
        await tell(cluster)
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)


async def until(is_so: Callable[[], bool], *, seconds_max: float = 60.0) -> float:
    """Wait until it is so; answers how long it took."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    while not is_so():
        assert loop.time() - start < seconds_max, "it never came to that"
        await asyncio.sleep(0.01)
    return loop.time() - start


def voters(cluster: SimulatedCluster) -> set[tuple[int, ...]]:
    return {node.services.raft.voters.ids for node in cluster.nodes.values()}


def active(cluster: SimulatedCluster) -> int:
    """The active controller, or -1."""
    found = [number for number, node in cluster.nodes.items() if node.services.controller.is_active]
    return found[0] if len(found) == 1 else -1


def others(cluster: SimulatedCluster, *but: int) -> list[int]:
    return [number for number in cluster.nodes if number not in but]


def is_fenced(node: Node, number: int) -> bool:
    return node.services.image.brokers[number].is_fenced


async def ask(number: int, request: Message, *, port: int = BROKER_PORT) -> Any:
    channel = await Channel.connect(f"node{number}", port, client_id="test")
    try:
        ranges = await agree(channel)
        return await channel.send(request, ranges.highest_common(type(request)))
    finally:
        channel.close()


async def create(number: int, name: str, *, partitions: int = 1, replicas: int = 3) -> Any:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
    return (await ask(number, CreateTopicsRequest(topics=[topic], timeout_ms=20_000))).topics[0]


async def has_topic(cluster: SimulatedCluster, name: str) -> None:
    await until(lambda: all(name in node.services.image.topics.by_name for node in cluster.nodes.values()))


# --- the quorum -------------------------------------------------------------------------------------------------------


def test_nodes_that_join_become_voters_and_brokers() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        assert voters(cluster) == {ALL}
        for node in cluster.nodes.values():
            assert not any(is_fenced(node, number) for number in ALL)
        await until(lambda: sorted(cluster.nodes[1].services.controller.image.controllers) == list(ALL))

    story(tell)


def test_another_controller_takes_over_when_the_active_one_dies() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        await create(2, "before")
        dead = active(cluster)
        cluster.kill(dead)
        seconds = await until(lambda: active(cluster) not in (-1, dead))
        assert seconds < 1  # nothing listens where it was, so nobody waits for its fetch timeout
        alive = others(cluster, dead)
        assert (await create(alive[0], "after", replicas=2)).error_code == 0
        await has_topic(cluster, "before")
        # Nor for its broker's session, although the new controller never had a connection from it.
        assert await until(lambda: is_fenced(cluster.nodes[alive[0]], dead)) < 1
        await cluster.start(dead)
        await has_topic(cluster, "after")
        await until(lambda: not is_fenced(cluster.nodes[dead], dead), seconds_max=1)

    story(tell)


def test_a_frozen_controller_finds_its_successor_when_it_wakes() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        frozen = active(cluster)
        cluster.pause(frozen)
        await until(
            lambda: any(cluster.nodes[number].services.controller.is_active for number in ALL if number != frozen)
        )
        alive = [number for number in ALL if number != frozen]
        assert (await create(alive[0], "meanwhile", replicas=2)).error_code == 0
        await asyncio.sleep(15)
        cluster.resume(frozen)
        await until(lambda: active(cluster) in alive)
        await has_topic(cluster, "meanwhile")
        await until(lambda: not is_fenced(cluster.nodes[alive[0]], frozen))

    story(tell)


def test_a_controller_cut_off_from_the_others_decides_nothing() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        lonely = active(cluster)
        cluster.cut_off(lonely)
        topic = CreateTopicsRequest.CreatableTopic(name="lost", num_partitions=1, replication_factor=1)
        answer = await ask(lonely, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        assert answer.topics[0].error_code == errors.REQUEST_TIMED_OUT.code
        await until(lambda: active(cluster) not in (-1, lonely))
        cluster.heal()
        assert (await create(lonely, "found")).error_code == 0
        await has_topic(cluster, "found")
        # Its records were never committed: the next leader has never heard of them.
        assert all("lost" not in node.services.image.topics.by_name for node in cluster.nodes.values())

    story(tell)


def test_a_rolling_restart_moves_leaders_before_each_broker_goes() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        await create(1, "t", partitions=6)
        await has_topic(cluster, "t")
        for number in ALL:
            watcher = cluster.nodes[others(cluster, number)[0]]
            await cluster.stop(number)
            await until(partial(is_fenced, watcher, number), seconds_max=1)
            partitions = watcher.services.image.topics.by_name["t"].partitions
            assert all(partition.leader not in (number, -1) for partition in partitions)
            loop = asyncio.get_running_loop()
            start = loop.time()
            await cluster.start(number)
            assert loop.time() - start < 3  # nobody waits for the session of one that has said goodbye
            await until(lambda: active(cluster) != -1)
            await until(lambda: all(len(each.isr) == 3 for each in partitions_of(cluster, "t")))

    story(tell)


def partitions_of(cluster: SimulatedCluster, name: str) -> Any:
    return cluster.nodes[min(cluster.nodes)].services.controller.image.topics.by_name[name].partitions


def test_voters_are_added_and_removed_by_hand() -> None:
    def request_to_add(cluster: SimulatedCluster, number: int) -> AddRaftVoterRequest:
        node = cluster.nodes[number]
        return AddRaftVoterRequest(
            cluster_id=None,
            timeout_ms=10_000,
            voter_id=number,
            voter_directory_id=next(iter(node.services.store.directory_ids.values())),
            listeners=[AddRaftVoterRequest.Listener(name="CONTROLLER", host=f"node{number}", port=CONTROLLER_PORT)],
        )

    async def whole() -> None:
        cluster = SimulatedCluster(1, settings={"controller.quorum.auto.join.enable": "false"})
        await cluster.start_all()
        await asyncio.sleep(20)
        assert voters(cluster) == {(1,)}
        assert (await ask(1, request_to_add(cluster, 2), port=CONTROLLER_PORT)).error_code == 0
        # Asked of a broker that does not lead the quorum: it is forwarded.
        assert (await ask(3, request_to_add(cluster, 3))).error_code == 0
        await until(lambda: voters(cluster) == {ALL})
        assert (await ask(3, request_to_add(cluster, 3))).error_code == errors.DUPLICATE_VOTER.code
        key = request_to_add(cluster, 1).voter_directory_id
        assert (
            await ask(2, RemoveRaftVoterRequest(cluster_id=None, voter_id=1, voter_directory_id=key))
        ).error_code == 0
        await until(lambda: voters(cluster) == {(2, 3)})
        await until(lambda: active(cluster) in (2, 3))  # the one that was removed leads no more
        unknown = await ask(1, RemoveRaftVoterRequest(cluster_id=None, voter_id=9, voter_directory_id=key))
        assert unknown.error_code == errors.VOTER_NOT_FOUND.code
        foreign = await ask(1, RemoveRaftVoterRequest(cluster_id="x", voter_id=2, voter_directory_id=key))
        assert foreign.error_code == errors.INCONSISTENT_CLUSTER_ID.code
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)


def test_a_node_with_a_wiped_disk_joins_as_new_and_votes_under_its_new_directory() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        await create(1, "t")
        wiped = others(cluster, active(cluster))[0]
        old = cluster.nodes[wiped].services.raft.voters.get(wiped)
        await cluster.stop(wiped)
        cluster.disk(wiped).remove_tree("/data")
        cluster.disk(wiped).make_directory("/data")
        await cluster.start(wiped)
        assert old is not None

        def is_another() -> bool:
            new = cluster.nodes[wiped].services.raft.voters.get(wiped)
            return new is not None and new.key.directory_id != old.key.directory_id

        await until(lambda: voters(cluster) == {ALL} and is_another())
        await has_topic(cluster, "t")

    story(tell)


def test_a_node_with_the_directories_of_another_cluster_is_refused() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        stranger = others(cluster, active(cluster))[0]
        await cluster.stop(stranger)
        cluster.disk(stranger).remove_tree("/data")
        cluster.disk(stranger).make_directory("/data")
        alone = {"node.id": str(stranger), "log.dirs": cluster.settings[stranger]["log.dirs"]}
        node = Node(
            cluster.worlds[stranger], BrokerSettings.of({**alone, "listeners": f"PLAINTEXT://node{stranger}:1"})
        )
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        await loop.start_on(cluster.hosts[stranger], node.start())
        await loop.start_on(cluster.hosts[stranger], node.stop())
        with pytest.raises(WrongCluster, match="this node's directories belong to cluster"):
            await cluster.start(stranger)
        del cluster.nodes[stranger]

    story(tell)


def test_two_of_three_nodes_found_no_second_cluster_when_all_come_back_at_once() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        await create(1, "t")
        await has_topic(cluster, "t")
        for number in ALL:
            cluster.kill(number, loses_power=True)
        await asyncio.gather(*(cluster.start(number) for number in ALL))
        assert len({node.cluster_id for node in cluster.nodes.values()}) == 1
        await has_topic(cluster, "t")

    story(tell)


# --- brokers that are not controllers ---------------------------------------------------------------------------------


def test_brokers_beyond_the_controllers_follow_the_quorum_without_a_vote() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        assert voters(cluster) == {ALL}
        for number in (4, 5):
            assert not cluster.nodes[number].services.raft.is_leader
            assert not is_fenced(cluster.nodes[1], number)
        assert (await create(5, "t", partitions=5, replicas=5)).error_code == 0  # forwarded
        await has_topic(cluster, "t")
        await cluster.stop(4)
        await cluster.start(4)
        assert cluster.nodes[4].services.raft.voters.ids == ALL

    async def whole() -> None:
        cluster = SimulatedCluster(1, brokers=5)
        await cluster.start_all()
        await until(lambda: voters(cluster) == {ALL})
        await tell(cluster)
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)


# --- forwarding -------------------------------------------------------------------------------------------------------


def test_any_broker_answers_what_only_the_controller_knows() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        leader = active(cluster)
        for number in ALL:
            created = await create(number, f"by-{number}")
            assert created.error_code == 0
            assert (await create(number, f"by-{number}")).error_code == errors.TOPIC_ALREADY_EXISTS.code
            quorum = await ask(
                number,
                DescribeQuorumRequest(
                    topics=[
                        DescribeQuorumRequest.TopicData(
                            topic_name=METADATA_TOPIC,
                            partitions=[DescribeQuorumRequest.PartitionData(partition_index=0)],
                        )
                    ]
                ),
            )
            row = quorum.topics[0].partitions[0]
            assert (row.leader_id, [each.replica_id for each in row.current_voters]) == (leader, list(ALL))
            assert {node.node_id for node in quorum.nodes} == set(ALL)
            moving = await ask(number, ListPartitionReassignmentsRequest(topics=None))
            assert (moving.error_code, moving.topics) == (0, [])
            elected = await ask(number, ElectLeadersRequest(topic_partitions=None))
            assert elected.error_code == 0
            features = await ask(number, UpdateFeaturesRequest(validate_only=True))
            assert features.error_code == 0
            ids = await ask(number, InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
            assert ids.error_code == 0

    story(tell)


def test_producer_ids_of_different_brokers_are_different() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        given = [(await ask(number, request)).producer_id for number in (*ALL, *ALL)]
        assert len(set(given)) == len(given)

    story(tell)


def test_a_topic_is_made_because_somebody_asked_any_broker_for_it() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        follower = others(cluster, active(cluster))[0]
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name="wanted")], allow_auto_topic_creation=True
        )
        await ask(follower, request)
        await has_topic(cluster, "wanted")
        (row,) = (await ask(follower, request)).topics
        assert row.error_code == 0
        assert len(row.partitions[0].replica_nodes) == 3

    story(tell)


def test_requests_wait_for_a_controller_that_is_being_elected() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        dead = active(cluster)
        cluster.kill(dead)
        assert (await create(others(cluster, dead)[0], "patient", replicas=2)).error_code == 0

    story(tell)


def test_an_envelope_takes_only_what_is_forwarded() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        leader = active(cluster)
        metadata = bytes.fromhex("0003000900000001ffff00")  # header of Metadata version 9
        for data in (metadata, b"", b"\xff" * 20):
            envelope = EnvelopeRequest(
                request_data=data, request_principal=b"\x00\x00\x05User\x02a\x00\x00", client_host_address=bytes(4)
            )
            answer = await ask(leader, envelope, port=CONTROLLER_PORT)
            assert answer.error_code == errors.INVALID_REQUEST.code

    story(tell)


def test_controllers_name_each_other_and_the_active_one() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        leader = active(cluster)
        await until(lambda: sorted(cluster.nodes[1].services.controller.image.controllers) == list(ALL))
        for number in ALL:
            answer = await ask(number, DescribeClusterRequest(endpoint_type=2), port=CONTROLLER_PORT)
            assert (answer.cluster_id, answer.controller_id) == (cluster.nodes[1].cluster_id, leader)
            assert [(each.broker_id, each.host, each.port) for each in answer.brokers] == [
                (each, f"node{each}", CONTROLLER_PORT) for each in ALL
            ]
            wrong = await ask(number, DescribeClusterRequest(endpoint_type=1), port=CONTROLLER_PORT)
            assert wrong.error_code == errors.MISMATCHED_ENDPOINT_TYPE.code

    story(tell)


# --- brokers ----------------------------------------------------------------------------------------------------------


def test_a_silent_broker_is_fenced_and_comes_back() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        silent = others(cluster, active(cluster))[0]
        watcher = cluster.nodes[active(cluster)]
        cluster.pause(silent)
        seconds = await until(lambda: is_fenced(watcher, silent))
        assert 6 < seconds < 12  # broker.session.timeout.ms
        cluster.resume(silent)
        await until(lambda: not is_fenced(watcher, silent))

    story(tell)


def test_a_broker_whose_process_ends_is_fenced_at_once() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        await create(1, "t", partitions=6)
        dead = others(cluster, active(cluster))[0]
        watcher = cluster.nodes[active(cluster)]
        await has_topic(cluster, "t")
        await asyncio.sleep(3)  # it has sent a heartbeat
        cluster.kill(dead)
        assert await until(lambda: is_fenced(watcher, dead)) < 0.5
        assert all(each.leader not in (dead, -1) for each in partitions_of(cluster, "t"))
        loop = asyncio.get_running_loop()
        start = loop.time()
        await cluster.start(dead)
        assert loop.time() - start < 3  # nor does its successor wait

    story(tell)


def test_a_broker_that_only_lost_its_connection_is_not_fenced() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        alive = others(cluster, active(cluster))[0]
        watcher = cluster.nodes[active(cluster)]
        await asyncio.sleep(3)
        for _ in range(20):
            for lane in ("life", "control"):
                found = cluster.nodes[alive]._parts.controller_links._lanes.get((active(cluster), lane))
                if found is not None:
                    found.drop()
            await asyncio.sleep(0.1)
            assert not is_fenced(watcher, alive)

    story(tell)


def test_a_broker_that_is_unregistered_stays_out() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        gone = others(cluster, active(cluster))[0]
        watcher = cluster.nodes[active(cluster)]
        cluster.kill(gone)
        assert (await ask(active(cluster), UnregisterBrokerRequest(broker_id=gone))).error_code == 0
        await until(lambda: gone not in watcher.services.image.brokers)
        again = await ask(active(cluster), UnregisterBrokerRequest(broker_id=gone))
        assert again.error_code == errors.BROKER_ID_NOT_REGISTERED.code
        await cluster.start(gone)  # a new start is a new registration
        assert not is_fenced(watcher, gone)

    story(tell)


def test_a_partition_moves_to_another_broker() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        assert (await create(1, "t", replicas=2)).error_code == 0
        await has_topic(cluster, "t")
        (partition,) = partitions_of(cluster, "t")
        (spare,) = [number for number in ALL if number not in partition.replicas]
        target = [spare, partition.replicas[0]]
        topic = AlterPartitionReassignmentsRequest.ReassignableTopic(
            name="t",
            partitions=[AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=0, replicas=target)],
        )
        answer = await ask(others(cluster, active(cluster))[0], AlterPartitionReassignmentsRequest(topics=[topic]))
        assert answer.responses[0].partitions[0].error_code == 0
        await until(lambda: list(partitions_of(cluster, "t")[0].replicas) == target)
        assert set(partitions_of(cluster, "t")[0].isr) == set(target)

    story(tell)


def test_all_nodes_may_be_stopped_at_once_in_bounded_time() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        await create(1, "t", partitions=3)
        loop = asyncio.get_running_loop()
        start = loop.time()
        nodes = dict(cluster.nodes)
        await asyncio.gather(*(cluster.stop(number) for number in ALL))
        assert loop.time() - start < 30
        assert all(node._lifecycle is not None and node._lifecycle.phase is Phase.GONE for node in nodes.values())

    story(tell)


def test_a_late_node_is_brought_up_by_a_snapshot() -> None:
    async def whole() -> None:
        often = {
            "metadata.log.max.record.bytes.between.snapshots": "300",
            "metadata.log.segment.ms": "1000",
            "metadata.max.retention.bytes": "1",
        }
        cluster = SimulatedCluster(1, settings=often)
        await cluster.start(1, is_founder=True)
        for number in range(8):
            assert (await create(1, f"t{number}", replicas=1)).error_code == 0
            await asyncio.sleep(5)
        await asyncio.sleep(10 * 61)  # the beginning of the log goes, a snapshot at a time
        assert cluster.nodes[1].services.raft._running.machine.log.start_offset > 0
        await asyncio.gather(cluster.start(2), cluster.start(3))
        await until(lambda: voters(cluster) == {ALL})
        await has_topic(cluster, "t0")
        await has_topic(cluster, "t7")
        cluster.kill(1)
        assert (await create(2, "after", replicas=1)).error_code == 0  # who lives on knows enough to decide
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=2000)


def test_the_controller_knows_in_which_directory_a_replica_lies_and_acts_when_it_fails() -> None:
    async def whole() -> None:
        cluster = SimulatedCluster(1)
        for number, given in cluster.settings.items():
            cluster.settings[number] = {**given, "log.dirs": f"{given['log.dirs']},/data/second-{number}"}
        await cluster.start_all()
        assert (await create(1, "t", partitions=6)).error_code == 0
        await has_topic(cluster, "t")

        def is_told() -> bool:
            for number, node in cluster.nodes.items():
                known = node.services.store.directory_ids
                for index, partition in enumerate(partitions_of(cluster, "t")):
                    held = node.services.replicas.by_name["t", index]
                    if partition.directory_of(number) != known[held.log.directory.rpartition("/")[0]]:
                        return False
            return True

        await until(is_told, seconds_max=10)
        await until(lambda: all(len(each.isr) == 3 for each in partitions_of(cluster, "t")))
        hurt = others(cluster, active(cluster))[0]
        node = cluster.nodes[hurt]
        lost = [
            index
            for index in range(6)
            if node.services.replicas.by_name["t", index].log.directory.startswith(f"/data/second-{hurt}/")
        ]
        assert 0 < len(lost) < 6
        node.services.store._take_offline(f"/data/second-{hurt}", DiskFailure(f"/data/second-{hurt}", "it burns"))

        def is_out() -> bool:
            return all(
                (hurt in each.isr) is (index not in lost) for index, each in enumerate(partitions_of(cluster, "t"))
            )

        await until(is_out, seconds_max=10)
        assert all(each.leader not in (-1, hurt) for each in (partitions_of(cluster, "t")[index] for index in lost))
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)
