"""Where the time of requests goes, part by part, as Kafka names the parts.

Queue: from the arrival of its bytes to its turn. Local: our own work. Remote: waiting for others, such as replicas or
the next record. Response queue: behind the answers before it and the rest of the turn. Send: until the transport has
taken it. Measuring costs microseconds, so one request of a connection is measured at a time, and one of a kind in two
milliseconds; all are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.observe.histogram import Histogram

INTERVAL_NS: Final = 2_000_000
PARTS: Final = ("total", "request_queue", "local", "remote", "response_queue", "response_send")


class Measured:
    """What is known of one kind of request."""

    __slots__ = ("count", "name", "next_ns", "parts")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.next_ns = 0  # before this none is measured
        self.parts = tuple(Histogram() for _ in PARTS)


class RequestTimes:
    def __init__(self, now_ns: Callable[[], int], on_measured: Callable[[Timing], None] | None = None) -> None:
        self.now_ns = now_ns
        self.on_measured = on_measured
        self.of: dict[str, Measured] = {}  # by the name of the request

    def kind(self, request: str) -> Measured:
        found = self.of.get(request)
        if found is None:
            found = self.of[request] = Measured(request)
        return found

    def begin(self, kind: Measured, arrived_ns: int, client_id: str | None = None) -> Timing:
        kind.next_ns = arrived_ns + INTERVAL_NS
        return Timing(self, kind, arrived_ns, client_id)

    def turn(self) -> None:
        for measured in self.of.values():
            for part in measured.parts:
                part.turn()


class Timing:
    """One request on its way."""

    __slots__ = ("_times", "arrived_ns", "client_id", "handled_ns", "kind", "leaving_ns", "ready_ns", "started_ns")

    def __init__(self, times: RequestTimes, kind: Measured, arrived_ns: int, client_id: str | None) -> None:
        self._times = times
        self.kind = kind
        self.client_id = client_id
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
    def parts_ns(self) -> tuple[int, int, int]:
        """Queue, local, remote."""
        return (
            self.started_ns - self.arrived_ns,
            self.handled_ns - self.started_ns,
            self.ready_ns - self.handled_ns,
        )

    def _count(self, sent_ns: int) -> None:
        total, queue, local, remote, response_queue, response_send = self.kind.parts
        total.record(sent_ns - self.arrived_ns)
        queue.record(self.started_ns - self.arrived_ns)
        local.record(self.handled_ns - self.started_ns)
        remote.record(self.ready_ns - self.handled_ns)
        response_queue.record(self.leaving_ns - self.ready_ns)
        response_send.record(sent_ns - self.leaving_ns)
        if self._times.on_measured is not None:
            self._times.on_measured(self)
