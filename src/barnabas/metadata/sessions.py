"""When each broker was last heard of, on the controller that is active: who is alive, and who is far enough behind.

None of it is in the log; a controller that takes over gives every broker a full session anew. Time is an argument.
``broker_lifecycle`` keeps it up to date, heartbeats are decided with it.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.metadata.image import ClusterImage
from barnabas.model.ids import NO_OFFSET


class Session(NamedTuple):
    broker_id: int
    epoch: int


class BrokerSessions:
    def __init__(self, *, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._contact_ms: dict[Session, int] = {}  # least recent contact first
        self._metadata_offsets: dict[int, int] = {}
        self._shutdown_offsets: dict[int, int] = {}

    def start(self, image: ClusterImage, *, now_ms: int) -> None:
        """This controller has become active."""
        self._contact_ms.clear()
        self._metadata_offsets.clear()
        self._shutdown_offsets.clear()
        for broker_id in sorted(image.brokers):
            broker = image.brokers[broker_id]
            if not broker.is_fenced:
                self._contact_ms[Session(broker_id, broker.epoch)] = now_ms

    def touch(self, broker_id: int, epoch: int, *, now_ms: int) -> None:
        key = Session(broker_id, epoch)
        self._contact_ms.pop(key, None)
        self._contact_ms[key] = now_ms

    def has_read(self, broker_id: int, metadata_offset: int) -> None:
        """The broker has told how far it has read the metadata log."""
        self._metadata_offsets[broker_id] = metadata_offset

    def is_valid(self, broker_id: int, epoch: int, *, now_ms: int) -> bool:
        contact_ms = self._contact_ms.get(Session(broker_id, epoch))
        return contact_ms is not None and contact_ms + self._timeout_ms >= now_ms

    def forget(self, broker_id: int) -> None:
        self._metadata_offsets.pop(broker_id, None)
        self._shutdown_offsets.pop(broker_id, None)
        for key in [key for key in self._contact_ms if key.broker_id == broker_id]:
            del self._contact_ms[key]

    def end(self, session: Session) -> None:
        """It is known to be over before its time."""
        self._contact_ms.pop(session, None)

    def take_expired(self, *, now_ms: int) -> Session | None:
        """One broker that was silent for too long; its session is gone with this."""
        for key, contact_ms in self._contact_ms.items():
            if contact_ms + self._timeout_ms >= now_ms:
                return None
            del self._contact_ms[key]
            return key
        return None

    def give_back(self, session: Session, *, now_ms: int) -> None:
        """What was to be done about the end of a session could not be done: it has still ended, unless the broker was
        heard of meanwhile."""
        if session not in self._contact_ms:
            self._contact_ms = {session: now_ms - self._timeout_ms - 1, **self._contact_ms}

    @property
    def next_deadline_ms(self) -> int | None:
        """When somebody's session ends if nobody is heard of."""
        for contact_ms in self._contact_ms.values():
            return contact_ms + self._timeout_ms + 1
        return None

    def begin_shutdown(self, broker_id: int, offset: int) -> None:
        """The broker may go once all others have read up to this offset: then they know who leads instead."""
        self._shutdown_offsets.setdefault(broker_id, offset)

    def end_shutdown(self, broker_id: int) -> None:
        self._shutdown_offsets.pop(broker_id, None)

    def may_shut_down(self, image: ClusterImage, broker_id: int) -> bool:
        shutdown_offset = self._shutdown_offsets.get(broker_id, image.offset)
        return all(
            self._metadata_offsets.get(other.id, NO_OFFSET) >= shutdown_offset
            for other in image.brokers.values()
            if other.is_active and other.id != broker_id
        )
