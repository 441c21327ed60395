"""Where the time of requests goes, part by part, as Kafka names the parts.

Queue: from the arrival of its bytes to its turn. Local: our own work. Remote: waiting for others, such as replicas or
the next record. Response queue: behind the answers before it and the rest of the turn. Send: until the transport has
taken it. One request of a connection is measured at a time, and of the commonest ones only some: ``broker/dispatch``
decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.observe.histogram import Histogram

PARTS: Final = ("total", "request_queue", "local", "remote", "response_queue", "response_send")


class Measured:
    """What is known of one kind of request."""

    __slots__ = ("count", "parts")

    def __init__(self) -> None:
        self.count = 0
        self.parts = tuple(Histogram() for _ in PARTS)


class RequestTimes:
    def __init__(self, now_ns: Callable[[], int], on_measured: Callable[[Timing], None] | None = None) -> None:
        self.now_ns = now_ns
        self.on_measured = on_measured
        self.of: dict[str, Measured] = {}  # by the name of the request

    def counted(self, request: str, count: int = 1) -> Measured:
        found = self.of.get(request)
        if found is None:
            found = self.of[request] = Measured()
        found.count += count
        return found

    def begin(self, arrived_ns: int) -> Timing:
        return Timing(self, arrived_ns)

    def turn(self) -> None:
        for measured in self.of.values():
            for part in measured.parts:
                part.turn()


class Timing:
    """One request on its way."""

    __slots__ = ("_times", "arrived_ns", "client_id", "handled_ns", "leaving_ns", "ready_ns", "request", "started_ns")

    def __init__(self, times: RequestTimes, arrived_ns: int) -> None:
        self._times = times
        self.request = ""
        self.client_id: str | None = None
        self.started_ns = times.now_ns()
        self.arrived_ns = arrived_ns or self.started_ns
        self.handled_ns = 0
        self.ready_ns = 0
        self.leaving_ns = 0

    def handled(self) -> None:
        """Our own work is done, or waits for others."""
        self.handled_ns = self._times.now_ns()

    def ready(self, _: object = None) -> None:
        """The answer is there."""
        self.ready_ns = self._times.now_ns()
        if not self.handled_ns:
            self.handled_ns = self.ready_ns

    def leaving(self) -> None:
        """The answer, if it is there, is next."""
        if self.ready_ns and not self.leaving_ns:
            self.leaving_ns = self._times.now_ns()

    def left(self) -> bool:
        """Whether the answer is out; if so, all is known and counted."""
        if not self.leaving_ns:
            return False
        self._count(self._times.now_ns())
        return True

    @property
    def parts_ns(self) -> tuple[int, int, int, int]:
        """Queue, local, remote, response queue."""
        return (
            self.started_ns - self.arrived_ns,
            self.handled_ns - self.started_ns,
            self.ready_ns - self.handled_ns,
            self.leaving_ns - self.ready_ns,
        )

    def _count(self, sent_ns: int) -> None:
        measured = self._times.of.get(self.request)
        if measured is None:
            return  # it was not understood
        durations = (sent_ns - self.arrived_ns, *self.parts_ns, sent_ns - self.leaving_ns)
        for part, duration_ns in zip(measured.parts, durations, strict=True):
            part.record(duration_ns)
        if self._times.on_measured is not None:
            self._times.on_measured(self)
