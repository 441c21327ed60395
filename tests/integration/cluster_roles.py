"""Who plays which part in a cluster just now, and which clients are to go on when that one is killed.

Asked with our own admin client. BARNABAS_KILL_CLIENTS names the clients: librdkafka, java, barnabas, aiokafka.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import pytest
from bench.failover.load import CLIENTS as ALL_CLIENTS
from bench.failover.run import percentile

from barnabas import Admin, Settings
from barnabas.client.cluster.coordinators import Coordinator, KeyKind

T = TypeVar("T")

CLIENTS = tuple(os.environ.get("BARNABAS_KILL_CLIENTS", "librdkafka,barnabas").split(","))


def sets_of_clients() -> list[Any]:
    """For tests that are run with the clients that were named, and with all of them where there is Java."""
    sets = [pytest.param(CLIENTS, id="+".join(CLIENTS))]
    if "java" not in CLIENTS:
        sets.append(pytest.param(ALL_CLIENTS, id="all", marks=[pytest.mark.java, pytest.mark.slow]))
    return sets


def told(what: str, waits: Mapping[str, Sequence[float]]) -> None:
    for client, seconds in waits.items():
        print(
            f"{what}, {client}: {len(seconds)} times, {percentile(seconds, 0.5):.2f} s (median),"
            f" {percentile(seconds, 0.99):.2f} s (p99), {max(seconds):.2f} s (longest)"
        )


def _ask(servers: str, question: Callable[[Admin], Awaitable[T]]) -> T:
    async def run() -> T:
        async with Admin(Settings(bootstrap_servers=tuple(servers.split(",")))) as admin:
            return await question(admin)

    return asyncio.run(run())


def active_controller(servers: str) -> int:
    async def question(admin: Admin) -> int:
        return (await admin.describe_quorum()).leader_id

    return _ask(servers, question)


def voters(servers: str) -> list[int]:
    async def question(admin: Admin) -> list[int]:
        return sorted(voter.id for voter in (await admin.describe_quorum()).voters)

    return _ask(servers, question)


def group_coordinator(servers: str, group: str) -> int:
    return _coordinator(servers, KeyKind.GROUP, group)


def transaction_coordinator(servers: str, transactional_id: str) -> int:
    return _coordinator(servers, KeyKind.TRANSACTION, transactional_id)


def _coordinator(servers: str, kind: KeyKind, key: str) -> int:
    async def question(admin: Admin) -> int:
        return await admin.cluster.retrying(Coordinator(admin.cluster, kind, key).find)

    return _ask(servers, question)
