"""A node that is started on an older copy of its own disk is refused, with a sentence; right disks never are."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from waiting import until_async

from barnabas.broker.node.node import Node
from barnabas.broker.node.older_disk import INCARNATIONS_FILE, OlderDisk
from barnabas.testing.loop import simulate
from barnabas.testing.simulated_cluster import DATA, SimulatedCluster
from barnabas.world.memory import MemoryDisk

VIRTUAL_SECONDS_MAX = 600.0
FILE_BYTES_MAX = 1 << 24

Copy = dict[str, bytes | None]  # None: a directory


def copy_of(disk: MemoryDisk, path: str = DATA) -> Copy:
    found: Copy = {}
    for name in disk.list(path):
        child = f"{path}/{name}"
        if disk.is_directory(child):
            found |= {child: None, **copy_of(disk, child)}
        else:
            found[child] = disk.read_all(child, size_bytes_max=FILE_BYTES_MAX)
    return found


def put_back(disk: MemoryDisk, copy: Copy) -> None:
    disk.remove_tree(DATA)
    disk.make_directory(DATA)
    for path, content in copy.items():
        if content is None:
            disk.make_directory(path)
        else:
            file = disk.open(path, create=True)
            file.append(content)
            file.close()
    disk.sync_all()


def active(cluster: SimulatedCluster) -> int:
    (number,) = [number for number, node in cluster.nodes.items() if node.services.controller.is_active]
    return number


def is_unfenced(node: Node, number: int) -> bool:
    known = node.services.image.brokers.get(number)
    return known is not None and not known.is_fenced


async def refusal(cluster: SimulatedCluster, number: int) -> str:
    with pytest.raises(OlderDisk) as refused:
        await cluster.start(number)
    del cluster.nodes[number]
    return str(refused.value)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_voter_whose_log_went_back_is_refused(is_killed: bool) -> None:
    async def whole() -> None:
        cluster = SimulatedCluster(1, brokers=3)
        await cluster.start_all()
        number = next(each for each in cluster.hosts if each != active(cluster))
        if is_killed:
            copy = copy_of(cluster.disk(number))  # as a snapshot of a volume is taken, while the node runs
        else:
            await cluster.stop(number)
            copy = copy_of(cluster.disk(number))
            await cluster.start(number)
        await asyncio.sleep(5)  # it goes on acknowledging: the controller writes at least twice a second
        cluster.kill(number)
        put_back(cluster.disk(number), copy)
        said = await refusal(cluster, number)
        assert f"the metadata log of node {number} ends at" in said
        assert "could vote twice" in said
        assert "empty all of this node's, and it joins as new" in said
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)


def test_a_disk_from_before_the_last_process_is_refused_by_any_leader() -> None:
    async def whole() -> None:
        cluster = SimulatedCluster(1, brokers=3)
        await cluster.start_all()
        leader = active(cluster)
        number = next(each for each in cluster.hosts if each != leader)
        await cluster.stop(number)
        copy = copy_of(cluster.disk(number))
        await cluster.start(number)
        epoch = cluster.nodes[number].services.image.brokers[number].epoch
        await cluster.stop(number)
        await cluster.stop(leader)  # whoever leads after this has heard nothing of that replica
        await cluster.start(leader)
        put_back(cluster.disk(number), copy)
        said = await refusal(cluster, number)
        assert f"broker {number} has run with this directory" in said
        assert f"in broker epoch {epoch}, and the directory knows nothing of it" in said
        # Without the list it is taken as it is, if there is nothing better; emptied, it joins as new.
        for path in [path for path in copy if path.endswith(INCARNATIONS_FILE)]:
            cluster.disk(number).remove(path)
        await cluster.start(number)
        await until_async(lambda: is_unfenced(cluster.nodes[leader], number))
        cluster.kill(number)
        put_back(cluster.disk(number), {})
        await cluster.start(number)
        await until_async(lambda: is_unfenced(cluster.nodes[leader], number))
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)


def test_a_disk_on_which_another_version_has_run_is_taken() -> None:
    """Apache Kafka, or a version that knew nothing of this: the newest process is in the metadata, and on no list."""

    async def whole() -> None:
        cluster = SimulatedCluster(1, brokers=3)
        await cluster.start_all()
        number = next(each for each in cluster.hosts if each != active(cluster))
        await cluster.stop(number)
        disk = cluster.disk(number)
        before = {path: content for path, content in copy_of(disk).items() if path.endswith(INCARNATIONS_FILE)}
        assert before
        await cluster.start(number)
        await cluster.stop(number)
        for path, content in before.items():
            assert content is not None
            disk.remove(path)
            disk.open(path, create=True).append(content)
        await cluster.start(number)
        await until_async(lambda: is_unfenced(cluster.nodes[number], number))
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
def test_a_node_that_dies_at_any_moment_of_its_start_is_taken_back(seed: int) -> None:
    async def whole() -> None:
        chance = Random(seed)
        cluster = SimulatedCluster(seed, brokers=3)
        await cluster.start_all()
        for _ in range(4):
            number = chance.choice(sorted(cluster.hosts))
            cluster.kill(number, loses_power=chance.random() < 0.5)
            for _ in range(chance.randrange(4)):
                start = cluster.begin(number)
                await asyncio.sleep(chance.uniform(0, 0.3))
                start.cancel()
                cluster.kill(number, loses_power=chance.random() < 0.5)
            await cluster.start(number)
        await cluster.stop_all()

    simulate(whole, seed=seed, time_s_max=VIRTUAL_SECONDS_MAX)
