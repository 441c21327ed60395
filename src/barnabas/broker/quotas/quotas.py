"""Who may have how much: the quota in force for a user and a client id, and how long those above it must wait.

The quotas come from the metadata. The most specific one that names the user, the client id or both counts, kind by
kind, as in Kafka; without any, nobody is even asked who they are. Requests are charged by ``metering``, changes to
topics by ``quota_mutations``, connections by ``connection_quotas``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from barnabas.broker.quotas.connections import ConnectionQuotas
from barnabas.broker.settings.quotas import QuotaSettings
from barnabas.metadata.quotas import (
    CLIENT_ID,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)
from barnabas.metadata.quotas_image import ClientQuotasImage, QuotaEntity
from barnabas.security.quota import TokenBucket, WindowedRate
from barnabas.world.clock import Clock

KEPT_MAX: Final = 10_000  # clients whose use is remembered


class Forgettable(Protocol):
    def is_idle(self, now_ms: int) -> bool: ...


M = TypeVar("M", bound=Forgettable)


class Limit(NamedTuple):
    value: float
    key: tuple[str, str]  # who shares it: a user, a client id, or a client id of a user


class Kind(Generic[M]):
    """One kind of quota: its limits, and what everybody has used of them."""

    def __init__(self, name: str, clock: Clock, make: Callable[[float], M]) -> None:
        self.name = name
        self._clock = clock
        self._make = make
        self._limits: dict[QuotaEntity, float] = {}
        self._found: dict[tuple[str, str], Limit | None] = {}
        self._used: dict[tuple[str, str], M] = {}
        self.throttled_count = 0

    @property
    def has_limits(self) -> bool:
        return bool(self._limits)

    def follow(self, image: ClientQuotasImage) -> None:
        self._limits = {entity: values[self.name] for entity, values in image.by_entity.items() if self.name in values}
        self._found.clear()

    def limit(self, user: str, client_id: str) -> Limit | None:
        if not self._limits:
            return None
        try:
            return self._found[user, client_id]
        except KeyError:
            if len(self._found) >= KEPT_MAX:
                self._found.clear()
            found = self._found[user, client_id] = self._find(user, client_id)
            return found

    def _find(self, user: str, client_id: str) -> Limit | None:
        both, whole_user, whole_client = (user, client_id), (user, ""), ("", client_id)
        for entity, key in (
            (((CLIENT_ID, client_id), (USER, user)), both),
            (((CLIENT_ID, None), (USER, user)), both),
            (((USER, user),), whole_user),
            (((CLIENT_ID, client_id), (USER, None)), both),
            (((CLIENT_ID, None), (USER, None)), both),
            (((USER, None),), whole_user),
            (((CLIENT_ID, client_id),), whole_client),
            (((CLIENT_ID, None),), whole_client),
        ):
            value = self._limits.get(entity)
            if value is not None:
                return Limit(value, key)
        return None

    def used(self, limit: Limit) -> M:
        found = self._used.get(limit.key)
        if found is None:
            if len(self._used) >= KEPT_MAX:
                self._forget()
            found = self._used[limit.key] = self._make(limit.value)
        return found

    def _forget(self) -> None:
        """Those who have been quiet; if nobody has, the one who came first."""
        now_ms = self._clock.monotonic_ms()
        idle = [key for key, used in self._used.items() if used.is_idle(now_ms)]
        for key in idle or list(self._used)[:1]:
            del self._used[key]


class Quotas:
    def __init__(self, clock: Clock, settings: QuotaSettings) -> None:
        self.clock = clock
        self.settings = settings
        self.connections = ConnectionQuotas(clock, settings)
        self.produce = self._rates(PRODUCER_BYTE_RATE)
        self.fetch = self._rates(CONSUMER_BYTE_RATE)
        self.request = self._rates(REQUEST_PERCENTAGE)
        self.mutation = Kind(CONTROLLER_MUTATION_RATE, clock, self._bucket)
        self.kinds = (self.produce, self.fetch, self.request, self.mutation)
        self.is_active = False  # whether anybody has a quota at all
        self._callbacks: list[Callable[[bool], None]] = []

    def on_activity(self, callback: Callable[[bool], None]) -> None:
        """Call back whenever the first quota is set or the last one is gone."""
        self._callbacks.append(callback)

    def follow(self, image: ClientQuotasImage) -> None:
        self.connections.follow(image)
        for kind in self.kinds:
            kind.follow(image)
        is_active = any(kind.has_limits for kind in self.kinds)
        if is_active != self.is_active:
            self.is_active = is_active
            for callback in self._callbacks:
                callback(is_active)

    def _rates(self, name: str) -> Kind[WindowedRate]:
        settings = self.settings
        return Kind(name, self.clock, lambda _: WindowedRate(windows=settings.windows, window_ms=settings.window_ms))

    def _bucket(self, limit: float) -> TokenBucket:
        return TokenBucket(
            windows=self.settings.mutation_windows,
            window_ms=self.settings.mutation_window_ms,
            limit=limit,
            now_ms=self.clock.monotonic_ms(),
        )
