"""Forwarded requests belong to the node that serves them, and end with it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from barnabas.broker.handlers import envelope
from barnabas.wire.messages.envelope import EnvelopeRequest
from barnabas.world.tasks import Tasks


def test_a_node_that_stops_ends_its_own_forwarded_requests_only(monkeypatch: Any) -> None:
    async def forever(*_: object) -> bytes:
        await asyncio.Event().wait()
        return b""

    monkeypatch.setattr(envelope, "_open", forever)
    handle = envelope.handle
    message = EnvelopeRequest(request_data=b"", client_host_address=b"\x7f\0\0\1")

    async def main() -> None:
        ended: list[int] = []
        nodes = [Tasks(), Tasks()]
        for number, tasks in enumerate(nodes):
            deferred = SimpleNamespace(request=None, hang_up=lambda number=number: ended.append(number))
            request: Any = SimpleNamespace(
                broker=SimpleNamespace(tasks=tasks), defer=lambda deferred=deferred: deferred
            )
            handle(request, message)
        await asyncio.sleep(0)
        assert [len(tasks) for tasks in nodes] == [1, 1]
        await nodes[0].stop()
        assert (ended, len(nodes[1])) == ([0], 1)
        await nodes[1].stop()

    asyncio.run(main())
