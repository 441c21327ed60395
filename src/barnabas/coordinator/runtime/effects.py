"""What a coordinator decides in one step, and what a coordinator's machine is to the runtime that runs it.

Machines import this and nothing that waits; :mod:`barnabas.coordinator.runtime.runtime` performs what they return.
Time has one scale here: ``now_ms`` is the wall clock's, never goes back, and deadlines are on the same scale.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

R_co = TypeVar("R_co", covariant=True)


class Question(Generic[R_co]):
    """Base class of requests to a shard; ``R_co`` is the type of the response."""

    __slots__ = ()


class ProducerIdEpoch(NamedTuple):
    producer_id: int
    producer_epoch: int


class Record(NamedTuple):
    """One line of the coordinator's topic; no value is a tombstone."""

    key: bytes
    value: bytes | None


class Answer(NamedTuple):
    """What a request gets, once all that was decided up to now is committed."""

    request_id: int
    response: object


class SetTimer(NamedTuple):
    """Wake the machine at a moment; the newest deadline of a key counts, and None takes it back."""

    key: Hashable
    deadline_ms: int | None


class Effects:
    """One step: records go into one batch and are replayed at once; answers and sends follow when it is committed.

    With a ``producer`` the batch is a part of that producer's transaction. A timer is armed at once. Records that mean
    the same one by one, such as tombstones, need not be ``is_atomic``: then they may take several batches.

    If the records cannot be written, whoever was to be answered is told why, and ``rescue`` says how to go on; without
    one the whole shard is loaded again. A step that changes nothing but by its records has nothing to undo.
    """

    __slots__ = ("answers", "is_atomic", "producer", "records", "rescue", "sends", "timers")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.answers: list[Answer] = []
        self.timers: list[SetTimer] = []
        self.sends: list[object] = []
        self.producer: ProducerIdEpoch | None = None
        self.is_atomic = True
        self.rescue: Callable[[], Effects] | None = None

    def record(self, key: bytes, value: bytes | None) -> Effects:
        self.records.append(Record(key, value))
        return self

    def answer(self, request_id: int, response: object) -> Effects:
        self.answers.append(Answer(request_id, response))
        return self

    def timer(self, key: Hashable, deadline_ms: int | None) -> Effects:
        self.timers.append(SetTimer(key, deadline_ms))
        return self

    def send(self, message: object) -> Effects:
        self.sends.append(message)
        return self

    def extend(self, other: Effects) -> Effects:
        """Take over what another step decided, after what is here; both belong to one transaction, or to none."""
        assert self.producer is None or other.producer is None or self.producer == other.producer
        if other.records:
            self.rescue = _both(self.rescue, other.rescue) if self.records else other.rescue
        self.records += other.records
        self.answers += other.answers
        self.timers += other.timers
        self.sends += other.sends
        self.producer = self.producer or other.producer
        self.is_atomic = self.is_atomic and other.is_atomic
        return self

    def __add__(self, other: Effects) -> Effects:
        return Effects().extend(self).extend(other)

    def __repr__(self) -> str:
        parts = ((name, getattr(self, name)) for name in self.__slots__)
        return f"Effects({', '.join(f'{name}={value!r}' for name, value in parts if value and value is not True)})"


def nothing_to_undo() -> Effects:
    """The rescue of a step that has changed nothing yet."""
    return Effects()


def _both(first: Callable[[], Effects] | None, second: Callable[[], Effects] | None) -> Callable[[], Effects] | None:
    if first is None or second is None:
        return None
    one, other = first, second
    return lambda: one().extend(other())


class Shard(Protocol):
    """The machine of one partition of a coordinator's topic. It never waits, and knows no clock, disk or socket."""

    def replay(
        self, key: bytes, value: bytes | None, *, offset: int, producer: ProducerIdEpoch | None, timestamp_ms: int
    ) -> None:
        """A record of the log, freshly written or read again after a restart: durable state changes only here.

        With a ``producer`` the record counts only once that producer's transaction is committed.
        """

    def replay_marker(self, producer_id: int, producer_epoch: int, *, is_commit: bool) -> None:
        """The end of a producer's transaction."""

    def loaded(self, now_ms: int) -> Effects:
        """Everything has been replayed: arm timers, take up what was left undone."""

    def handle(self, request_id: int, request: Any, now_ms: int) -> Effects:
        """A request; its answer may come in a later step."""

    def on_timer(self, key: Hashable, now_ms: int) -> Effects:
        """A deadline has passed; ``now_ms`` is at or after it. The timer is gone."""

    def unloaded(self) -> list[Answer]:
        """Leadership is lost: what those get who still wait (NOT_COORDINATOR)."""
