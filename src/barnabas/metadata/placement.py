"""Where the replicas of new partitions go: striped over racks first, then over the brokers of each rack.

Racks matter most, an even spread comes second, and fenced brokers come last; a first replica is never placed on a
fenced broker. Placement is pure: the same brokers and the same seed give the same answer. The decisions on topics and
partitions call it; what is written of the answer is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

from barnabas.model.errors import INVALID_REPLICATION_FACTOR, ApiError

_MASK: Final = 2**64 - 1
_T = TypeVar("_T")


class UsableBroker(NamedTuple):
    """A broker that may be given replicas: registered, and not on its way out."""

    id: int
    rack: str | None
    is_fenced: bool


class Chance:
    """A small generator of numbers from a seed (splitmix64): good enough to spread, the same on every machine."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def below(self, limit: int) -> int:
        assert limit > 0
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return (mixed ^ (mixed >> 31)) % limit

    def shuffle(self, items: list[_T]) -> None:
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]


class _Ring:
    """Brokers handed out one after another; each new stripe starts one further along."""

    __slots__ = ("_given", "_start", "_stripe", "brokers")

    def __init__(self, brokers: list[int], chance: Chance) -> None:
        self.brokers = sorted(brokers)
        self._start = chance.below(len(brokers)) if brokers else 0
        self._given = 0
        self._stripe = 0

    def next(self, stripe: int) -> int | None:
        """The next broker that this stripe has not had, or None when it had them all."""
        if not self.brokers:
            return None
        if stripe != self._stripe:
            self._stripe = stripe
            self._given = 0
            self._start = (self._start + 1) % len(self.brokers)
        if self._given == len(self.brokers):
            return None
        broker = self.brokers[(self._start + self._given) % len(self.brokers)]
        self._given += 1
        return broker


class _Rack:
    __slots__ = ("fenced", "unfenced")

    def __init__(self, brokers: list[UsableBroker], chance: Chance) -> None:
        self.fenced = _Ring([broker.id for broker in brokers if broker.is_fenced], chance)
        self.unfenced = _Ring([broker.id for broker in brokers if not broker.is_fenced], chance)

    def next(self, stripe: int) -> int | None:
        broker = self.unfenced.next(stripe)
        return broker if broker is not None else self.fenced.next(stripe)


class _Stripes:
    """The racks in order; each partition starts one rack further, which gives the striped pattern."""

    def __init__(self, brokers: list[UsableBroker], chance: Chance) -> None:
        by_rack: dict[str | None, list[UsableBroker]] = {}
        for broker in sorted(brokers):
            by_rack.setdefault(broker.rack, []).append(broker)
        names = sorted(by_rack, key=lambda rack: (rack is not None, rack or ""))
        self._racks = [_Rack(by_rack[name], chance) for name in names]
        self._unfenced_count = sum(not broker.is_fenced for broker in brokers)
        self._chance = chance
        self._first = chance.below(len(self._racks))
        self._stripe = 0

    def next(self, replication_factor: int) -> tuple[int, ...]:
        # After as many stripes as there are live brokers the pattern would repeat, so it is shuffled. With one live
        # broker every stripe is the same anyway, and resetting the count would hand out nothing.
        if self._stripe == self._unfenced_count and self._unfenced_count > 1:
            self._chance.shuffle(self._racks)
            for rack in self._racks:
                self._chance.shuffle(rack.unfenced.brokers)
                self._chance.shuffle(rack.fenced.brokers)
            self._stripe = 0
        count = len(self._racks)
        leading = self._first % count
        leader = self._racks[leading].unfenced.next(self._stripe)
        while leader is None:
            leading = (leading + 1) % count
            leader = self._racks[leading].unfenced.next(self._stripe)
        replicas = [leader]
        rack_index = self._first % count
        has_skipped_leading = False
        while len(replicas) < replication_factor:
            # The leader's rack has given its share of the first round.
            if rack_index == leading and not has_skipped_leading:
                has_skipped_leading = True
            else:
                broker = self._racks[rack_index].next(self._stripe)
                if broker is not None:
                    replicas.append(broker)
            rack_index = (rack_index + 1) % count
        self._stripe += 1
        self._first = (self._first + 1) % count
        return tuple(replicas)


def place(
    brokers: Iterable[UsableBroker], *, partition_count: int, replication_factor: int, seed: int
) -> list[tuple[int, ...]]:
    """The replicas of each new partition, preferred leader first, or INVALID_REPLICATION_FACTOR."""
    usable = list(brokers)
    if replication_factor <= 0:
        raise ApiError(INVALID_REPLICATION_FACTOR, "a partition has at least one replica")
    if all(broker.is_fenced for broker in usable):
        raise ApiError(INVALID_REPLICATION_FACTOR, "no broker is alive that could take one")
    if replication_factor > len(usable):
        raise ApiError(
            INVALID_REPLICATION_FACTOR,
            f"each needs a broker of its own, and {len(usable)} can take one",
        )
    stripes = _Stripes(usable, Chance(seed))
    return [stripes.next(replication_factor) for _ in range(partition_count)]
