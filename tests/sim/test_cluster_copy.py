"""Exactly once through a whole cluster in virtual time, from seeds: programs copy a topic in transactions.

Two members of one group read what is written, write it to another topic and store their positions, all in one
transaction, while brokers and the programs themselves are killed, frozen and cut off, or lose power or a disk: group
coordinators, transaction coordinators and leaders move under them. In the end each partition of the copy must hold what
its original holds, once and in order. A failing seed prints the command that tells it again.
"""

from __future__ import annotations

import asyncio
import os
from random import Random
from typing import Literal

import pytest
from cluster_story import CALM_SECONDS_MAX, PARTITIONS, TOPIC, Fault, Story, Writer, tell
from seeds import fresh_seeds

from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model.errors import BarnabasError
from barnabas.testing.world import simulated_world

SEEDS = max(1, int(os.environ.get("BARNABAS_SIM_SEEDS", "40")) * 3 // 20)
SEEDS_OF_LOSSES = max(1, SEEDS // 3)
COPY = "bills"
COPIERS = (1, 2)
RECORDS_PER_POLL = 20
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
}
Protocol = Literal["classic", "consumer"]
PROTOCOLS: tuple[Protocol, ...] = ("classic", "consumer")


class Copying(Story):
    topics = (TOPIC, COPY)

    def __init__(self, seed: int, protocol: Protocol, **losses: bool) -> None:
        super().__init__(seed, settings=SETTINGS, **losses)
        self.protocol = protocol
        self.worlds = {number: simulated_world(self.loop, f"copier{number}/{seed}") for number in COPIERS}
        self.lives: dict[int, asyncio.Task[None]] = {}
        self.killed = 0

    async def live(self) -> None:
        await self.create_topic(TOPIC)
        await self.create_topic(COPY)
        writer = Writer("w", Random(self.chance.random()))
        for number in COPIERS:
            self.begin(number)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.write(writer))
            await self.trouble()
            await self.calm()
            writer.is_over = True
        original = await self.read_all(TOPIC)
        copy = await self.until_copied(original)
        for partition in range(PARTITIONS):
            assert list(copy[partition].values()) == list(original[partition].values()), f"partition {partition}"
        await self.until_alike()
        for number in COPIERS:
            self.loop.network.kill(f"copier{number}")

    # --- the program ----------------------------------------------------------------------------------------------

    def begin(self, number: int) -> None:
        self.lives[number] = self.loop.start_on(f"copier{number}", self.copy(number))

    async def copy(self, number: int) -> None:
        """What an application does: after an error that it cannot mend it starts again from what is committed."""
        while True:
            try:
                await self.copy_until_error(number)
            except BarnabasError:
                await asyncio.sleep(0.1)

    async def copy_until_error(self, number: int) -> None:
        servers = self.cluster.bootstrap_servers
        reading = ConsumerSettings(
            bootstrap_servers=servers,
            group_id="copiers",
            group_protocol=self.protocol,
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
            request_timeout_ms=2000,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=RECORDS_PER_POLL,
        )
        writing = ProducerSettings(
            bootstrap_servers=servers,
            transactional_id=f"copier-{number}",
            transaction_timeout_ms=8000,
            request_timeout_ms=2000,
            linger_ms=0,
        )
        world = self.worlds[number]
        async with Consumer(reading, world=world) as consumer, Producer(writing, world=world) as producer:
            await consumer.subscribe(TOPIC)
            while True:
                records = await consumer.poll(timeout_ms=500)
                if not records:
                    continue
                async with producer.transaction():
                    for record in records:
                        await producer.send_soon(COPY, record.value, partition=record.partition)
                    await producer.send_offsets(consumer.positions, consumer.group_metadata)

    # --- what happens to it ---------------------------------------------------------------------------------------

    def possible_faults(self) -> list[Fault]:
        return [*super().possible_faults(), self.kill_copier, self.kill_copier, self.freeze_copier]

    async def kill_copier(self, number: int) -> None:
        copier = COPIERS[number % len(COPIERS)]
        self.loop.network.kill(f"copier{copier}")
        self.killed += 1
        await asyncio.sleep(self.chance.choice((0.0, 1.0)))
        self.begin(copier)

    async def freeze_copier(self, number: int) -> None:
        """It comes back as a zombie: its transaction may have timed out, its partitions may be another's."""
        host = f"copier{COPIERS[number % len(COPIERS)]}"
        self.loop.network.pause(host)
        await asyncio.sleep(self.chance.choice((1.0, 7.0, 10.0)))
        self.loop.network.resume(host)

    # --- afterwards -----------------------------------------------------------------------------------------------

    async def until_copied(self, original: dict[int, dict[int, bytes]]) -> dict[int, dict[int, bytes]]:
        wanted = sum(len(records) for records in original.values())
        end = self.loop.time() + CALM_SECONDS_MAX
        while True:
            copy = await self.read_all(COPY)
            found = sum(len(records) for records in copy.values())
            if found >= wanted:
                return copy
            if self.loop.time() > end:
                raise AssertionError(f"{found} of {wanted} records were copied")
            await asyncio.sleep(1)


def tell_copying(seed: int, protocol: Protocol, **losses: bool) -> str:
    return tell(seed, lambda: Copying(seed, protocol, **losses), __file__)


@pytest.mark.parametrize("seed", fresh_seeds(3, SEEDS))
def test_a_classic_group_copies_exactly_once(seed: int) -> None:
    tell_copying(seed, "classic")


@pytest.mark.parametrize("seed", fresh_seeds(4, SEEDS))
def test_a_group_of_the_new_protocol_copies_exactly_once(seed: int) -> None:
    tell_copying(seed, "consumer")


@pytest.mark.parametrize("seed", fresh_seeds(11, SEEDS_OF_LOSSES))
def test_what_was_copied_survives_a_crash_of_all_brokers_at_once(seed: int) -> None:
    tell_copying(seed, PROTOCOLS[seed % 2], loses_all=True)


@pytest.mark.parametrize("seed", fresh_seeds(12, SEEDS_OF_LOSSES))
def test_what_was_copied_survives_a_power_cut_of_one(seed: int) -> None:
    tell_copying(seed, PROTOCOLS[seed % 2], loses_power=True)


@pytest.mark.parametrize("seed", fresh_seeds(13, SEEDS_OF_LOSSES))
def test_what_was_copied_survives_lost_disks(seed: int) -> None:
    tell_copying(seed, PROTOCOLS[seed % 2], loses_disks=True)
