"""A node founds a cluster only where nobody could be harmed by it, and joins or refuses everywhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random

import pytest

from barnabas.broker.node.joining import CannotAsk, Home, Membership, WrongCluster, find_cluster, look_at, standing
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.cluster import ClusterSettings, Server
from barnabas.model.ids import Uuid
from barnabas.raft.voters import ReplicaKey, Voter, VoterSet
from barnabas.storage.identity import MetaProperties, write_meta_properties
from barnabas.testing.world import SeededEntropy
from barnabas.world.memory import MemoryDisk
from barnabas.world.real import RealClock

EMPTY = Home(None, has_metadata=False, has_partitions=False)
ONE, TWO = Server("one", 1), Server("two", 2)


def settings(**more: str) -> ClusterSettings:
    given = {"listeners": "PLAINTEXT://h:1,CONTROLLER://h:2", **{key.replace("_", "."): v for key, v in more.items()}}
    return BrokerSettings.of(given).cluster


def joining(**more: str) -> ClusterSettings:
    return settings(controller_quorum_bootstrap_servers="one:1,two:2", **more)


def found(home: Home, cluster: ClusterSettings, answers: Mapping[Server, str | None] | None = None) -> Membership:
    async def ask(server: Server) -> str | None:
        return (answers or {}).get(server)

    async def bounded() -> Membership:
        async with asyncio.timeout(0.5):
            return await find_cluster(home, cluster, ask=ask, entropy=SeededEntropy(Random(1)))

    return asyncio.run(bounded())


def test_a_node_with_nobody_to_ask_founds_a_cluster() -> None:
    assert found(EMPTY, settings()).is_founder


def test_of_the_voters_of_a_static_quorum_the_first_founds_the_cluster_and_the_others_join_it() -> None:
    voters = {"controller_quorum_voters": "1@me:1,2@one:1,3@two:2"}
    assert found(EMPTY, settings(**voters)).is_founder
    assert found(EMPTY, settings(**voters), {TWO: "theirs"}) == ("theirs", False)
    me = Server("me", 1)
    assert found(EMPTY, settings(node_id="2", **voters), {me: "theirs"}) == ("theirs", False)
    with pytest.raises(TimeoutError):
        found(EMPTY, settings(node_id="2", **voters))


def test_a_node_with_a_cluster_stays_in_it() -> None:
    home = Home("mine", has_metadata=True, has_partitions=True)
    assert found(home, settings()) == ("mine", False)
    assert found(home, joining()) == ("mine", False)  # nobody answers, and that is no reason to wait


def test_an_empty_node_joins_the_cluster_that_it_is_told_of() -> None:
    assert found(EMPTY, joining(), {TWO: "theirs"}) == ("theirs", False)


def test_a_wish_for_a_new_cluster_does_not_found_a_second_one() -> None:
    assert found(EMPTY, joining(barnabas_new_cluster="true"), {TWO: "theirs"}) == ("theirs", False)


def test_a_wish_for_a_new_cluster_founds_one_where_nobody_answers() -> None:
    assert found(EMPTY, joining(barnabas_new_cluster="true")).is_founder


def test_an_empty_node_waits_for_somebody_to_answer() -> None:
    async def story() -> Membership:
        calls = 0

        async def ask(server: Server) -> str | None:
            nonlocal calls
            calls += 1
            return "late" if calls > 2 else None

        return await find_cluster(EMPTY, joining(), ask=ask, entropy=SeededEntropy(Random(1)))

    assert asyncio.run(story()) == ("late", False)


def test_a_start_that_failed_before_the_metadata_log_was_made_is_repeated() -> None:
    assert found(Home("mine", has_metadata=False, has_partitions=False), settings()) == ("mine", True)


@pytest.mark.parametrize(
    ("home", "answers", "sentence"),
    [
        (Home("mine", True, True), {ONE: "theirs"}, "belong to cluster mine, but the controller at one:1 to theirs"),
        (EMPTY, {ONE: "this", TWO: "that"}, "different clusters: one:1 to this, two:2 to that"),
        (Home(None, False, True), {}, "meta.properties is gone"),
    ],
)
def test_what_does_not_go_together_is_refused(home: Home, answers: Mapping[Server, str], sentence: str) -> None:
    with pytest.raises(WrongCluster, match=sentence):
        found(home, joining(), answers)


def test_a_server_that_is_no_controller_stops_only_those_who_need_one() -> None:
    async def ask(server: Server) -> str | None:
        raise CannotAsk(f"{server} is no controller")

    async def story(home: Home) -> Membership:
        return await find_cluster(home, joining(), ask=ask, entropy=SeededEntropy(Random(1)))

    assert asyncio.run(story(Home("mine", has_metadata=True, has_partitions=True))) == ("mine", False)
    with pytest.raises(WrongCluster, match="one:1 is no controller"):
        asyncio.run(story(EMPTY))


def test_a_lost_metadata_log_does_not_cost_the_partitions() -> None:
    with pytest.raises(WrongCluster, match="restore it"):
        found(Home("mine", has_metadata=False, has_partitions=True), settings())


def test_directories_say_what_they_hold() -> None:
    async def story() -> None:
        disk = MemoryDisk(RealClock())
        both = ("/a", "/b")
        assert look_at(disk, both) == EMPTY._replace(directories=both)
        disk.make_directory("/a/__cluster_metadata-0")
        disk.make_directory("/b/t-0")
        disk.open("/b/t-0/partition.metadata", create=True).close()
        await write_meta_properties(disk, "/b", MetaProperties("mine", 1, None))
        assert look_at(disk, both) == Home("mine", has_metadata=False, has_partitions=True, directories=both)
        disk.open("/a/__cluster_metadata-0/00000000000000000000.log", create=True).close()
        assert look_at(disk, both).has_metadata

    asyncio.run(story())


def test_a_node_is_told_where_it_stands_in_the_quorum() -> None:
    mine, other = ReplicaKey(1, Uuid(b"1" * 16)), ReplicaKey(1, Uuid(b"2" * 16))
    assert standing(VoterSet.of(Voter(mine)), mine) == "it is a voter"
    assert "without a vote" in standing(VoterSet(), mine)
    assert "it has joined as new" in standing(VoterSet.of(Voter(other)), mine)
