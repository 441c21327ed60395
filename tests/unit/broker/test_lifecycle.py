"""A broker that has new addresses registers again under its epoch, and lives on while nobody takes them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast

import pytest
from waiting import until_async

from barnabas.broker.controller.link import ControllerLink
from barnabas.broker.node.broker_life import Phase
from barnabas.broker.node.lifecycle import CannotRegister, Lifecycle
from barnabas.model import errors
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import simulated_world
from barnabas.wire.message import Message
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from barnabas.world.timers import Timers

EPOCH = 5
INTERVAL_MS = 100


class Controller:
    """Answers as a controller would, and notes what it was asked."""

    def __init__(self) -> None:
        self.listeners: list[list[str]] = []  # of each registration
        self.heartbeats = 0
        self.refuses = False

    async def ask(self, request: Message, *, timeout_ms: int) -> Message:
        if isinstance(request, BrokerHeartbeatRequest):
            assert request.broker_epoch == EPOCH
            self.heartbeats += 1
            return BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)
        assert isinstance(request, BrokerRegistrationRequest)
        self.listeners.append([listener.name for listener in request.listeners])
        if self.refuses:
            return BrokerRegistrationResponse(error_code=errors.NOT_CONTROLLER.code)
        return BrokerRegistrationResponse(broker_epoch=EPOCH)


Story: TypeAlias = Callable[[Lifecycle, Controller, list[str]], Awaitable[None]]


def test_a_broker_that_was_a_member_registers_however_long_it_takes() -> None:
    """One that no cluster knows gives up after ``initial.broker.registration.timeout.ms``."""

    async def whole(*, was_member: bool) -> int:
        world = simulated_world(cast(SimulatedLoop, asyncio.get_running_loop()), 1)
        controller = Controller()
        controller.refuses = True
        timers = Timers(world.clock)
        lifecycle = Lifecycle(
            world=world,
            timers=timers,
            link=cast(ControllerLink, controller),
            registration=BrokerRegistrationRequest,
            registered=lambda: None,
            metadata_offset=lambda: 0,
            online_directories=list,
            heartbeat_interval_ms=INTERVAL_MS,
            session_timeout_ms=1000,
            registration_timeout_ms=1000,
            was_member=lambda: was_member,
            is_controlled=lambda: False,
        )
        timers.after(60_000, lambda: setattr(controller, "refuses", False))
        try:
            return await lifecycle.register()
        finally:
            await lifecycle.stop()

    assert simulate(lambda: whole(was_member=True), seed=1) == EPOCH
    with pytest.raises(CannotRegister):
        simulate(lambda: whole(was_member=False), seed=1)


def tell(story: Story) -> None:
    """Run a story with a broker that is let in: its lifecycle, its controller and the names of its listeners."""

    async def whole() -> None:
        world = simulated_world(cast(SimulatedLoop, asyncio.get_running_loop()), 1)
        timers = Timers(world.clock)
        controller, names = Controller(), ["FIRST"]
        request = BrokerRegistrationRequest
        lifecycle = Lifecycle(
            world=world,
            timers=timers,
            link=cast(ControllerLink, controller),
            registration=lambda: request(listeners=[request.Listener(name=name) for name in names]),
            registered=lambda: None,
            metadata_offset=lambda: 0,
            online_directories=list,
            heartbeat_interval_ms=INTERVAL_MS,
            session_timeout_ms=1000,
            registration_timeout_ms=1000,
            is_controlled=lambda: False,
        )
        await lifecycle.register()
        await lifecycle.unfence()
        await story(lifecycle, controller, names)
        assert lifecycle.broker_epoch == EPOCH
        assert lifecycle.phase is Phase.RUNNING
        await lifecycle.stop()
        timers.close()

    simulate(whole)


def test_new_addresses_are_registered_at_once_and_old_ones_not_again() -> None:
    async def story(lifecycle: Lifecycle, controller: Controller, names: list[str]) -> None:
        lifecycle.renew()
        await asyncio.sleep(1)
        assert controller.listeners == [["FIRST"]]
        names.append("SECOND")
        lifecycle.renew()
        took = await until_async(lambda: len(controller.listeners) == 2)
        assert took * 1000 < INTERVAL_MS
        await asyncio.sleep(1)
        assert controller.listeners == [["FIRST"], ["FIRST", "SECOND"]]

    tell(story)


def test_a_broker_whose_new_addresses_are_not_taken_sends_heartbeats_and_asks_again() -> None:
    async def story(lifecycle: Lifecycle, controller: Controller, names: list[str]) -> None:
        controller.refuses = True
        names.append("SECOND")
        lifecycle.renew()
        before = controller.heartbeats
        await until_async(lambda: len(controller.listeners) > 3)
        assert controller.heartbeats >= before + 2
        controller.refuses = False
        await asyncio.sleep(1)
        asked = len(controller.listeners)
        await asyncio.sleep(1)
        assert len(controller.listeners) == asked

    tell(story)
