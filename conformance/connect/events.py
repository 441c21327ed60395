"""Change events of two connectors, read from their topics and brought to one form, so that they can be compared."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from barnabas.client.blocking.consumer import Consumer
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition

WAIT_SECONDS_MAX: Final = 60.0
POLL_SECONDS: Final = 0.5
TEXT_MAX: Final = 200
NOTHING: Final = "(nothing)"
CLOCKS: Final = ("ts_ms", "ts_us", "ts_ns")  # when the connector made the event


class ChangeEvent(NamedTuple):
    """A record: JSON with schemas, without what must differ between two connectors."""

    key: Any
    value: Any
    headers: tuple[tuple[str, Any], ...]


class TopicReader:
    """Reads all records of topics with one partition."""

    def __init__(self, bootstrap: str) -> None:
        self._settings = ConsumerSettings.of({"bootstrap.servers": bootstrap, "isolation.level": "read_committed"})

    def raw(self, topic: str) -> list[Any]:
        """Return the records of a topic, as far as they are there."""
        found = []
        with Consumer(self._settings) as consumer:
            consumer.assign([TopicPartition(topic, 0)], until_end=True)
            while not consumer.is_at_end:
                found += consumer.poll(timeout_ms=500)
        return found

    def wait_for(self, topic: str, text: bytes) -> None:
        """Wait until a record of a topic has this text in its value."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        with Consumer(self._settings) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            while time.monotonic() < deadline:
                for record in consumer.poll(timeout_ms=500):
                    if record.value is not None and text in record.value:
                        return
        raise TimeoutError(f"no record with {text!r} came to {topic} within {WAIT_SECONDS_MAX:g} s")

    def wait_for_count(self, topic: str, count: int) -> None:
        """Wait until a topic has so many records."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        found = 0
        while time.monotonic() < deadline:
            with suppress(ApiError):  # there is no topic yet
                found = len(self.raw(topic))
            if found >= count:
                return
            time.sleep(POLL_SECONDS)
        raise TimeoutError(f"{topic} has {found} records and not {count} after {WAIT_SECONDS_MAX:g} s")

    def events(self, topic: str, prefix: str) -> list[ChangeEvent]:
        """Return the events of a topic; ``prefix`` is the connector's topic prefix, which is taken out of names."""
        return events_of(self.raw(topic), prefix)


def events_of(records: Iterable[Any], prefix: str) -> list[ChangeEvent]:
    """Return the events of records, which have a key, a value and headers."""
    found = [_event(record, prefix) for record in records]
    # Debezium follows the delete of a row without a key by a record without key and value.
    return [event for event in found if event.key is not None or event.value is not None]


def _event(record: Any, prefix: str) -> ChangeEvent:
    def parsed(data: bytes | None) -> Any:
        return None if data is None else json.loads(data.replace(f"{prefix}.".encode(), b"PREFIX."))

    value = parsed(record.value)
    payload = value.get("payload") if isinstance(value, dict) and "payload" in value else value
    if isinstance(payload, dict):
        for name in CLOCKS:
            payload.pop(name, None)
        if payload.get("data_collections"):  # in the order of a hash table
            payload["data_collections"].sort(key=lambda each: str(each["data_collection"]))
        source = payload.get("source")
        if isinstance(source, dict):
            for name in ("version", "name", "sequence"):
                source.pop(name, None)
            if source["snapshot"] != "false":  # read at different times
                for name in (*CLOCKS, "txId", "lsn", "snapshot"):
                    source.pop(name, None)
    headers = tuple((key, _header(data, prefix)) for key, data in record.headers if "context" not in key)
    return ChangeEvent(parsed(record.key), value, headers)


def _header(data: bytes | None, prefix: str) -> Any:
    if data is None:
        return None
    text = data.decode().replace(f"{prefix}.", "PREFIX.")
    with suppress(ValueError):
        return json.loads(text, strict=False)  # Kafka's converter does not escape tabs
    return text


def differences(theirs: list[ChangeEvent], ours: list[ChangeEvent]) -> list[str]:
    """Return what differs: the number of events, and the first example for each place in an event."""
    found: list[str] = []
    if len(theirs) != len(ours):
        found.append(f"they have {len(theirs)} events, we have {len(ours)}")
    seen: dict[str, int] = {}
    pairs = zip(in_order(theirs), in_order(ours), strict=False)
    for number, (their, our) in enumerate(pairs):
        for name in ChangeEvent._fields:
            for path, text in compare(getattr(their, name), getattr(our, name), name):
                if path not in seen:
                    found.append(f"event {number}, {path}: {text}")
                seen[path] = seen.get(path, 0) + 1
    return found


def in_order(events: list[ChangeEvent]) -> list[ChangeEvent]:
    """Return events as they came, but the rows of a snapshot by key: two snapshots need not read in the same order."""
    is_read = [_payload(event).get("op") == "r" for event in events]
    reads = [event for event, read in zip(events, is_read, strict=True) if read]
    others = [event for event, read in zip(events, is_read, strict=True) if not read]
    return [*sorted(reads, key=lambda event: json.dumps(event.value, sort_keys=True)), *others]


def _payload(event: ChangeEvent) -> dict[str, Any]:
    found = event.value.get("payload", event.value) if isinstance(event.value, dict) else {}
    return found if isinstance(found, dict) else {}


def compare(theirs: Any, ours: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the paths at which two values differ, with both values."""
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        for name in sorted(theirs.keys() | ours.keys()):
            yield from compare(theirs.get(name, NOTHING), ours.get(name, NOTHING), f"{path}.{name}")
    elif isinstance(theirs, list | tuple) and isinstance(ours, list | tuple):
        one, other = _labelled(theirs), _labelled(ours)
        if list(one) != list(other):
            yield path, f"theirs has {list(one)}, ours {list(other)}"[:TEXT_MAX]
        for name in one.keys() & other.keys():
            yield from compare(one[name], other[name], f"{path}[{name}]")
    elif theirs != ours or type(theirs) is not type(ours):
        yield path, f"theirs {json.dumps(theirs)[:TEXT_MAX]}, ours {json.dumps(ours)[:TEXT_MAX]}"


def _labelled(items: list[Any] | tuple[Any, ...]) -> dict[Any, Any]:
    """Return the items by the name of their field, or by their number."""
    return {item.get("field", n) if isinstance(item, dict) else n: item for n, item in enumerate(items)}
