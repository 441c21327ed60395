"""A record as a consumer hands it out: what it says and where it lies.

Its type says what its keys and values are; without serdes they are bytes. The cursor makes records.
"""

from __future__ import annotations

from typing import Generic, NamedTuple

from barnabas.client.serdes.serde import K, V


class ConsumerRecord(NamedTuple, Generic[K, V]):
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: K | None
    value: V | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
