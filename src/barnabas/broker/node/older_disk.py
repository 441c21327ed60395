"""Notices a disk that is older than what its node has run on before: a copy or a snapshot that was put back.

A voter whose vote and log went back could vote twice, or be counted for records that it lacks; so could a broker for
those of its partitions. Two witnesses are heard: the quorum's leader, before this replica takes part, on what the
replica has acknowledged to it; and the cluster's metadata, before the broker registers, on the process that registered
last, which leaves its name on each directory first. The node asks; nobody else does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from barnabas.broker.settings.cluster import Server
from barnabas.metadata.brokers_image import BrokerImage
from barnabas.model.errors import ApiError, BarnabasError, Malformed
from barnabas.model.ids import METADATA_TOPIC, Uuid
from barnabas.observe.log import logger
from barnabas.raft.driver import NotLeader, RaftDriver
from barnabas.raft.events import QuorumState
from barnabas.raft.voters import ReplicaKey
from barnabas.transport.channel import PeerGone
from barnabas.transport.links import Links
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from barnabas.world.disk import Disk, DiskFull, replace

log = logger("older_disk")

INCARNATIONS_FILE: Final = ".barnabas_incarnations"
INCARNATIONS_MAX: Final = 100  # the one that is known to be registered, and those that have tried since
INCARNATIONS_BYTES_MAX: Final = 64 * 1024
ASK_MS_MAX: Final = 1000
CATCH_UP_MS_MAX: Final = 10_000
DIRECTORIES_SINCE: Final = 2

_REMEDY: Final = "put the newest directories back, or empty all of this node's, and it joins as new"


class OlderDisk(BarnabasError):
    """A directory that does not have what this node has had on it before."""


class LeaderAccount(NamedTuple):
    """What a leader of the quorum knows: up to where the log of each replica is durable, if it fetched in the epoch."""

    leader_id: int
    epoch: int
    high_watermark: int
    voters: Mapping[ReplicaKey, int]
    observers: Mapping[ReplicaKey, int]


def check_replica(account: LeaderAccount | None, key: ReplicaKey, state: QuorumState, end_offset: int) -> None:
    """OlderDisk, unless a replica with this state and log can be the one that the leader has heard of.

    In the leader's epoch it has followed the leader, so its log can only have grown; in a later one, others may have
    had it cut. An observer that has lost its metadata log and no more may fetch it again.
    """
    if account is None:
        return
    acknowledged = account.voters.get(key, account.observers.get(key, -1) if end_offset > 0 else -1)
    epoch = state.epoch
    if acknowledged < 0 or epoch > account.epoch or (epoch == account.epoch and end_offset >= acknowledged):
        return
    raise OlderDisk(
        f"the metadata log of node {key.id} ends at {end_offset} in epoch {epoch}, but with this directory "
        f"({key.directory_id}) it has acknowledged up to {acknowledged} in epoch {account.epoch} to the leader, node "
        f"{account.leader_id}: the disk is older than what it ran on, and could vote twice; {_REMEDY}"
    )


async def catch_up(account: LeaderAccount | None, raft: RaftDriver) -> None:
    """Until this node's picture of the cluster is as new as the leader's was; within bounds, since it may be alone."""
    if account is not None:
        with suppress(TimeoutError, NotLeader):
            async with asyncio.timeout(CATCH_UP_MS_MAX / 1000):
                await raft.wait_delivered(account.high_watermark - 1)


async def ask_leader(links: Links, servers: Iterable[Server]) -> LeaderAccount | None:
    """The account of whoever leads; None if no leader answers, as when a whole cluster starts."""
    answers = await asyncio.gather(*(_ask(links, server) for server in servers))
    return max((each for each in answers if each is not None), key=lambda each: each.epoch, default=None)


async def _ask(links: Links, server: Server) -> LeaderAccount | None:
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    try:
        async with asyncio.timeout(ASK_MS_MAX / 1000):
            channel, ranges = await links.dial(*server)
            try:
                version = ranges.highest_common(DescribeQuorumRequest)
                if version < DIRECTORIES_SINCE:
                    return None
                answer = await channel.send(DescribeQuorumRequest(topics=[topic]), version)
            finally:
                channel.close()
    except (PeerGone, TimeoutError, ApiError, Malformed):
        return None
    assert isinstance(answer, DescribeQuorumResponse)
    rows = [row for each in answer.topics for row in each.partitions if not row.error_code]
    if answer.error_code or len(rows) != 1:
        return None
    (row,) = rows
    return LeaderAccount(
        row.leader_id, row.leader_epoch, row.high_watermark, _offsets(row.current_voters), _offsets(row.observers)
    )


def _offsets(rows: Iterable[DescribeQuorumResponse.ReplicaState]) -> dict[ReplicaKey, int]:
    return {ReplicaKey(row.replica_id, row.replica_directory_id): row.log_end_offset for row in rows}


class Incarnations:
    """The processes that may be the last to have registered this broker, as each of its directories knows them.

    A process puts itself on the list before it registers, and takes the others off when it knows that it is. A
    directory without a list is not judged: it comes from a version that wrote none. Nor is any if the last process was
    Kafka, or such a version: it is in the metadata that it has left here, and not on the list beside them.
    """

    def __init__(self, disk: Disk, directories: Mapping[str, Uuid], own: Uuid, metadata_end: int) -> None:
        """``metadata_end``: of the metadata log as this start has found it, in the first of the directories."""
        self._disk = disk
        self._directories = dict(directories)
        self._own = own
        self._metadata_end = metadata_end

    async def add(self, *, known: BrokerImage | None) -> None:
        """Before the broker registers. ``known``: as the cluster has it, from before this process."""
        self._check(known)
        for path in sorted(self._directories):
            names = self._read(path)
            await self._write(path, [*names[:1], *names[1:][-(INCARNATIONS_MAX - 2) :], str(self._own)])

    async def settle(self) -> None:
        """The broker is registered as this process."""
        for path in sorted(self._directories):
            await self._write(path, [str(self._own)])

    def _check(self, known: BrokerImage | None) -> None:
        if known is None or known.incarnation_id == self._own or self._wrote_no_list(known):
            return
        for path, directory_id in sorted(self._directories.items()):
            names = self._read(path)
            if directory_id in known.directories and names and str(known.incarnation_id) not in names:
                raise OlderDisk(
                    f"{path}: broker {known.id} has run with this directory ({directory_id}) in broker epoch "
                    f"{known.epoch}, and the directory knows nothing of it: the disk is older than that; {_REMEDY}. If "
                    f"there is no newer one, remove {INCARNATIONS_FILE} from it: then it is taken as it is"
                )

    def _wrote_no_list(self, known: BrokerImage) -> bool:
        """Whether the last process has run on these directories and noted that in none; its epoch is an offset."""
        first = next(iter(self._directories), None)
        has_run_here = known.epoch < self._metadata_end
        return first is not None and has_run_here and str(known.incarnation_id) not in self._read(first)

    def _read(self, path: str) -> list[str]:
        file = f"{path}/{INCARNATIONS_FILE}"
        if not self._disk.exists(file):
            return []
        return self._disk.read_all(file, size_bytes_max=INCARNATIONS_BYTES_MAX).decode("ascii", "replace").split()

    async def _write(self, path: str, names: list[str]) -> None:
        file = f"{path}/{INCARNATIONS_FILE}"
        try:
            await replace(self._disk, file, "".join(f"{name}\n" for name in names).encode())
        except DiskFull as error:
            # Better no list than one that lacks a name: the next start would take the disk for an older one.
            log.warning("no room to note which process runs here", directory=path, reason=error)
            self._disk.remove(file)
            await self._disk.sync_directory(path)
