"""A broker's life in its cluster, as a small machine: what to say to the controller next, and when.

    STARTING    -- registered -->                 RECOVERY (fenced: it may be unfenced once its node is ready)
    RECOVERY    -- unfenced by a heartbeat -->    RUNNING
    any of them -- asked to stop -->              STOPPING (controlled shutdown: others take over what it leads)
    STOPPING    -- the controller lets it go, or the time is up --> GONE

    RECOVERY or RUNNING -- unregistered -->       RECOVERY (it registers again, and is unfenced as at the beginning)

A broker that is not registered is gone as soon as it is asked to stop. Failures are repeated after a pause that grows.
Time is an argument; ``lifecycle`` drives this.
"""

from __future__ import annotations

import enum
from typing import Final

CATCH_UP_MS: Final = 10  # until a broker that is not caught up, or not let in yet, asks again
FIRST_LEAVE_MS: Final = 50  # most shutdowns are done when they are asked about for the second time
LEAVE_PAUSE_MS_MAX: Final = 500
RETRY_MS_MIN: Final = 100
REGISTER_MS_MAX: Final = 1000  # a broker that crashed is let in again soon after its old session has ended
LEAVE_MS_MAX: Final = 15_000  # a stop waits no longer for others to take over
LEAVE_SILENCE_MS_MAX: Final = 2_000  # nor for a controller that does not answer: all may be stopping at once


class Phase(enum.Enum):
    STARTING = "starting"
    RECOVERY = "recovery"
    RUNNING = "running"
    STOPPING = "stopping"
    GONE = "gone"


class BrokerLife:
    def __init__(self, *, heartbeat_interval_ms: int, session_timeout_ms: int, now_ms: int) -> None:
        self._interval_ms = heartbeat_interval_ms
        self._retry_ms_max = session_timeout_ms // 2
        self.phase = Phase.STARTING
        self.epoch = -1
        self.is_ready = False  # to be unfenced: what its node hosts is there
        self.next_ms = now_ms  # when to speak to the controller next
        self._failures = 0
        self._is_hurried = False
        self._leave_answers = 0
        self._leave_deadline_ms = 0
        self._heard_ms = now_ms

    @property
    def is_registered(self) -> bool:
        return self.epoch >= 0

    @property
    def wants_fence(self) -> bool:
        return not self.is_ready

    @property
    def wants_shut_down(self) -> bool:
        return self.phase is Phase.STOPPING

    # What happens ----------------------------------------

    def registered(self, epoch: int, *, now_ms: int) -> None:
        self.epoch = epoch
        self._heard(now_ms)
        if self.phase is Phase.STARTING:
            self.phase = Phase.RECOVERY
        self.next_ms = now_ms if self.is_ready or self.wants_shut_down else now_ms + self._interval_ms

    def ready(self, *, now_ms: int) -> None:
        """The node has made what the metadata wants of it: it may be unfenced."""
        self.is_ready = True
        if self.is_registered:
            self.next_ms = now_ms

    def answered(self, *, is_caught_up: bool, is_fenced: bool, may_go: bool, now_ms: int) -> None:
        """The answer to a heartbeat."""
        self._heard(now_ms)
        if self.phase is Phase.STOPPING:
            self._leave_answers += 1
            if may_go:
                self.phase = Phase.GONE
            delay_ms = min(FIRST_LEAVE_MS << min(self._leave_answers - 1, 10), LEAVE_PAUSE_MS_MAX)
            self.next_ms = min(now_ms + delay_ms, self._leave_deadline_ms)
            return
        if self.phase is Phase.RECOVERY and not is_fenced:
            self.phase = Phase.RUNNING
        is_waiting = self.is_ready and (is_fenced or not is_caught_up)
        self.next_ms = now_ms + (CATCH_UP_MS if is_waiting or self._is_hurried else self._interval_ms)
        self._is_hurried = False

    def unregistered(self, *, now_ms: int) -> None:
        """The broker was taken out of the cluster while it ran: nobody waits for it, and it may come again."""
        self.epoch = -1
        self._heard(now_ms)
        self.phase = Phase.GONE if self.phase in (Phase.STOPPING, Phase.GONE) else Phase.RECOVERY
        self.next_ms = now_ms

    def failed(self, *, now_ms: int) -> None:
        """There was no answer, or an error."""
        pause_ms_max = self._retry_ms_max if self.is_registered else REGISTER_MS_MAX
        pause_ms = min(pause_ms_max, RETRY_MS_MIN << min(self._failures, 10))
        self._failures += 1
        self.next_ms = now_ms + pause_ms
        if self.phase is Phase.STOPPING:
            self.next_ms = min(self.next_ms, self._leave_deadline_ms)

    def hurry(self, *, now_ms: int) -> None:
        """There is news for the controller that should not wait for the next heartbeat."""
        if self.is_registered:
            self.next_ms = min(self.next_ms, now_ms)
            self._is_hurried = True  # also if a heartbeat that does not tell of it is under way

    def stop(self, *, is_controlled: bool, now_ms: int) -> None:
        if not self.is_registered or not is_controlled:
            self.phase = Phase.GONE
        elif self.phase is not Phase.GONE:
            self.phase = Phase.STOPPING
            self._leave_deadline_ms = now_ms + LEAVE_MS_MAX
            self._heard_ms = now_ms
            self.next_ms = now_ms

    def give_up(self, *, now_ms: int) -> bool:
        """Whether a shutdown has waited long enough for the controller; it is over then."""
        if self.phase is Phase.STOPPING and (
            now_ms >= self._leave_deadline_ms or now_ms - self._heard_ms >= LEAVE_SILENCE_MS_MAX
        ):
            self.phase = Phase.GONE
            return True
        return False

    def _heard(self, now_ms: int) -> None:
        self._failures = 0
        self._heard_ms = now_ms
