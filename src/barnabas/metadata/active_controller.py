"""The periodic work of the active controller: it fences brokers whose session expired and balances the leaders.

Brokers register and send heartbeats here; a broker that sends none is fenced when its session expires. The preferred
leaders are elected from time to time, and an unclean leader where the topic allows it. All of this stops when another
node becomes the active controller. Work that fails is reported and scheduled again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from barnabas.metadata.decision import Decision, Facts
from barnabas.metadata.elections import balance_leaders, elect_unclean_leaders
from barnabas.metadata.heartbeats import broker_heartbeat, fence_expired
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.quorum_controller import QuorumController
from barnabas.metadata.records import NoOpRecord
from barnabas.metadata.registrations import register_broker
from barnabas.metadata.sessions import BrokerSessions, Session
from barnabas.model.errors import NOT_CONTROLLER, STALE_BROKER_EPOCH, ApiError
from barnabas.observe.log import logger
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from barnabas.world.clock import Clock
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timer, Timers

SESSION_TIMEOUT_MS_DEFAULT: Final = 9000  # broker.session.timeout.ms
REBALANCE_INTERVAL_MS_DEFAULT: Final = 300_000  # leader.imbalance.check.interval.seconds
UNCLEAN_ELECTION_INTERVAL_MS_DEFAULT: Final = 300_000  # unclean.leader.election.interval.ms
AGAIN_MS: Final = 10  # delay when one decision could not hold all changes
RETRY_MS: Final = 1000  # delay after a failure, such as a full disk

log = logger("active_controller")


class ActiveController:
    def __init__(
        self,
        controller: QuorumController,
        facts: Callable[[], Facts],
        *,
        clock: Clock,
        timers: Timers,
        session_timeout_ms: int = SESSION_TIMEOUT_MS_DEFAULT,
        rebalance_interval_ms: int = REBALANCE_INTERVAL_MS_DEFAULT,
        idle_interval_ms: int = 0,
    ) -> None:
        """An interval of 0 switches its chore off: rebalancing, or a record when nothing else is written."""
        self._controller = controller
        self._facts = facts
        self._clock = clock
        self._timers = timers
        self._sessions = BrokerSessions(timeout_ms=session_timeout_ms)
        self._rebalance_interval_ms = rebalance_interval_ms
        self._idle_interval_ms = idle_interval_ms
        self._idle_offset = -1
        self._armed: dict[str, Timer] = {}
        self._is_stopped = False
        self._tasks = Tasks()
        controller.on_activity(self._on_activity)

    # What brokers ask ----------------------------------------

    async def register_broker(
        self, request: BrokerRegistrationRequest, *, is_own_node: bool = False
    ) -> BrokerRegistrationResponse:
        """``is_own_node``: the broker of this very process, whose predecessor cannot be alive beside it."""

        def decide(image: ClusterImage) -> Decision[BrokerRegistrationResponse]:
            existing = image.brokers.get(request.broker_id)
            has_session = (
                not is_own_node
                and existing is not None
                and self._sessions.is_valid(existing.id, existing.epoch, now_ms=self._clock.monotonic_ms())
            )
            return register_broker(image, request, self._facts(), has_session=has_session)

        response = await self._controller.submit(decide)
        existing = self._controller.image.brokers.get(request.broker_id)
        if existing is not None and existing.epoch == response.broker_epoch:
            self._sessions.forget(request.broker_id)
            self._sessions.touch(request.broker_id, response.broker_epoch, now_ms=self._clock.monotonic_ms())
            self._arm_sessions()
        return response

    async def broker_heartbeat(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        await self._controller.activated()
        broker = self._controller.image.brokers.get(request.broker_id)
        if broker is None or broker.epoch != request.broker_epoch:
            # Also if its registration is still on the way: who has no answer yet knows no epoch.
            raise ApiError(STALE_BROKER_EPOCH)
        # A heartbeat keeps the session alive, whatever becomes of it.
        self._sessions.touch(request.broker_id, request.broker_epoch, now_ms=self._clock.monotonic_ms())
        self._sessions.has_read(request.broker_id, request.current_metadata_offset)
        self._arm_sessions()
        response = await self._controller.submit(
            lambda image: broker_heartbeat(image, request, self._facts(), sessions=self._sessions)
        )
        broker = self._controller.image.brokers.get(request.broker_id)
        if response.should_shut_down:
            self._sessions.forget(request.broker_id)  # it has said goodbye: its successor need not wait for anything
        elif broker is not None and broker.in_controlled_shutdown and not broker.is_fenced:
            self._sessions.begin_shutdown(broker.id, self._controller.image.offset)
        else:
            self._sessions.end_shutdown(request.broker_id)
        return response

    async def broker_gone(self, session: Session) -> None:
        """The broker's process is known to have ended: nobody need wait for the end of its session."""
        self._sessions.end(session)
        try:
            await self._fence(session)
        finally:
            if self._controller.is_active:
                self._arm_sessions()

    # Chores ----------------------------------------

    def _on_activity(self, is_active: bool) -> None:
        for timer in self._armed.values():
            timer.cancel()
        self._armed.clear()
        if is_active:
            self._sessions.start(self._controller.image, now_ms=self._clock.monotonic_ms())
            self._arm_sessions()
            self._arm("rebalance", self._rebalance_interval_ms, self._rebalance)
            self._arm("unclean", UNCLEAN_ELECTION_INTERVAL_MS_DEFAULT, self._elect_unclean)
            self._arm("idle", self._idle_interval_ms, self._write_if_idle)

    def _arm(self, chore: str, delay_ms: int, work: Callable[[], Awaitable[int | None]]) -> None:
        """Run the work after a delay, and again after as many milliseconds as it returns, or never after None."""
        if delay_ms <= 0 or self._is_stopped:
            return
        earlier = self._armed.get(chore)
        if earlier is not None:
            earlier.cancel()
        self._armed[chore] = self._timers.after(delay_ms, lambda: self._tasks.start(self._run(chore, work), chore))

    async def _run(self, chore: str, work: Callable[[], Awaitable[int | None]]) -> None:
        again_ms: int | None = RETRY_MS
        try:
            again_ms = await work()
        finally:
            if again_ms is not None and self._controller.is_active:
                self._arm(chore, again_ms, work)

    async def _submit(self, decide: Callable[[ClusterImage], Decision[Any]]) -> Any:
        """The result of the decision; None if another node is the active controller, or if it cannot be written."""
        try:
            return await self._controller.submit(decide)
        except ApiError as error:
            if error.error is not NOT_CONTROLLER:
                log.error("a chore is not done", reason=error)
            return None

    async def _fence(self, session: Session) -> bool:
        """Fence a broker whose session has ended; after False its session expires again at once."""
        is_settled = False
        try:
            await self._controller.submit(partial(fence_expired, expired=session, facts=self._facts()))
            is_settled = True
        except ApiError as error:
            is_settled = error.error is NOT_CONTROLLER
            if not is_settled:
                log.error("a broker is not fenced", broker=session.broker_id, reason=error)
        finally:
            if not is_settled:
                self._sessions.give_back(session, now_ms=self._clock.monotonic_ms())
        return is_settled

    def _arm_sessions(self) -> None:
        deadline_ms = self._sessions.next_deadline_ms
        armed = self._armed.get("sessions")
        # Sessions mostly grow longer: one that is armed too early looks again, which is cheaper than arming anew.
        if deadline_ms is not None and (armed is None or not armed.is_pending or armed.deadline_ms > deadline_ms):
            self._arm("sessions", max(1, deadline_ms - self._clock.monotonic_ms()), self._fence_silent)

    async def _fence_silent(self) -> int | None:
        # One at a time: fencing one broker changes who can lead when the next is fenced.
        while self._controller.is_active:
            expired = self._sessions.take_expired(now_ms=self._clock.monotonic_ms())
            if expired is None:
                break
            if not await self._fence(expired):
                return RETRY_MS
        if self._controller.is_active:
            self._arm_sessions()
        return None

    async def _rebalance(self) -> int:
        has_more = await self._submit(lambda image: balance_leaders(image, self._facts()))
        return AGAIN_MS if has_more else self._rebalance_interval_ms

    async def _elect_unclean(self) -> int:
        has_more = await self._submit(lambda image: elect_unclean_leaders(image, self._facts()))
        return AGAIN_MS if has_more else UNCLEAN_ELECTION_INTERVAL_MS_DEFAULT

    async def _write_if_idle(self) -> int:
        """Brokers that follow the log see by its growth that they are not left behind."""
        image = self._controller.image
        has_followers = len(image.brokers) > 1 or len(image.controllers) > 1
        if has_followers and image.offset == self._idle_offset:
            await self._submit(lambda image: Decision([NoOpRecord()], None))
        self._idle_offset = self._controller.image.offset
        return self._idle_interval_ms

    async def stop(self) -> None:
        self._is_stopped = True
        self._on_activity(False)
        await self._tasks.stop()
