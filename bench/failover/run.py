"""The run: kill a broker at a moment of chance, wait until every client goes on, start it again, and once more.

Before each kill every replica is in sync again and leads what it should, so that each kill takes a leader away from
each client. The times are from the kill to the acknowledgement of a record sent after it, in the slowest partition.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Protocol

from confluent_kafka import ElectionType, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bench.failover.judge import judge
from bench.failover.load import PARTITIONS, ClientLoad, ProofFailed

BROKERS = (1, 2, 3)
WHOLE_SECONDS_MAX = 120
ADMIN_SECONDS_MAX = 30


class Killable(Protocol):
    @property
    def bootstrap_servers(self) -> str: ...
    def kill(self, number: int) -> None: ...
    def start(self, number: int) -> None: ...


def percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def until_whole(admin: AdminClient) -> None:
    """Every replica of every partition is in sync, and every partition is led by the first of its replicas."""
    deadline = time.monotonic() + WHOLE_SECONDS_MAX
    while True:
        short, misplaced = _not_whole(admin)
        if not short and not misplaced:
            return
        if not short:
            try:
                admin.elect_leaders(ElectionType.PREFERRED, None).result(ADMIN_SECONDS_MAX)
            except KafkaException as error:
                if time.monotonic() > deadline:
                    raise ProofFailed(f"the first replicas do not lead again: {error}") from error
        if time.monotonic() > deadline:
            raise ProofFailed(f"not whole again: {(short or misplaced)[:5]}")
        time.sleep(0.1)


def _not_whole(admin: AdminClient) -> tuple[list[str], list[str]]:
    try:
        topics = admin.list_topics(timeout=ADMIN_SECONDS_MAX).topics
    except KafkaException as error:
        return [str(error)], []
    partitions = [(f"{name}-{part.id}", part) for name, topic in topics.items() for part in topic.partitions.values()]
    short = [f"{name}: {part.isrs}" for name, part in partitions if len(part.isrs) < len(part.replicas)]
    misplaced = [f"{name}: led by {part.leader}" for name, part in partitions if part.leader != part.replicas[0]]
    return short, misplaced


def failover(
    cluster: Killable,
    clients: Sequence[str],
    kills: int,
    *,
    seed: int,
    say: Callable[[str], object] = lambda _: None,
    replicas: int = 3,
    seconds_max: float = math.inf,
    victims: Callable[[random.Random], Sequence[int]] = lambda chance: [chance.choice(BROKERS)],
) -> dict[str, list[float]]:
    """The seconds that each client waited after each kill (of all victims at once); fails where the proof does.

    After ``seconds_max`` nobody is killed any more, and what was written is judged.
    """
    deadline = time.monotonic() + seconds_max
    chance = random.Random(seed)
    servers = cluster.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    waits: dict[str, list[float]] = {client: [] for client in clients}
    with ExitStack() as stack:
        made = [f"numbers-of-{client}" for client in clients]
        topics = [NewTopic(name, PARTITIONS, replicas, config={"min.insync.replicas": "2"}) for name in made]
        for future in admin.create_topics(topics).values():
            future.result(ADMIN_SECONDS_MAX)
        loads = [stack.enter_context(ClientLoad(client, servers)) for client in clients]
        for kill in range(1, kills + 1):
            if time.monotonic() > deadline:
                break
            until_whole(admin)
            for load in loads:
                load.wait_since(time.monotonic_ns())
            time.sleep(chance.uniform(0, 0.5))
            chosen = victims(chance)
            killed_ns = time.monotonic_ns()
            for number in chosen:
                cluster.kill(number)
            for load in loads:
                waits[load.client].append(load.wait_since(killed_ns))
            newest = ", ".join(f"{client} {waits[client][-1]:.2f}" for client in clients)
            say(f"kill {kill} of {kills} (broker {' and '.join(map(str, chosen))}): {newest} s")
            for number in chosen:
                cluster.start(number)
        until_whole(admin)
        for load in loads:
            load.stop()
        for load in loads:
            judge(load, servers)
        counted = sum(load.acknowledged_count for load in loads)
        say(f"{counted} records acknowledged: none is lost, doubled or out of order")
    return waits


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def tell(peer: str, line: str) -> None:
    say(f"{peer}: {line}")
