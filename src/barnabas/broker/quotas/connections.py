"""How fast connections may come: from one address, by its quota in the metadata, and from all of them together.

Whoever connects too often from one address is kept waiting and then turned away; where all of them together are too
many, each waits until it is its turn. How many there may be at once is the listener's business.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.broker.settings.quotas import QuotaSettings
from barnabas.metadata.quotas import ADDRESS, CONNECTION_CREATION_RATE
from barnabas.metadata.quotas_image import ClientQuotasImage
from barnabas.model.settings import INT32_MAX
from barnabas.security.quota import WindowedRate
from barnabas.world.clock import Clock

ADDRESSES_MAX: Final = 10_000  # whose connections are remembered
IPV4_IN_IPV6: Final = "::ffff:"


class Pace(NamedTuple):
    wait_ms: int
    is_refused: bool


AT_ONCE: Final = Pace(0, False)


class ConnectionQuotas:
    def __init__(self, clock: Clock, settings: QuotaSettings) -> None:
        self._clock = clock
        self.settings = settings
        self._of_address: dict[str | None, float] = {}
        self._rates: dict[str, WindowedRate] = {}
        self._all = self._rate()

    def follow(self, image: ClientQuotasImage) -> None:
        self._of_address = {
            entity[0][1]: values[CONNECTION_CREATION_RATE]
            for entity, values in image.by_entity.items()
            if entity[0][0] == ADDRESS and CONNECTION_CREATION_RATE in values
        }

    def pace(self, address: str) -> Pace:
        """Count a connection; answers how long it waits, and whether it is turned away then."""
        now_ms = self._clock.monotonic_ms()
        refused_ms = self._of(address.removeprefix(IPV4_IN_IPV6), now_ms) if self._of_address else 0
        if refused_ms:
            return Pace(refused_ms, True)
        limit = self.settings.connections_per_second_max
        if limit == INT32_MAX:
            return AT_ONCE
        return Pace(self._bounded(self._all.record(1, now_ms=now_ms, limit=max(limit, 1))), False)

    def _of(self, address: str, now_ms: int) -> int:
        limit = self._of_address.get(address, self._of_address.get(None))
        if limit is None:
            return 0
        rate = self._rates.get(address)
        if rate is None:
            if len(self._rates) >= ADDRESSES_MAX:
                idle = [each for each, used in self._rates.items() if used.is_idle(now_ms)]
                for each in idle or list(self._rates)[:1]:
                    del self._rates[each]
            rate = self._rates[address] = self._rate()
        wait_ms = rate.record(1, now_ms=now_ms, limit=limit)
        if wait_ms:
            rate.take_back(1)  # it is turned away, so it does not count
        return self._bounded(wait_ms)

    def _rate(self) -> WindowedRate:
        settings = self.settings
        return WindowedRate(windows=settings.windows, window_ms=settings.window_ms)

    def _bounded(self, wait_ms: int) -> int:
        settings = self.settings
        return min(wait_ms, settings.windows * settings.window_ms)
