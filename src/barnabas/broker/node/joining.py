"""Which cluster a starting node belongs to: the one its directories name, one that it is told of, or a new one.

There is no format step, so this decides what Kafka's would. A new cluster is founded only where the directories are
empty and there is nobody to ask, or where that is wished and nobody who was asked belongs to a cluster. Everything else
joins: as an observer with a directory id of its own, so a wiped disk can never vote twice. The node asks before it
opens its store; being made a voter afterwards is the quorum's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple

from barnabas.broker.settings.cluster import ClusterSettings, Server
from barnabas.model.errors import ApiError, BarnabasError, Malformed, error_of
from barnabas.model.ids import METADATA_TOPIC, TopicPartition
from barnabas.observe.log import logger
from barnabas.raft.driver import RaftDriver
from barnabas.raft.voters import ReplicaKey, VoterSet
from barnabas.storage.identity import PARTITION_METADATA_FILE, read_meta_properties
from barnabas.transport.channel import PeerGone
from barnabas.transport.links import Links
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.world.disk import Disk
from barnabas.world.entropy import Entropy
from barnabas.world.timers import Timers

log = logger("joining")

CONTROLLERS: Final = 2  # the kind of endpoint
CONTROLLERS_SINCE: Final = 1
METADATA_DIRECTORY: Final = str(TopicPartition(METADATA_TOPIC, 0))
ASK_MS_MAX: Final = 1000  # for one server
PAUSE_MS: Final = 200
REMIND_EVERY: Final = 25  # rounds of questions without an answer
VOTER_MS_MAX: Final = 15_000  # how long a start waits to be made a voter


class WrongCluster(BarnabasError):
    """This node's directories and the controllers it is told of do not go together."""


class CannotAsk(WrongCluster):
    """Somebody answers where a controller should be, but not what a controller answers."""


class Home(NamedTuple):
    """What the directories of a node hold."""

    cluster_id: str | None
    has_metadata: bool
    has_partitions: bool
    directories: tuple[str, ...] = ()


class Membership(NamedTuple):
    cluster_id: str
    is_founder: bool  # the first voter, if the metadata log is empty


Ask = Callable[[Server], Awaitable[str | None]]


def look_at(disk: Disk, log_dirs: Sequence[str]) -> Home:
    """The first directory is the one of the metadata log."""
    cluster_id, has_partitions = None, False
    for directory in log_dirs:
        properties = read_meta_properties(disk, directory)
        if properties is not None and cluster_id is None:
            cluster_id = properties.cluster_id
        has_partitions = has_partitions or _has_partitions(disk, directory)
    metadata = f"{log_dirs[0]}/{METADATA_DIRECTORY}"
    has_metadata = disk.is_directory(metadata) and any(
        name.endswith((".log", ".checkpoint")) for name in disk.list(metadata)
    )
    return Home(cluster_id, has_metadata, has_partitions, tuple(log_dirs))


def _has_partitions(disk: Disk, directory: str) -> bool:
    if not disk.is_directory(directory):
        return False
    return any(
        name != METADATA_DIRECTORY and disk.exists(f"{directory}/{name}/{PARTITION_METADATA_FILE}")
        for name in disk.list(directory)
    )


def ask_over(links: Links) -> Ask:
    """Asks a controller for its cluster over a connection of its own; None if it does not answer."""

    async def ask(server: Server) -> str | None:
        try:
            async with asyncio.timeout(ASK_MS_MAX / 1000):
                channel, ranges = await links.dial(*server)
                try:
                    version = ranges.highest_common(DescribeClusterRequest)
                    if version < CONTROLLERS_SINCE:
                        raise CannotAsk(f"{server} is no controller that this version could join")
                    answer = await channel.send(DescribeClusterRequest(endpoint_type=CONTROLLERS), version)
                finally:
                    channel.close()
        except (PeerGone, TimeoutError):
            return None
        except (ApiError, Malformed) as error:
            raise CannotAsk(f"{server} cannot be asked for its cluster: {error}") from error
        assert isinstance(answer, DescribeClusterResponse)
        if answer.error_code:
            raise CannotAsk(
                f"{server} cannot be asked for its cluster, {error_of(answer.error_code).name}: is that the address of "
                "a controller's listener?"
            )
        return answer.cluster_id

    return ask


