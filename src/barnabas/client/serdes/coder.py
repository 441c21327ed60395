"""The two serdes of a client, put to use: keys and values of records to bytes and back, waiting where one must ask.

A producer encodes one record at a time, a consumer decodes what a poll brought. A record that cannot be decoded does
not take those before it along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple

from barnabas.client.errors import Undecodable
from barnabas.client.record import ConsumerRecord
from barnabas.client.serdes.serde import K, NotReady, Place, Serde, V
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition


class _Places(NamedTuple):
    key: Place
    value: Place


class Coder(Generic[K, V]):
    """A serde that is None leaves bytes as they are."""

    def __init__(self, key: Serde[K] | None, value: Serde[V] | None) -> None:
        self._key = key
        self._value = value
        self._places: dict[str, _Places] = {}

    async def encode(self, topic: str, key: K | None, value: V | None) -> tuple[bytes | None, bytes | None]:
        places = self._places_of(topic)
        while True:
            try:
                return (
                    key if key is None or self._key is None else self._key.encode(key, places.key),  # type: ignore[return-value]
                    value if value is None or self._value is None else self._value.encode(value, places.value),
                )
            except NotReady as unready:
                wait = unready.wait
            await wait()

    def headers(self, topic: str, key: K | None, value: V | None) -> tuple[tuple[str, bytes], ...]:
        """Headers that a record gets from its serdes; call it after :meth:`encode`."""
        places = self._places_of(topic)
        found = () if key is None or self._key is None else self._key.headers(places.key)
        return found if value is None or self._value is None else found + self._value.headers(places.value)

    async def decode(
        self, records: Sequence[ConsumerRecord]
    ) -> tuple[list[ConsumerRecord[K, V]], BarnabasError | None]:
        """As many as can be decoded, in their order, and why the next one cannot."""
        decoded: list[ConsumerRecord[K, V]] = []
        while len(decoded) < len(records):
            try:
                try:
                    self._decode_rest(records, decoded)
                    break
                except NotReady as unready:
                    wait = unready.wait
                await wait()
            except BarnabasError as error:
                if isinstance(error, Undecodable):
                    record = records[len(decoded)]
                    error.partition = TopicPartition(record.topic, record.partition)
                    error.offset = record.offset
                    error.add_note(f"the record is {error.partition} at offset {error.offset}")
                return decoded, error
        return decoded, None

    def _decode_rest(self, records: Sequence[ConsumerRecord], decoded: list[ConsumerRecord[K, V]]) -> None:
        key_serde, value_serde = self._key, self._value
        for index in range(len(decoded), len(records)):
            topic, partition, offset, timestamp_ms, raw_key, raw_value, headers = records[index]
            places = self._places.get(topic) or self._places_of(topic)
            key: K | None = raw_key  # type: ignore[assignment]
            value: V | None = raw_value  # type: ignore[assignment]
            if raw_key is not None and key_serde is not None:
                key = key_serde.decode_record(raw_key, places.key, headers)
            if raw_value is not None and value_serde is not None:
                value = value_serde.decode_record(raw_value, places.value, headers)
            decoded.append(ConsumerRecord(topic, partition, offset, timestamp_ms, key, value, headers))

    def _places_of(self, topic: str) -> _Places:
        places = self._places.get(topic)
        if places is None:
            places = self._places[topic] = _Places(Place(topic, is_key=True), Place(topic))
        return places
