"""The quorum and its controller, three nodes in virtual time: elections, failover, restarts, voters that come and go.

The production code runs unchanged on simulated hosts, so a session of nine seconds costs a moment. What replication
keeps through all this is shown in ``test_cluster``.
"""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from control_story import (
    ALL,
    VIRTUAL_SECONDS_MAX,
    active,
    ask,
    create,
    has_topic,
    is_fenced,
    others,
    partitions_of,
    story,
    voters,
)
from waiting import until_async

from barnabas.broker.node.joining import WrongCluster
from barnabas.broker.node.node import Node
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.model import errors
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.simulated_cluster import CONTROLLER_PORT, SimulatedCluster
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest


def test_nodes_that_join_become_voters_and_brokers() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        assert voters(cluster) == {ALL}
        for node in cluster.nodes.values():
            assert not any(is_fenced(node, number) for number in ALL)
        await until_async(lambda: sorted(cluster.nodes[1].services.controller.image.controllers) == list(ALL))

    story(tell)


def test_another_controller_takes_over_when_the_active_one_dies() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        await create(2, "before")
        dead = active(cluster)
        cluster.kill(dead)
        seconds = await until_async(lambda: active(cluster) not in (-1, dead))
        assert seconds < 1  # nothing listens where it was, so nobody waits for its fetch timeout
        alive = others(cluster, dead)
        assert (await create(alive[0], "after", replicas=2)).error_code == 0
        await has_topic(cluster, "before")
        # Nor for its broker's session, although the new controller never had a connection from it.
        assert await until_async(lambda: is_fenced(cluster.nodes[alive[0]], dead)) < 1
        await cluster.start(dead)
        await has_topic(cluster, "after")
        await until_async(lambda: not is_fenced(cluster.nodes[dead], dead), seconds_max=1)

    story(tell)


def test_a_frozen_controller_finds_its_successor_when_it_wakes() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        frozen = active(cluster)
        cluster.pause(frozen)
        await until_async(
            lambda: any(cluster.nodes[number].services.controller.is_active for number in ALL if number != frozen)
        )
        alive = [number for number in ALL if number != frozen]
        assert (await create(alive[0], "meanwhile", replicas=2)).error_code == 0
        await asyncio.sleep(15)
        cluster.resume(frozen)
        await until_async(lambda: active(cluster) in alive)
        await has_topic(cluster, "meanwhile")
        await until_async(lambda: not is_fenced(cluster.nodes[alive[0]], frozen))

    story(tell)


def test_a_controller_cut_off_from_the_others_decides_nothing() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        lonely = active(cluster)
        cluster.cut_off(lonely)
        topic = CreateTopicsRequest.CreatableTopic(name="lost", num_partitions=1, replication_factor=1)
        answer = await ask(lonely, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        assert answer.topics[0].error_code == errors.REQUEST_TIMED_OUT.code
        await until_async(lambda: active(cluster) not in (-1, lonely))
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
            await until_async(partial(is_fenced, watcher, number), seconds_max=1)
            partitions = watcher.services.image.topics.by_name["t"].partitions
            assert all(partition.leader not in (number, -1) for partition in partitions)
            loop = asyncio.get_running_loop()
            start = loop.time()
            await cluster.start(number)
            assert loop.time() - start < 3  # nobody waits for the session of one that has said goodbye
            await until_async(lambda: active(cluster) != -1)
            await until_async(lambda: all(len(each.isr) == 3 for each in partitions_of(cluster, "t")))

    story(tell)


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
        await until_async(lambda: voters(cluster) == {ALL})
        assert (await ask(3, request_to_add(cluster, 3))).error_code == errors.DUPLICATE_VOTER.code
        key = request_to_add(cluster, 1).voter_directory_id
        assert (
            await ask(2, RemoveRaftVoterRequest(cluster_id=None, voter_id=1, voter_directory_id=key))
        ).error_code == 0
        await until_async(lambda: voters(cluster) == {(2, 3)})
        await until_async(lambda: active(cluster) in (2, 3))  # the one that was removed leads no more
        unknown = await ask(1, RemoveRaftVoterRequest(cluster_id=None, voter_id=9, voter_directory_id=key))
        assert unknown.error_code == errors.VOTER_NOT_FOUND.code
        foreign = await ask(1, RemoveRaftVoterRequest(cluster_id="x", voter_id=2, voter_directory_id=key))
        assert foreign.error_code == errors.INCONSISTENT_CLUSTER_ID.code
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)


def test_a_leader_that_was_wiped_says_once_that_its_peers_take_it_for_what_it_was(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        wiped = active(cluster)
        cluster.lose_disk(wiped)
        await cluster.start(wiped)
        await until_async(lambda: voters(cluster) == {ALL})

    story(tell)
    said = [record.getMessage() for record in caplog.records if "quorum_unsound" in record.getMessage()]
    assert said
    assert len(said) == len(set(said))


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

        await until_async(lambda: voters(cluster) == {ALL} and is_another())
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