async def find_cluster(home: Home, settings: ClusterSettings, *, ask: Ask, entropy: Entropy) -> Membership:
    """Where the node belongs; WrongCluster, with a sentence, where it must not start."""
    servers = settings.bootstrap_servers
    if home.cluster_id is not None:
        _check_metadata(home, has_servers=bool(servers))
        await _check_same_cluster(home.cluster_id, servers, ask)
        return Membership(home.cluster_id, is_founder=not home.has_metadata and not servers)
    if home.has_partitions:
        where = ", ".join(home.directories) or "the directories"
        raise WrongCluster(f"{where}: there are partitions, but not of which cluster: meta.properties is gone")
    if not servers:
        return _found(entropy)
    for count in range(1 << 62):
        found = await _clusters(servers, ask)
        if found:
            cluster_id = _only(found)
            log.info("joins a cluster as a new node", cluster_id=cluster_id, told_by=str(next(iter(found))))
            return Membership(cluster_id, is_founder=False)
        if settings.may_found_cluster:
            if not settings.is_controller:
                raise WrongCluster("barnabas.new.cluster: only a controller can found a cluster")
            return _found(entropy)
        if count % REMIND_EVERY == 0:
            log.warning("no controller answers yet; asking again", servers=",".join(map(str, servers)))
        await asyncio.sleep(PAUSE_MS / 1000)
    raise AssertionError("nobody waits so long")


def _found(entropy: Entropy) -> Membership:
    cluster_id = str(entropy.uuid())
    log.info("founds a new cluster", cluster_id=cluster_id)
    return Membership(cluster_id, is_founder=True)


def _check_metadata(home: Home, *, has_servers: bool) -> None:
    if not home.has_metadata and home.has_partitions and not has_servers:
        # A new metadata log would know of none of them, and what belongs to no topic is removed.
        raise WrongCluster(
            f"the metadata log of cluster {home.cluster_id} is gone from the first directory, but there are partitions "
            "in the others: restore it, or name the cluster's controllers in controller.quorum.bootstrap.servers"
        )


async def _check_same_cluster(cluster_id: str, servers: Iterable[Server], ask: Ask) -> None:
    async def ask_if_possible(server: Server) -> str | None:
        try:
            return await ask(server)
        except CannotAsk as error:
            log.warning("a controller is not what it should be", reason=error)  # a node that has a cluster needs it not
            return None

    for server, theirs in (await _clusters(servers, ask_if_possible)).items():
        if theirs != cluster_id:
            raise WrongCluster(
                f"this node's directories belong to cluster {cluster_id}, but the controller at {server} to {theirs}: "
                "start it with the directories of that cluster, or with empty ones to join it as new"
            )


async def _clusters(servers: Iterable[Server], ask: Ask) -> dict[Server, str]:
    """What those servers say that answer."""
    asked = tuple(servers)
    answers = await asyncio.gather(*(ask(server) for server in asked))
    return {server: answer for server, answer in zip(asked, answers, strict=True) if answer}


def _only(found: dict[Server, str]) -> str:
    clusters = set(found.values())
    if len(clusters) > 1:
        told = ", ".join(f"{server} to {cluster_id}" for server, cluster_id in found.items())
        raise WrongCluster(f"the servers to ask belong to different clusters: {told}")
    return clusters.pop()


def check_voters(voters: VoterSet, local: ReplicaKey, home: Sequence[str], *, is_alone: bool) -> None:
    """Refuse to wait for a leader that there can never be: nobody votes, or this node alone and with another disk."""
    if not voters and is_alone:
        raise WrongCluster(
            f"{home[0]}/{METADATA_DIRECTORY} names no voter: its log and its snapshots are gone or damaged, and there "
            "is no other controller to ask; put them back from a copy, or move the data directories away to begin anew"
        )
    if voters.ids == (local.id,) and not voters.is_voter(local):
        raise WrongCluster(
            f"{home[0]}/meta.properties: directory.id is {local.directory_id}, but the metadata log beside it knows "
            f"{voters.voters[0].key.directory_id} as the only voter, so nobody could ever be elected; "
            "put that one into the file if the directory is the one it was"
        )


def standing(voters: VoterSet, key: ReplicaKey) -> str:
    """What this node is in the quorum, as a sentence for the log."""
    voter = voters.get(key.id)
    if voter is None:
        return "it follows the quorum without a vote"
    if voter.is_replica(key):
        return "it is a voter"
    return (
        f"its disk is not the one that votes for node {key.id}: that was {voter.key.directory_id}, this is "
        f"{key.directory_id}; it has joined as new"
    )


async def until_voter(raft: RaftDriver, timers: Timers, cluster: ClusterSettings) -> None:
    """Wait until a controller that joins others is a voter: until then the loss of one voter may be one too many."""
    if not (cluster.is_controller and cluster.bootstrap_servers and cluster.raft.auto_join_enable):
        return
    changed = asyncio.Event()
    raft.on_voters = changed.set
    deadline = timers.after(VOTER_MS_MAX, changed.set)
    while not raft.voters.is_voter(raft.local.key):
        if not deadline.is_pending:
            log.warning("this controller has no vote yet", within_ms=VOTER_MS_MAX)
            break
        changed.clear()
        await changed.wait()
    deadline.cancel()
