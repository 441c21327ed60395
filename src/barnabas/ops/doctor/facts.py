"""All that a doctor looks at, asked of a cluster twice, so that what moves is told from what stands.

Nothing is judged here: ``doctor_cluster.py`` and ``doctor_groups.py`` do that, and ask nobody.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.client.admin.configs import Resource, ResourceKind
from barnabas.client.group.lag import Lag, lags
from barnabas.client.offsets import EARLIEST_TIMESTAMP, list_offsets
from barnabas.model.errors import ApiError, BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.ops.transactions import OPEN_STATES, Waiting, find_waiting

if TYPE_CHECKING:
    from barnabas.client.admin.brokers import ClusterDescription, LogDirectory
    from barnabas.client.admin.client import Admin
    from barnabas.client.admin.groups import GroupDescription
    from barnabas.client.admin.quorum import QuorumDescription
    from barnabas.client.admin.transactions import TransactionDescription
    from barnabas.client.cluster.metadata import Broker, TopicMetadata

CONNECT_SECONDS_MAX: Final = 3.0
QUORUM_SECONDS_MAX: Final = 5.0
SETTINGS: Final = ("min.insync.replicas", "unclean.leader.election.enable", "retention.ms", "retention.bytes")


class GroupFacts(NamedTuple):
    group: GroupDescription
    earlier_state: str
    lags: Mapping[TopicPartition, Lag]
    earlier_lags: Mapping[TopicPartition, Lag]
    starts: Mapping[TopicPartition, int]  # where the logs begin


class DiskFacts(NamedTuple):
    broker: int
    directory: LogDirectory
    earlier_bytes: int  # all replicas together, at the first look

    @property
    def bytes(self) -> int:
        return sum(replica.size_bytes for replica in self.directory.replicas.values())


class Facts(NamedTuple):
    cluster: ClusterDescription
    unreachable: Mapping[int, str]  # brokers whose address does not answer, and why
    quorum: QuorumDescription | str  # or why it is not known
    topics: tuple[TopicMetadata, ...] = ()
    settings: Mapping[str, Mapping[str, str]] = {}  # of each topic, those named above
    groups: tuple[GroupFacts, ...] = ()
    transactions: tuple[TransactionDescription, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    disks: tuple[DiskFacts, ...] = ()
    seconds: float = 0.0  # between the two looks
    now_ms: int = 0


async def look(admin: Admin, *, seconds: float, now_ms: int, groups: list[str]) -> Facts:
    """``groups`` are those to look at; none means all.

    The quorum is asked for last: where it is lost, a broker keeps that question, and all behind it on the same
    connection, for half a minute.
    """
    cluster = await admin.describe_cluster()
    unreachable = await _unreachable(cluster)
    if len(unreachable) == len(_alive(cluster)):
        return Facts(cluster, unreachable, await _quorum(admin))  # whatever else is wrong cannot be asked
    topics = await admin.cluster.all_topics()
    if unreachable:
        # Groups and disks would have to be asked of those who do not answer; where replicas are, every broker knows.
        settings = await _settings(admin, [topic.name for topic in topics])
        return Facts(cluster, unreachable, await _quorum(admin), topics=topics, settings=settings)
    names = groups or [group.group_id for group in await admin.list_groups()]
    before = {name: await _group(admin, name) for name in names}
    sizes = {broker.id: await _directories(admin, broker.id) for broker in _alive(cluster)}
    await asyncio.sleep(seconds)
    return Facts(
        cluster=cluster,
        unreachable={},
        topics=topics,
        settings=await _settings(admin, [topic.name for topic in topics]),
        groups=tuple([await _looked_again(admin, *before[name]) for name in names]),
        transactions=await _transactions(admin),
        waiting=tuple([each for name in _lagging(before) for each in await find_waiting(admin, name, None)]),
        disks=tuple(
            [
                DiskFacts(broker, directory, _bytes_of(sizes[broker].get(directory.path)))
                for broker in sizes
                for directory in (await _directories(admin, broker)).values()
            ]
        ),
        seconds=seconds,
        now_ms=now_ms,
        quorum=await _quorum(admin),
    )


async def _quorum(admin: Admin) -> QuorumDescription | str:
    try:
        async with asyncio.timeout(QUORUM_SECONDS_MAX):
            return await admin.describe_quorum()
    except TimeoutError:
        return f"nobody answers for it within {QUORUM_SECONDS_MAX:g} s"
    except BarnabasError as error:
        return str(error)


def _alive(cluster: ClusterDescription) -> list[Broker]:
    return [broker for broker in cluster.brokers if broker.id not in cluster.fenced]


async def _unreachable(cluster: ClusterDescription) -> dict[int, str]:
    found = {}
    for broker in cluster.brokers:
        if broker.id in cluster.fenced:
            continue
        try:
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                _, writer = await asyncio.open_connection(broker.host, broker.port)
            writer.close()
        except TimeoutError:
            found[broker.id] = f"no answer within {CONNECT_SECONDS_MAX:g} s"
        except OSError as error:
            found[broker.id] = os.strerror(error.errno) if error.errno else str(error)
    return found


async def _group(admin: Admin, name: str) -> tuple[GroupDescription, dict[TopicPartition, Lag]]:
    offsets = await admin.group_offsets(name)
    return await admin.describe_group(name), await lags(
        admin.cluster, {place: entry.offset for place, entry in offsets.items()}
    )


async def _looked_again(admin: Admin, before: GroupDescription, earlier: Mapping[TopicPartition, Lag]) -> GroupFacts:
    group, now = await _group(admin, before.group_id)
    starts = await list_offsets(admin.cluster, dict.fromkeys(now, EARLIEST_TIMESTAMP)) if now else {}
    return GroupFacts(group, before.state, now, earlier, {place: entry.offset for place, entry in starts.items()})


def _lagging(before: Mapping[str, tuple[GroupDescription, Mapping[TopicPartition, Lag]]]) -> list[str]:
    """The topics in which some group is behind: an open transaction may be why."""
    return sorted({place.topic for _, found in before.values() for place, lag in found.items() if lag.records})


async def _settings(admin: Admin, topics: list[str]) -> dict[str, dict[str, str]]:
    described = await admin.describe_configs([Resource(ResourceKind.TOPIC, name) for name in topics])
    return {
        resource.name: {name: entries[name].value or "" for name in SETTINGS if name in entries}
        for resource, entries in described.items()
        if not isinstance(entries, ApiError)
    }


async def _transactions(admin: Admin) -> tuple[TransactionDescription, ...]:
    listed = await admin.list_transactions(states=OPEN_STATES)
    described = await admin.describe_transactions([each.transactional_id for each in listed]) if listed else {}
    return tuple(each for each in described.values() if not isinstance(each, ApiError))


async def _directories(admin: Admin, broker: int) -> dict[str, LogDirectory]:
    return {directory.path: directory for directory in await admin.describe_log_dirs(broker, include_state=True)}


def _bytes_of(directory: LogDirectory | None) -> int:
    return 0 if directory is None else sum(replica.size_bytes for replica in directory.replicas.values())
