"""The way to the active controller, wherever it is: a call in this process, or a request over a link.

Who leads the metadata log is the active controller. A request that meets another is sent on, again and again, until it
is answered or its time is up; so whoever asks need not know of elections. Replication, the broker's lifecycle, producer
ids and forwarded requests of clients all come this way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed
from barnabas.model.ids import NO_BROKER
from barnabas.observe.log import logger
from barnabas.raft.delivery import LeaderAndEpoch
from barnabas.transport.backoff import Backoff
from barnabas.transport.channel import PeerGone
from barnabas.transport.links import Links
from barnabas.wire.message import Message
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.world.tasks import Tasks

T = TypeVar("T")

TIMEOUT_MS_DEFAULT: Final = 30_000
PAUSE_MS_MIN: Final = 10
PAUSE_MS_MAX: Final = 250
LOOK_MS: Final = 200  # how soon one who waits for a controller that leads no more notices it
LIFE_LANE: Final = "life"  # heartbeats wait behind nothing else
LANE: Final = "control"
# What says that the controller is another one by now.
MOVED: Final = (errors.NOT_CONTROLLER, errors.NOT_LEADER_OR_FOLLOWER, errors.BROKER_NOT_AVAILABLE)

log = logger("controller_link")


class ControllerLink:
    def __init__(
        self,
        *,
        node_id: int,
        leader: Callable[[], LeaderAndEpoch],
        local: Callable[[Message], Awaitable[Message]] | None,
        links: Links,
        chance: Callable[[int], int],
    ) -> None:
        """``local`` answers where this node is the active controller, with errors inside the answer; None where it
        never is."""
        self._node_id = node_id
        self._leader = leader
        self._local = local
        self._links = links
        self._chance = chance
        self._tasks = Tasks()

    async def ask(self, message: Message, *, timeout_ms: int = TIMEOUT_MS_DEFAULT) -> Message:
        """The active controller's answer, which may be an error; ApiError(REQUEST_TIMED_OUT) if there is none."""
        lane = LIFE_LANE if isinstance(message, BrokerHeartbeatRequest | BrokerRegistrationRequest) else LANE

        async def here() -> Message:
            assert self._local is not None, "only a controller can lead the metadata log"
            return _checked(await self._local(message))

        async def there(leader_id: int) -> Message:
            return _checked(await self._links.send(leader_id, message, lane=lane, timeout_ms=timeout_ms))

        return await self.reach(here, there, timeout_ms=timeout_ms)

    async def send(self, node_id: int, message: Message, *, lane: str, timeout_ms: int) -> Message:
        return await self._links.send(node_id, message, lane=lane, timeout_ms=timeout_ms)

    async def reach(
        self, here: Callable[[], Awaitable[T]], there: Callable[[int], Coroutine[Any, Any, T]], *, timeout_ms: int
    ) -> T:
        """What the active controller answers; one of MOVED says that it is another, and the attempt is repeated."""
        backoff = Backoff(PAUSE_MS_MIN, PAUSE_MS_MAX, self._chance)
        reason: Exception | str = "the quorum has no leader"
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while True:
                    leader = self._leader()
                    if leader.leader_id != NO_BROKER:
                        try:
                            if leader.leader_id == self._node_id:
                                return await here()
                            return await self._attempt(leader, there)
                        except ApiError as error:
                            if error.error not in MOVED:
                                raise
                            reason = error
                        except (PeerGone, Malformed, TimeoutError) as error:
                            reason = error
                    await asyncio.sleep(backoff.next_ms() / 1000)
        except TimeoutError:
            raise ApiError(errors.REQUEST_TIMED_OUT, f"the active controller did not answer: {reason}") from None

    async def _attempt(self, leader: LeaderAndEpoch, there: Callable[[int], Coroutine[Any, Any, T]]) -> T:
        attempt = self._tasks.call(there(leader.leader_id), "controller-request")
        try:
            # One that was stopped, or cut off, may never answer; a successor that is elected will.
            while not (await asyncio.wait([attempt], timeout=LOOK_MS / 1000))[0]:
                if self._leader() != leader:
                    raise ApiError(errors.NOT_CONTROLLER, f"node {leader.leader_id} leads no more")
            return attempt.result()
        finally:
            # Its own time may be up in the very moment in which ours is: its error is nobody's then.
            attempt.cancel()
            await asyncio.gather(attempt, return_exceptions=True)


def _checked(answer: Message) -> Message:
    """The same, unless it says as a whole that the controller is elsewhere."""
    code = getattr(answer, "error_code", errors.NONE.code)
    if any(code == moved.code for moved in MOVED):
        raise ApiError(errors.error_of(code))
    return answer


def raise_for_error(answer: Any) -> None:
    """ApiError if an answer says that its request failed as a whole."""
    if answer.error_code != errors.NONE.code:
        message = getattr(answer, "error_message", None)
        error = errors.error_of(answer.error_code)
        raise ApiError(error, message) if message else ApiError(error)
