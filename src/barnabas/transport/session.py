"""A connection that stays signed in: where sessions end, whoever dialled proves in good time again who it is (KIP-368).

That is done on the same connection, as Kafka's own clients do it: requests in flight are answered first, and those that
come meanwhile wait and keep their order. The moment is left to chance, so that not all connections choose the same.
The exchange itself is ``sign_in``; clients and the links between brokers begin a session on each connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from barnabas.model.errors import BarnabasError
from barnabas.transport.channel import Channel, PeerGone
from barnabas.transport.sign_in import Credentials, sign_in
from barnabas.world.tasks import Tasks

# When to sign in again, in thousandths of the session's life: as Kafka's clients.
RENEW_AFTER_MIN: Final = 850
RENEW_AFTER_MAX: Final = 950
RENEW_SECONDS_MIN: Final = 1.0  # brokers listen to no second sign-in sooner
RETRY_SECONDS: Final = 1.0  # to the next try, if there is nothing to sign in with

Prove = Callable[[], Awaitable[Credentials]]


class Session:
    """It ends with its channel."""

    def __init__(self, channel: Channel, prove: Prove, chance: Callable[[int], int], *, timeout_ms: int) -> None:
        self._channel = channel
        self._prove = prove
        self._chance = chance
        self._timeout_ms = timeout_ms
        self._ends_at = 0.0  # on the loop's clock
        self._timer: asyncio.TimerHandle | None = None
        self._tasks = Tasks(on_failure=lambda error: channel.abort(PeerGone("the connection could not sign in again")))
        self._renewal: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """ApiError if the listener does not let us in."""
        await self._sign_in(await self._prove())
        self._channel.closed.add_done_callback(self._end)

    async def _sign_in(self, credentials: Credentials) -> None:
        time = asyncio.get_running_loop().time
        began_at = time()  # the peer counts from a later moment
        life = await sign_in(self._channel, credentials, self._chance) / 1000
        if life <= 0:
            self._channel.release()
            return
        self._ends_at = began_at + life
        share = RENEW_AFTER_MIN + self._chance(RENEW_AFTER_MAX - RENEW_AFTER_MIN + 1)
        self._renew_in(max(began_at + life * share / 1000 - time(), RENEW_SECONDS_MIN))
        # A process that was stopped finds the session over, and must not ask for anything before it is renewed.
        self._channel.release(until=self._ends_at)

    def _renew_in(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._start)

    def _start(self) -> None:
        if self._channel.is_open:
            name = f"sign-in:{self._channel.host}:{self._channel.port}"
            self._renewal = self._tasks.start(self._renew(), name)

    async def _renew(self) -> None:
        try:
            credentials = await self._prove()  # meanwhile requests go on
        except BarnabasError as error:
            if error.retriable and asyncio.get_running_loop().time() + RETRY_SECONDS < self._ends_at:
                self._renew_in(RETRY_SECONDS)
                return
            await self._fall_silent()
            self._channel.abort(error)
            return
        await self._fall_silent()
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                await self._sign_in(credentials)
        except TimeoutError:
            self._channel.abort(PeerGone("the peer did not answer a sign-in"))
        except BarnabasError as error:
            self._channel.abort(error)

    async def _fall_silent(self) -> None:
        self._channel.hold()
        await self._channel.wait_for_silence()

    def _end(self, _: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._renewal is not None:
            self._renewal.cancel()
