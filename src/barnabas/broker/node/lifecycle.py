"""This broker's life in the cluster: it registers, sends heartbeats, is let in, and takes its leave when it is stopped.

What to say when is decided in ``broker_life``; what the controller makes of it in ``barnabas.metadata``. The node
starts one of these once its listeners are bound, tells it when the replicas are there, and stops it before anything
else is stopped. Where the controller is, is none of its business: it asks the controller's link.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final

from barnabas.broker.controller.link import ControllerLink, raise_for_error
from barnabas.broker.node.broker_life import LEAVE_SILENCE_MS_MAX, BrokerLife, Phase
from barnabas.metadata.brokers_image import BrokerImage
from barnabas.metadata.image import ClusterImage
from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError
from barnabas.model.ids import Uuid
from barnabas.observe.log import logger
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timers
from barnabas.world.world import World

log = logger("lifecycle")

# Nothing that waiting would cure: the operator has to.
FATAL: Final = (
    errors.INCONSISTENT_CLUSTER_ID,
    errors.UNSUPPORTED_VERSION,
    errors.INVALID_REGISTRATION,
    errors.CLUSTER_AUTHORIZATION_FAILED,
)


class CannotRegister(BarnabasError):
    """The cluster does not take this broker, or did not answer in time."""


class Replaced(BarnabasError):
    """Another process has registered as this broker: there must not be two."""


class Lifecycle:
    def __init__(
        self,
        *,
        world: World,
        timers: Timers,
        link: ControllerLink,
        registration: Callable[[], BrokerRegistrationRequest],
        registered: Callable[[], BrokerImage | None],
        metadata_offset: Callable[[], int],
        online_directories: Callable[[], Collection[Uuid]],
        heartbeat_interval_ms: int,
        session_timeout_ms: int,
        registration_timeout_ms: int,
        was_member: Callable[[], bool] = lambda: False,
        is_controlled: Callable[[], bool] = lambda: True,
        on_failure: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        """``registered``: this broker as the metadata has it; ``metadata_offset``: how far the picture of the cluster
        is in force here; ``was_member``: whether an earlier start had metadata of the cluster; ``is_controlled``:
        whether a stop lets others take over first; ``on_failure``: we are wrong, or replaced, and heartbeats have
        ended."""
        self._clock = world.clock
        self._timers = timers
        self._link = link
        self._registration = registration
        self._registered = registered
        self._metadata_offset = metadata_offset
        self._online_directories = online_directories
        self._timeout_ms = session_timeout_ms // 2
        self._registration_timeout_ms = registration_timeout_ms
        self._was_member = was_member
        self._is_controlled = is_controlled
        self._on_failure = on_failure
        self._life = BrokerLife(
            heartbeat_interval_ms=heartbeat_interval_ms,
            session_timeout_ms=session_timeout_ms,
            now_ms=world.clock.monotonic_ms(),
        )
        self._woken = asyncio.Event()
        self._changed = asyncio.Event()  # the phase has
        self._tasks = Tasks(on_failure=on_failure)
        self._request: BrokerRegistrationRequest | None = None
        self._is_outdated = False  # what was registered: the broker has other addresses now

    @property
    def broker_epoch(self) -> int:
        """-1 before the broker has been registered."""
        return self._life.epoch

    @property
    def phase(self) -> Phase:
        return self._life.phase

    async def register(self) -> int:
        """Return the broker's epoch once it is registered; heartbeats go on from then. CannotRegister says why not."""
        deadline_ms = self._clock.monotonic_ms() + self._registration_timeout_ms
        self._request = self._registration()
        while not self._life.is_registered:
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                if not self._was_member():
                    raise CannotRegister("the cluster's controller did not register this broker in time")
                # A machine without CPU time to spare recovers; a broker that has ended would not.
                log.warning(
                    "not registered for a long time; the broker goes on trying",
                    seconds=self._registration_timeout_ms // 1000,
                )
                deadline_ms, left_ms = deadline_ms + self._registration_timeout_ms, self._registration_timeout_ms
            try:
                await self._register(timeout_ms=left_ms)
            except ApiError as error:
                if error.error in FATAL:
                    raise CannotRegister(f"the cluster does not take this broker: {error.message}") from error
                log.warning("not registered yet", reason=error)
                self._life.failed(now_ms=self._clock.monotonic_ms())
                await self._timers.sleep(max(0, self._life.next_ms - self._clock.monotonic_ms()))
        self._tasks.start(self._run(), "lifecycle")
        return self._life.epoch

    async def _register(self, *, timeout_ms: int) -> None:
        assert self._request is not None
        answer = await self._link.ask(self._request, timeout_ms=timeout_ms)
        assert isinstance(answer, BrokerRegistrationResponse)
        raise_for_error(answer)
        self._life.registered(answer.broker_epoch, now_ms=self._clock.monotonic_ms())
        log.info("registered", broker_epoch=answer.broker_epoch)

    async def unfence(self) -> None:
        """The node is ready; return when the controller has let the broker in."""
        self._life.ready(now_ms=self._clock.monotonic_ms())
        self._woken.set()
        while self._life.phase is Phase.RECOVERY:
            self._changed.clear()
            await self._changed.wait()

    def on_image(self, _: object, image: ClusterImage) -> None:
        """A picture is in force. A broker that leaves waits until all others know that it leads nothing any more."""
        if any(
            broker.in_controlled_shutdown and not broker.is_fenced and broker.id != self._broker_id
            for broker in image.brokers.values()
        ):
            self.hurry()

    def hurry(self) -> None:
        """Say at once what is new: a directory has failed."""
        self._life.hurry(now_ms=self._clock.monotonic_ms())
        self._woken.set()

    def renew(self) -> None:
        """Register again, in the same epoch, if clients and other brokers are to find this one elsewhere now."""
        if self._request is not None and self._registration().listeners != self._request.listeners:
            self._is_outdated = True
            self.hurry()

    async def stop(self) -> None:
        """Let others take over what this broker leads, if that can be had in bounded time; then fall silent."""
        self._life.stop(is_controlled=self._is_controlled(), now_ms=self._clock.monotonic_ms())
        self._woken.set()
        self._changed.set()
        await self._tasks.done()

    # Driving ----------------------------------------

    async def _run(self) -> None:
        try:
            await self._live()
        except BarnabasError as error:
            log.error("failed", reason=error)
            self._on_failure(error)

    async def _live(self) -> None:
        while not self._is_gone():
            await self._until_due()
            now_ms = self._clock.monotonic_ms()
            if self._life.give_up(now_ms=now_ms):
                log.warning("stopped before others have taken over")
            elif now_ms >= self._life.next_ms and not self._is_gone():
                is_known = self._life.is_registered and not self._is_outdated
                await (self._say() if is_known else self._register_again())

    async def _register_again(self) -> None:
        self._request = self._registration()
        self._is_outdated = False
        try:
            await self._register(timeout_ms=self._timeout_ms)
        except ApiError as error:
            if error.error in FATAL:
                raise CannotRegister(f"the cluster does not take this broker back: {error.message}") from error
            log.warning("not registered yet", reason=error)
            self._life.failed(now_ms=self._clock.monotonic_ms())
            if self._life.is_registered:  # under its old addresses, where it lives on until the new ones are taken
                self._is_outdated = True
                await self._say()

    def _is_taken_out(self) -> bool:
        """Whether the metadata says why this broker's epoch is stale. It may hear of it later than the controller."""
        assert self._request is not None
        known = self._registered()
        if known is None:
            return True
        if known.epoch > self._life.epoch and known.incarnation_id != self._request.incarnation_id:
            raise Replaced(
                f"another process has registered as broker {known.id} (epoch {known.epoch}, this one had "
                f"{self._life.epoch}): this one ends"
            )
        return False

    def _is_gone(self) -> bool:
        return self._life.phase is Phase.GONE

    async def _until_due(self) -> None:
        """Until it is time to speak, or until something has happened that may make it time."""
        self._woken.clear()
        delay_ms = self._life.next_ms - self._clock.monotonic_ms()
        if delay_ms > 0:
            timer = self._timers.after(delay_ms, self._woken.set)
            try:
                await self._woken.wait()
            finally:
                timer.cancel()

    async def _say(self) -> None:
        before = self._life.phase
        online = self._online_directories()
        request = BrokerHeartbeatRequest(
            broker_id=self._broker_id,
            broker_epoch=self._life.epoch,
            current_metadata_offset=self._metadata_offset(),
            want_fence=self._life.wants_fence,
            want_shut_down=self._life.wants_shut_down,
            offline_log_dirs=[directory for directory in self._directories if directory not in online],
        )
        try:
            timeout_ms = LEAVE_SILENCE_MS_MAX if request.want_shut_down else self._timeout_ms
            answer = await self._link.ask(request, timeout_ms=timeout_ms)
            assert isinstance(answer, BrokerHeartbeatResponse)
            raise_for_error(answer)
        except ApiError as error:
            if error.error is errors.STALE_BROKER_EPOCH and self._is_taken_out():
                log.warning("unregistered while it runs; registers again", broker_epoch=self._life.epoch)
                self._life.unregistered(now_ms=self._clock.monotonic_ms())
                self._changed.set()
                return
            log.warning("heartbeat failed", reason=error)
            self._life.failed(now_ms=self._clock.monotonic_ms())
            return
        self._life.answered(
            is_caught_up=answer.is_caught_up,
            is_fenced=answer.is_fenced,
            may_go=answer.should_shut_down and request.want_shut_down,
            now_ms=self._clock.monotonic_ms(),
        )
        if self._life.phase is not before:
            log.info("phase", now=self._life.phase.value)
            self._changed.set()

    @property
    def _broker_id(self) -> int:
        assert self._request is not None
        return self._request.broker_id

    @property
    def _directories(self) -> list[Uuid]:
        """Those that were there when the broker registered."""
        assert self._request is not None
        return self._request.log_dirs
