"""The fetch requests of a consumer: its settings, and what its fetch session says of partitions.

Pure. ``wire.fetch_session`` has the session itself, which followers use too; the fetcher keeps one for each broker.
"""

from __future__ import annotations

from typing import Final

from barnabas.client.offsets import ISOLATION_LEVELS
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.wire.fetch_session import Plan
from barnabas.wire.messages.fetch import FetchRequest

EPOCHS_SINCE: Final = 12  # the version from which on a broker compares the epochs of records


def request_of(plan: Plan, settings: ConsumerSettings, version: int, *, wait_ms: int) -> FetchRequest:
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=wait_ms,
        min_bytes=settings.fetch_min_bytes,
        max_bytes=settings.fetch_max_bytes,
        isolation_level=ISOLATION_LEVELS[settings.isolation_level],
        session_id=plan.session_id,
        session_epoch=plan.epoch,
        topics=plan.topics(has_epochs=version >= EPOCHS_SINCE),
        forgotten_topics_data=plan.forgotten_topics(),
        rack_id=settings.client_rack,
    )
