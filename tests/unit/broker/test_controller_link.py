"""Asking the active controller, whoever that is: the errors of an attempt are somebody's, or nobody waits for it."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from barnabas.broker.controller.link import ControllerLink
from barnabas.raft.delivery import LeaderAndEpoch
from barnabas.testing.loop import simulate
from barnabas.transport.links import Links


def test_an_attempt_that_fails_in_the_moment_in_which_its_caller_is_cancelled_leaves_nothing_behind() -> None:
    async def here() -> None:
        raise AssertionError("the other one leads")

    async def main() -> None:
        link = ControllerLink(
            node_id=1,
            leader=lambda: LeaderAndEpoch(2, 1),
            local=None,
            links=cast(Links, None),
            chance=lambda _: 0,
        )

        async def fails(_: int) -> None:
            caller.cancel()
            raise TimeoutError

        caller = asyncio.create_task(link.reach(here, fails, timeout_ms=1000))
        with pytest.raises(asyncio.CancelledError):
            await caller

    simulate(main)  # an error that nobody has seen would end it
