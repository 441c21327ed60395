"""Delayed requests never touch the next transaction: a story for each seed.

A producer runs transactions; copies of its requests, and requests that it has given up on, arrive later on other
connections. At the end exactly the committed transactions may be seen, and none may be left open.
``BARNABAS_SIM_SEEDS`` says how many stories are told.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from seeds import first_of, fresh_chunks
from transaction_story import (
    ID,
    NO_OFFSET,
    PARTITIONS,
    V1,
    V2,
    Peer,
    Producer,
    Versions,
    committed_offset,
    committed_values,
    put_coordinator_far_away,
    run,
)

from barnabas.wire.message import Message
from barnabas.wire.messages.end_txn import EndTxnRequest

SEEDS = int(os.environ.get("BARNABAS_SIM_SEEDS", "80"))
TRANSACTIONS = 6


class Shuffle:
    """A producer whose requests are copied, delayed and given up on, as the seed says."""

    def __init__(self, peer: Peer, versions: Versions, random: Random) -> None:
        self.peer = peer
        self.versions = versions
        self.random = random
        self.producer = Producer(peer, versions)
        self.late: list[asyncio.Task[Any]] = []
        self.expected: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        self.expected_offset = NO_OFFSET

    def send_late(self, message: Message, version: int) -> None:
        delay_s = self.random.choice((0.0, 0.0, 0.01, 0.03, 0.1, 1.0)) * self.random.random()

        async def send() -> Any:
            await asyncio.sleep(delay_s)
            return await self.peer.ask_elsewhere(message, version)

        self.late.append(asyncio.get_running_loop().create_task(send()))

    async def transaction(self, number: int) -> None:
        producer, random = self.producer, self.random
        written: dict[int, list[bytes]] = {}
        is_commit = random.random() < 0.6
        for step in range(random.randrange(4)):
            partition = random.randrange(PARTITIONS)
            values = [b"%d.%d.%d" % (number, step, each) for each in range(random.randrange(1, 4))]
            await producer.add(partition)
            request = producer.produce(partition, values)
            if random.random() < 0.2:
                # No answer comes, so the producer gives up: what it sent may arrive at any time, or has arrived.
                self.send_late(request, self.versions.produce)
                await asyncio.sleep(random.choice((0.0, 0.01, 0.03)) * random.random())
                is_commit = False
                break
            await producer.send(request)
            written.setdefault(partition, []).extend(values)
            if random.random() < 0.3:
                self.send_late(request, self.versions.produce)
        offset = NO_OFFSET
        if random.random() < 0.5:
            await producer.add_group()
            offset = number
            commit = producer.commit_offset(offset)
            if random.random() < 0.2:
                self.send_late(commit, self.versions.offsets)
                await asyncio.sleep(random.choice((0.0, 0.01, 0.03)) * random.random())
                is_commit = False
            else:
                await producer.send(commit)
                # In version 1 nothing tells a commit of one transaction from a commit of the next either.
                if random.random() < 0.3 and not self.versions.is_adding:
                    self.send_late(commit, self.versions.offsets)
        is_begun = bool(written) or offset != NO_OFFSET or not is_commit
        if not is_begun or (self.versions.is_adding and not producer.added):
            return
        end = producer.end_request(is_commit=is_commit)
        await producer.end(end)
        if not self.versions.is_adding:
            # In version 1 nothing tells the end of one transaction from the end of the next: hence version 2.
            if random.random() < 0.4:
                self.send_late(end, self.versions.end)
            if random.random() < 0.2:
                wrong = EndTxnRequest(
                    transactional_id=ID,
                    producer_id=end.producer_id,
                    producer_epoch=end.producer_epoch,
                    committed=not is_commit,
                )
                self.send_late(wrong, self.versions.end)
        elif not is_commit:
            await producer.init()  # as the clients do: after an error the sequence begins anew
        if is_commit:
            for partition, values in written.items():
                self.expected[partition] += values
            self.expected_offset = max(offset, self.expected_offset)
        if random.random() < 0.3:
            await asyncio.sleep(random.random() * 0.1)

    async def play(self) -> None:
        if self.random.random() < 0.7:
            put_coordinator_far_away(self.peer, lambda: 0.02 * self.random.random())
        await self.producer.init()
        for number in range(TRANSACTIONS):
            await self.transaction(number)
        await asyncio.gather(*self.late)
        for partition in range(PARTITIONS):
            assert await committed_values(self.peer, partition) == self.expected[partition]
            assert self.peer.log(partition).producers.first_unstable_offset == -1
        assert await committed_offset(self.peer) == self.expected_offset


def tell(versions: Versions, seeds: Sequence[int]) -> None:
    for seed in seeds:

        async def story(peer: Peer, seed: int = seed) -> None:
            await Shuffle(peer, versions, Random(seed)).play()

        run(story, seed)


@pytest.mark.parametrize("seeds", fresh_chunks(6, SEEDS * 4), ids=first_of)
def test_shuffled_requests_commit_what_was_committed_and_leave_nothing_open(seeds: Sequence[int]) -> None:
    tell(V2, seeds)


@pytest.mark.parametrize("seeds", fresh_chunks(7, SEEDS), ids=first_of)
def test_in_version_1_shuffled_writes_leave_nothing_open_either(seeds: Sequence[int]) -> None:
    tell(V1, seeds)
