"""Detects at once that a broker's process has ended, without waiting for its session to expire.

The active controller remembers the connection on which each broker sends its heartbeats. When it closes, the controller
connects to the broker's own listener: if the connection is refused, the process has ended and the broker is fenced;
otherwise the controller tries again until the broker sends a heartbeat or its session expires. A controller that has
just become active checks every broker in this way. Kafka waits for the session to expire in all these cases.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from barnabas.metadata.active_controller import ActiveController
from barnabas.metadata.brokers_image import BrokerImage
from barnabas.metadata.quorum_controller import QuorumController
from barnabas.metadata.sessions import Session
from barnabas.observe.log import logger
from barnabas.transport.channel import Channel, Refused, Unreachable
from barnabas.transport.connection import Connection
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timer, Timers

log = logger("life_watch")

LOOK_MS: Final = 50
ASK_AGAIN_MS: Final = 250
DIAL_MS_MAX: Final = 2000
CLIENT_ID: Final = "life-watch"


class _Heard(NamedTuple):
    session: Session
    connection: Connection


async def is_refused(host: str, port: int) -> bool:
    """Whether the connection is refused; an unreachable address does not count as refused."""
    try:
        async with asyncio.timeout(DIAL_MS_MAX / 1000):
            channel = await Channel.connect(host, port, client_id=CLIENT_ID)
    except Refused:
        return True
    except (Unreachable, TimeoutError):
        return False
    channel.abort()
    return False


class LifeWatch:
    def __init__(
        self,
        *,
        controller: QuorumController,
        active: ActiveController,
        timers: Timers,
        node_id: int,
        listener_name: str | None,
        is_refused: Callable[[str, int], Awaitable[bool]] = is_refused,
    ) -> None:
        """``listener_name`` is the inter-broker listener; None stands for the first listener of each broker."""
        self._controller = controller
        self._active = active
        self._timers = timers
        self._node_id = node_id
        self._listener_name = listener_name
        self._is_refused = is_refused
        self._heard: dict[int, _Heard] = {}
        self._timer: Timer | None = None
        self._tasks = Tasks()
        self._is_stopped = False
        controller.on_activity(self._on_activity)

    def heard(self, broker_id: int, epoch: int, connection: Connection) -> None:
        """A heartbeat has arrived on this connection."""
        if self._controller.is_active and not self._is_stopped:
            self._heard[broker_id] = _Heard(Session(broker_id, epoch), connection)
            self._arm()

    async def stop(self) -> None:
        self._is_stopped = True
        self._forget()
        await self._tasks.stop()

    def _on_activity(self, is_active: bool) -> None:
        self._forget()
        if is_active and not self._is_stopped:
            for broker in self._controller.image.brokers.values():
                if not broker.is_fenced:
                    self._start_asking(Session(broker.id, broker.epoch))

    def _forget(self) -> None:
        self._heard.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is None and self._heard:
            self._timer = self._timers.after(LOOK_MS, self._look)

    def _look(self) -> None:
        self._timer = None
        for heard in [each for each in self._heard.values() if not each.connection.is_open]:
            del self._heard[heard.session.broker_id]
            self._start_asking(heard.session)
        self._arm()

    def _start_asking(self, session: Session) -> None:
        if session.broker_id == self._node_id:
            return  # the broker of this process ends with this process
        name = f"life-watch:{session.broker_id}:{session.epoch}"
        self._tasks.retry(name, lambda: self._ask_after(session), self._timers, retry_ms=ASK_AGAIN_MS)

    async def _ask_after(self, session: Session) -> None:
        while (broker := self._unheard(session)) is not None and broker.end_points:
            end_point = broker.end_point(self._listener_name or "") or broker.end_points[0]
            if await self._is_refused(end_point.host, end_point.port) and self._unheard(session) is not None:
                log.info("a broker's process has ended", broker=session.broker_id, broker_epoch=session.epoch)
                await self._active.broker_gone(session)
                return
            await self._timers.sleep(ASK_AGAIN_MS)

    def _unheard(self, session: Session) -> BrokerImage | None:
        """The broker, if this controller is active and has received no heartbeat of this session since."""
        broker = self._controller.image.brokers.get(session.broker_id)
        if broker is None or broker.is_fenced or broker.epoch != session.epoch:
            return None
        return broker if self._controller.is_active and session.broker_id not in self._heard else None
