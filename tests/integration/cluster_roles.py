"""Who plays which part in a cluster just now: for tests that want to kill that one. Asked with our own admin client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from barnabas import Admin, Settings
from barnabas.client.coordinators import Coordinator, KeyKind

T = TypeVar("T")


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
