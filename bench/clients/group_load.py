"""Members of classic groups, as a program: one group that rebalances, or many groups that come to be and stay.

`rebalance` lets the leader join again, everybody else hear of it and join, and all sync: the time is that of one whole
round. `form` has each group's only member join, sync and commit. `keep` lets them go on by the clock of Kafka's
clients: a heartbeat every three seconds, a commit every five. Run by `coordination.py`; prints a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time

from barnabas.model import errors
from barnabas.transport.channel import Channel
from barnabas.wire.message import encode
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest

SESSION_MS = 30_000
REBALANCE_MS = 60_000
CONNECTIONS = 100
HEARTBEAT_SECONDS = 3.0
COMMIT_SECONDS = 5.0
ASSIGNMENT = bytes(64)
METADATA = b"\x00\x00" + encode(ConsumerProtocolSubscription(topics=["bench"]), 0)
PASSING = (errors.COORDINATOR_LOAD_IN_PROGRESS.code, errors.COORDINATOR_NOT_AVAILABLE.code, errors.NOT_COORDINATOR.code)


class Member:
    def __init__(self, channel: Channel, group_id: str) -> None:
        self.channel = channel
        self.group_id = group_id
        self.member_id = ""
        self.generation = -1
        self.is_leader = False
        self._others: list[str] = []

    async def join(self) -> None:
        while True:
            request = JoinGroupRequest(
                group_id=self.group_id,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=METADATA)],
            )
            answer = await self.channel.send(request, 9)
            assert isinstance(answer, JoinGroupResponse)
            if answer.error_code == errors.NONE.code:
                self.generation = answer.generation_id
                self.is_leader = answer.leader == self.member_id
                self._others = [member.member_id for member in answer.members]
                return
            if answer.error_code == errors.MEMBER_ID_REQUIRED.code:
                self.member_id = answer.member_id
            elif answer.error_code in PASSING:
                await asyncio.sleep(0.01)
            else:
                raise SystemExit(f"join: {errors.error_of(answer.error_code).name}")

    async def sync(self) -> bool:
        """Whether the member has its part now; otherwise it must join again."""
        assignments = [
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=each, assignment=ASSIGNMENT) for each in self._others
        ]
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        return await self._code(request, 5) == errors.NONE.code

    async def settle(self) -> None:
        await self.join()
        while not await self.sync():
            await self.join()

    async def gather(self, members: list[Member]) -> None:
        """Join, and join again whenever others come, until all are of one generation."""
        await self.settle()
        while len({member.generation for member in members}) > 1:
            if await self.heartbeat() == errors.REBALANCE_IN_PROGRESS.code:
                await self.settle()
            await asyncio.sleep(0.01)

    async def heartbeat(self) -> int:
        request = HeartbeatRequest(group_id=self.group_id, generation_id=self.generation, member_id=self.member_id)
        return await self._code(request, 4)

    async def commit(self, offset: int) -> None:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name="bench", partitions=[partition])],
        )
        answer = await self.channel.send(request, 9)
        code = answer.topics[0].partitions[0].error_code  # type: ignore[attr-defined]
        # The topic need not exist: the broker says so where it looks, after it has looked.
        if code not in (errors.NONE.code, errors.UNKNOWN_TOPIC_OR_PARTITION.code):
            raise SystemExit(f"commit: {errors.error_of(code).name}")

    async def _code(self, request: HeartbeatRequest | SyncGroupRequest, version: int) -> int:
        return int((await self.channel.send(request, version)).error_code)  # type: ignore[attr-defined]


async def rebalance(host: str, port: int, count: int, seconds: float) -> dict[str, float]:
    group_id = f"bench-{os.urandom(4).hex()}"  # members of the last run are still waited for in theirs
    members = [Member(await Channel.connect(host, port, client_id="bench"), group_id) for _ in range(count)]
    await asyncio.gather(*(member.gather(members) for member in members))
    await one_round(members)
    print("BEGINS", flush=True)
    times: list[float] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        times.append(await one_round(members))
    for member in members:
        member.channel.close()
    return {"rebalances": float(len(times)), "rebalance_ms": statistics.median(times) * 1000}


async def one_round(members: list[Member]) -> float:
    leader = next(member for member in members if member.is_leader)
    rest = [member for member in members if member is not leader]
    started = time.monotonic()
    first = asyncio.create_task(leader.join())
    while await rest[0].heartbeat() != errors.REBALANCE_IN_PROGRESS.code:
        pass
    await asyncio.gather(*(member.heartbeat() for member in rest[1:]))
    await asyncio.gather(first, *(member.join() for member in rest))
    synced = await asyncio.gather(*(member.sync() for member in members))
    assert all(synced), "nobody else has joined or left"
    return time.monotonic() - started


async def form(host: str, port: int, count: int) -> tuple[list[list[Member]], float]:
    """The members of all groups, those that share a connection together, and how long it took."""
    channels = [await Channel.connect(host, port, client_id="bench") for _ in range(min(CONNECTIONS, count))]
    run = os.urandom(4).hex()
    rows = [
        [Member(channel, f"bench-{run}-{index}-{number}") for number in range(count // len(channels))]
        for index, channel in enumerate(channels)
    ]

    async def settle(row: list[Member]) -> None:
        for member in row:
            await member.settle()
            await member.commit(0)

    started = time.monotonic()
    await asyncio.gather(*map(settle, rows))
    return rows, time.monotonic() - started


async def keep(rows: list[list[Member]], seconds: float) -> float:
    """Requests in a second."""
    deadline = time.monotonic() + seconds
    requests = 0

    async def live(member: Member, phase: float) -> None:
        nonlocal requests
        now = time.monotonic()
        beat, commit = now + HEARTBEAT_SECONDS * phase, now + COMMIT_SECONDS * phase
        while (due := min(beat, commit)) < deadline:
            await asyncio.sleep(due - time.monotonic())
            if due == beat:
                assert await member.heartbeat() == errors.NONE.code
                beat += HEARTBEAT_SECONDS
            else:
                await member.commit(requests)
                commit += COMMIT_SECONDS
            requests += 1

    members = [member for row in rows for member in row]
    await asyncio.gather(*(live(member, index / len(members)) for index, member in enumerate(members)))
    await asyncio.sleep(max(0.0, deadline - time.monotonic()))
    return requests / seconds


async def main(host: str, port: int, what: str, count: int, seconds: float) -> dict[str, float]:
    asker = await Channel.connect(host, port, client_id="bench")
    while True:  # the topic of offsets is made when somebody asks for it
        found = await asker.send(FindCoordinatorRequest(key_type=0, coordinator_keys=["bench"]), 6)
        if found.coordinators[0].error_code == 0:  # type: ignore[attr-defined]
            break
        await asyncio.sleep(0.1)
    asker.close()
    if what == "rebalance":
        return await rebalance(host, port, count, seconds)
    if what == "form":
        print("BEGINS", flush=True)
    rows, formed_seconds = await form(host, port, count)
    figures = {"formed_seconds": formed_seconds}
    if what == "keep":
        print("BEGINS", flush=True)
        figures["requests_per_second"] = await keep(rows, seconds)
    for row in rows:
        row[0].channel.close()
    return figures


if __name__ == "__main__":
    print(
        json.dumps(asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))))
    )
