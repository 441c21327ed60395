"""What one request costs the one who sent it: bytes and time are charged when it is answered, and who has had too much
waits.

The answer leaves at once and says for how long; meanwhile the connection is not heard, so a client that does not
listen waits all the same. Made by the dispatcher where quotas are set, and nowhere else.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.quotas.quotas import Kind, Quotas
from barnabas.broker.requests.services import Services
from barnabas.security.quota import WindowedRate
from barnabas.transport.connection import Connection
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.world.disk import FileSlice

NS_PER_PERCENT: Final = 10_000_000  # of a second
THROTTLE_MS_MAX: Final = 2**31 - 1


class Meter:
    __slots__ = (
        "_api",
        "_broker",
        "_connection",
        "_is_charged",
        "_quotas",
        "_size_bytes",
        "_spent_ns",
        "_started_ns",
        "client_id",
        "mutation_ms",
        "user",
    )

    def __init__(
        self, broker: Services, connection: Connection, *, user: str, client_id: str, api: int, size_bytes: int
    ) -> None:
        self._broker = broker
        self._quotas: Quotas = broker.quotas
        self._connection = connection
        self.user = user
        self.client_id = client_id
        self._api = api
        self._size_bytes = size_bytes
        self._spent_ns = 0
        self._started_ns = broker.world.clock.monotonic_ns()
        self._is_charged = False
        self.mutation_ms = 0  # for which changes to topics must wait

    def pause(self) -> None:
        """The request waits for others from here on: that is not our work."""
        if self._started_ns:
            self._spent_ns = self._broker.world.clock.monotonic_ns() - self._started_ns
            self._started_ns = 0

    def bound(self, message: Any) -> None:
        """A fetch asks for no more than it could ever get, or it would get nothing."""
        if not isinstance(message, FetchRequest) or _is_follower(message):
            return
        limit = self._quotas.fetch.limit(self.user, self.client_id)
        if limit is not None:
            settings = self._quotas.settings
            windows_ms = max(1, settings.windows - 1) * settings.window_ms
            message.max_bytes = min(message.max_bytes, max(1, int(limit.value * windows_ms / 1000)))

    def exempt(self) -> None:
        """Brokers among themselves have no quotas."""
        self._is_charged = True

    def charge(self, response: Any | None) -> None:
        """Once, when the answer is there (None: there is none to give)."""
        if self._is_charged:
            return
        self._is_charged = True
        self.pause()
        quotas = self._quotas
        request_ms = self._record(quotas.request, self._spent_ns / NS_PER_PERCENT)
        throttle_ms = max(min(request_ms, quotas.settings.window_ms), self.mutation_ms)
        if self._api == ApiKey.PRODUCE:
            throttle_ms = max(throttle_ms, self._record(quotas.produce, self._size_bytes))
        elif self._api == ApiKey.FETCH and response is not None:
            throttle_ms = self._charge_fetch(response, throttle_ms)
        if throttle_ms > 0:
            self._hold(response, min(throttle_ms, THROTTLE_MS_MAX))

    def _charge_fetch(self, response: FetchResponse, throttle_ms: int) -> int:
        size_bytes = sum(_size_bytes(row.records) for topic in response.responses for row in topic.partitions)
        throttle_ms = max(throttle_ms, self._record(self._quotas.fetch, size_bytes))
        if throttle_ms > 0 and size_bytes:
            # What is not sent now is asked for again; high watermarks and errors are told all the same.
            limit = self._quotas.fetch.limit(self.user, self.client_id)
            if limit is not None:
                self._quotas.fetch.used(limit).take_back(size_bytes)
            for topic in response.responses:
                for row in topic.partitions:
                    row.records = b""
        return throttle_ms

    def _record(self, kind: Kind[WindowedRate], value: float) -> int:
        limit = kind.limit(self.user, self.client_id)
        if limit is None:
            return 0
        throttle_ms = kind.used(limit).record(value, now_ms=self._quotas.clock.monotonic_ms(), limit=limit.value)
        if throttle_ms:
            kind.throttled_count += 1
        return throttle_ms

    def _hold(self, response: Any | None, throttle_ms: int) -> None:
        if response is not None and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = max(response.throttle_time_ms, throttle_ms)
        if self._connection.is_open:
            self._connection.hold(self._broker.timers, throttle_ms)


def _size_bytes(records: Any) -> int:
    """Of what is in memory, or of a slice of a file."""
    if records is None:
        return 0
    size_bytes: int = records.size_bytes if isinstance(records, FileSlice) else len(records)
    return size_bytes


def _is_follower(message: FetchRequest) -> bool:
    return message.replica_id >= 0 or message.replica_state.replica_id >= 0
