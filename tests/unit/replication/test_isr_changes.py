"""ISR proposals: none is lost, whatever goes wrong while it is sent."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from barnabas.model.ids import TopicPartition, Uuid
from barnabas.replication.isr import Change, Proposal
from barnabas.replication.isr_changes import IsrChanges
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import SimulatedClock
from barnabas.wire.message import Message
from barnabas.wire.messages.alter_partition import AlterPartitionResponse
from barnabas.world.timers import Timers

TOPIC_ID = Uuid(bytes(range(16)))


def test_a_proposal_is_sent_again_after_an_unexpected_exception() -> None:
    async def main() -> tuple[int, list[str], list[Proposal]]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        reports: list[str] = []
        loop.set_exception_handler(lambda _, context: reports.append(context["task_name"]))
        timers = Timers(SimulatedClock(loop))
        asked = 0
        answered: list[Proposal] = []

        async def ask(message: Message, timeout_ms: int) -> Message:
            nonlocal asked
            asked += 1
            if asked == 1:
                raise ValueError("a mistake")
            row = AlterPartitionResponse.PartitionData(partition_index=0, isr=[1, 2])
            topic = AlterPartitionResponse.TopicData(topic_id=TOPIC_ID, partitions=[row])
            return AlterPartitionResponse(topics=[topic])

        def take(proposal: Proposal, answer: object) -> bool:
            answered.append(proposal)
            return True

        changes = IsrChanges(broker_id=1, broker_epoch=lambda: 1, ask=ask, timers=timers)
        proposal = Proposal(Change.EXPAND, (1, 2), (1, 1), 1, 1)
        partition: Any = SimpleNamespace(
            topic_id=TOPIC_ID,
            id=TopicPartition("t", 0),
            in_sync=SimpleNamespace(proposal=proposal),
            answered=take,
        )
        changes.propose(partition, proposal)
        await asyncio.sleep(5)
        assert answered == [proposal]
        await changes.stop()
        timers.close()
        return asked, reports, answered

    asked, reports, _ = simulate(main)
    assert (asked, reports) == (2, ["isr-changes"])
