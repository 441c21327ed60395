"""A metadata log whose disk has failed is an error like others to whoever waits for a decision."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from barnabas.metadata.decision import Decision
from barnabas.metadata.quorum_controller import QuorumController
from barnabas.metadata.records import NoOpRecord
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.raft.delivery import LeaderAndEpoch
from barnabas.world.disk import DiskFailure
from barnabas.world.real import RealClock


class FailedLog:
    end_offset = 0

    def propose(self, records: list[bytes], *, epoch: int) -> int:
        self.end_offset += len(records)
        return self.end_offset - 1

    async def wait_committed(self, offset: int, *, epoch: int) -> None:
        raise DiskFailure("/data", "Input/output error")


def test_whoever_waits_for_a_decision_is_told_that_the_disk_failed() -> None:
    async def main() -> None:
        controller = QuorumController(cast(Any, FailedLog()), node_id=1, clock=RealClock(), bootstrap=[])
        controller.on_leader(LeaderAndEpoch(1, 1))
        with pytest.raises(ApiError, match="Input/output error") as failed:
            await controller.submit(lambda image: Decision([NoOpRecord()], None))
        assert failed.value.error is errors.KAFKA_STORAGE_ERROR

    asyncio.run(main())
