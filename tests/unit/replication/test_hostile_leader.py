"""What a leader answers may be anything; a follower takes it for an error of this partition, not for its own end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.model.errors import Malformed
from barnabas.model.ids import TopicPartition
from barnabas.replication.fetcher import LATEST, Fetcher
from barnabas.wire.message import Message
from barnabas.wire.messages.list_offsets import ListOffsetsResponse


def test_an_answer_without_the_partition_that_was_asked_about_is_malformed() -> None:
    async def send(node_id: int, request: Message, *, lane: str, timeout_ms: int) -> Message:
        return ListOffsetsResponse()

    async def main() -> None:
        home: Any = SimpleNamespace(
            broker_id=1, links=SimpleNamespace(send=send), settings=SimpleNamespace(timeout_ms=1000), failed=None
        )
        state: Any = SimpleNamespace(partition=SimpleNamespace(id=TopicPartition("t", 0)), leader_epoch=3)
        with pytest.raises(Malformed):
            await Fetcher(2, 0, home)._offset_at(state, LATEST)

    asyncio.run(main())
