"""Brokers as the controller sees them: silent, dead, cut off, unregistered, late, and with a directory that fails."""

from __future__ import annotations

import asyncio

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

from barnabas.broker.node.broker_life import Phase
from barnabas.model import errors
from barnabas.testing.loop import simulate
from barnabas.testing.simulated_cluster import SimulatedCluster
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.world.disk import DiskFailure


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
        await until_async(lambda: voters(cluster) == {ALL})
        await tell(cluster)
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)


def test_a_silent_broker_is_fenced_and_comes_back() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        silent = others(cluster, active(cluster))[0]
        watcher = cluster.nodes[active(cluster)]
        cluster.pause(silent)
        seconds = await until_async(lambda: is_fenced(watcher, silent))
        assert 6 < seconds < 12  # broker.session.timeout.ms
        cluster.resume(silent)
        await until_async(lambda: not is_fenced(watcher, silent))

    story(tell)


def test_a_broker_whose_process_ends_is_fenced_at_once() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        await create(1, "t", partitions=6)
        dead = others(cluster, active(cluster))[0]
        watcher = cluster.nodes[active(cluster)]
        await has_topic(cluster, "t")
        await asyncio.sleep(3)  # it has sent a heartbeat
        cluster.kill(dead)
        assert await until_async(lambda: is_fenced(watcher, dead)) < 0.5
        assert all(each.leader not in (dead, -1) for each in partitions_of(cluster, "t"))
        loop = asyncio.get_running_loop()
        start = loop.time()
        await cluster.start(dead)
        assert loop.time() - start < 3  # nor does its successor wait

    story(tell)


def test_a_broker_whose_process_ends_before_a_new_controller_has_heard_of_it_is_fenced_at_once() -> None:
    async def whole() -> None:
        cluster = SimulatedCluster(1, brokers=5)
        await cluster.start_all()
        await until_async(lambda: voters(cluster) == {ALL})
        cluster.kill(active(cluster))
        await until_async(lambda: active(cluster) > 0)
        watcher = cluster.nodes[active(cluster)]
        await asyncio.sleep(0.1)  # it has asked after everybody, and found them well
        cluster.kill(4)
        assert await until_async(lambda: is_fenced(watcher, 4)) < 1
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)


def test_a_broker_that_only_lost_its_connection_is_not_fenced() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        alive = others(cluster, active(cluster))[0]
        watcher = cluster.nodes[active(cluster)]
        await asyncio.sleep(3)
        for _ in range(20):
            for lane in ("life", "control"):
                found = cluster.nodes[alive]._parts.controller_links._lanes.get((active(cluster), lane))
                if found is not None:
                    found.abort()
            await asyncio.sleep(0.1)
            assert not is_fenced(watcher, alive)

    story(tell)


def test_a_broker_that_is_unregistered_stays_out() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        gone = others(cluster, active(cluster))[0]
        watcher = cluster.nodes[active(cluster)]
        cluster.kill(gone)
        assert (await ask(active(cluster), UnregisterBrokerRequest(broker_id=gone))).error_code == 0
        await until_async(lambda: gone not in watcher.services.image.brokers)
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
        await until_async(lambda: list(partitions_of(cluster, "t")[0].replicas) == target)
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
        await until_async(lambda: voters(cluster) == {ALL})
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

        await until_async(is_told, seconds_max=10)
        await until_async(lambda: all(len(each.isr) == 3 for each in partitions_of(cluster, "t")))
        hurt = others(cluster, active(cluster))[0]
        node = cluster.nodes[hurt]
        lost = [
            index
            for index in range(6)
            if node.services.replicas.by_name["t", index].log.directory.startswith(f"/data/second-{hurt}/")
        ]
        assert 0 < len(lost) < 6
        node.services.store.take_offline(f"/data/second-{hurt}", DiskFailure(f"/data/second-{hurt}", "it burns"))

        def is_out() -> bool:
            return all(
                (hurt in each.isr) is (index not in lost) for index, each in enumerate(partitions_of(cluster, "t"))
            )

        await until_async(is_out, seconds_max=10)
        assert all(each.leader not in (-1, hurt) for each in (partitions_of(cluster, "t")[index] for index in lost))
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)
