"""Sources and sinks of a task: bytes to objects and back, timestamps, partitions of repartitioned records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.errors import RecordTooLarge
from barnabas.client.serdes.serde import Place
from barnabas.streams.functions import with_key
from barnabas.streams.runtime.messages import payload_decoder, payload_encoder
from barnabas.streams.runtime.wiring import Forward, Wiring
from barnabas.streams.serdes import Codec, WindowedSerde, codec_of
from barnabas.streams.topology.node import Node
from barnabas.streams.topology.operators import Sink, Source
from barnabas.wire.key_hash import murmur2

if TYPE_CHECKING:
    from barnabas.streams.runtime.task import Decoded, InputRecord

__all__ = ["build_sink", "build_source"]

_POSITIVE: Final = 0x7FFFFFFF
_TOPIC: Final = re.compile(r"(?!\.\.?$)[a-zA-Z0-9._-]{1,249}")


def build_source(wiring: Wiring, node: Node, source: Source) -> Forward:
    """Register the decoder of a source's topics."""
    topics = source.topics if source.pattern is None else (source.pattern.pattern,)
    for topic in topics:
        decode = _decoder(wiring, node, source, topic)
        if source.pattern is None:
            wiring.decoders[topic] = decode
        else:
            wiring.pattern_decoders.append((source.pattern, decode))
    return wiring.forward(node)


def _decoder(
    wiring: Wiring, node: Node, source: Source, topic: str
) -> Callable[[list[InputRecord]], Iterator[Decoded]]:
    task = wiring.task
    fail = wiring.fail(node, "reading")
    place = wiring.task.topology.decorate(topic) if source.is_internal else topic
    key_codec = codec_of(source.key, Place(place, is_key=True))
    value_codec = codec_of(source.value, Place(place))
    forward = wiring.forward(node)
    at = source.at
    if source.payload != "value":
        forward, decode_value = payload_decoder(source.payload, forward, value_codec)
        decode_key = key_codec.unpack
    elif source.is_internal:
        decode_key, decode_value = key_codec.unpack, value_codec.unpack
    else:
        decode_key, decode_value = key_codec.decode, value_codec.decode

    def decode(records: list[InputRecord]) -> Iterator[Decoded]:
        for record in records:
            timestamp, key_bytes, value_bytes = record[3], record[4], record[5]
            try:
                key = None if key_bytes is None else decode_key(key_bytes)
                value = None if value_bytes is None else decode_value(value_bytes)
                if at is not None and value is not None:
                    timestamp = at(value)
                if timestamp < 0:
                    raise ValueError(f"the timestamp is {timestamp}; pass at= to take it from the value")
            except Exception as error:  # noqa: BLE001 - serdes of users raise what they like
                task.record = record
                fail(error)
                continue
            yield forward, key, value, timestamp, record

    return decode


def build_sink(wiring: Wiring, node: Node, sink: Sink) -> Forward:
    """Make the function of a sink."""
    if sink.is_internal:
        return _internal_sink(wiring, node, sink)
    if sink.topic is None:
        return _dynamic_sink(wiring, node, sink)
    return _static_sink(wiring, node, sink, sink.topic)


def _static_sink(wiring: Wiring, node: Node, sink: Sink, topic: str) -> Forward:
    from barnabas.streams.runtime.task import Row

    fail = wiring.fail(node, "writing")
    encode_key = codec_of(sink.key, Place(topic, is_key=True)).encode
    encode_value = codec_of(sink.value, Place(topic)).encode
    choose = _chooser(wiring, sink, topic)
    bytes_max = wiring.task.record_bytes_max
    append = wiring.task.rows.append
    new = tuple.__new__

    def write(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        try:
            key_bytes = None if key is None else encode_key(key)
            value_bytes = None if value is None else encode_value(value)
            partition = None if choose is None else choose(key, value)
            if value_bytes is not None and len(value_bytes) > bytes_max:
                raise RecordTooLarge(f"a value of {len(value_bytes)} bytes is above the limit of {bytes_max}")
        except Exception as error:  # noqa: BLE001 - serdes of users raise what they like
            fail(error)
            return
        append(new(Row, (topic, partition, key_bytes, value_bytes, headers, timestamp, False)))

    return write


def _dynamic_sink(wiring: Wiring, node: Node, sink: Sink) -> Forward:
    """A sink whose topic is chosen by a function; it keeps one static sink for each topic."""
    assert sink.extractor is not None
    extract = with_key(sink.extractor)
    fail = wiring.fail(node, "writing")
    sinks: dict[str, Forward] = {}

    def write(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        try:
            topic = extract(key, value)
            if not _TOPIC.fullmatch(topic):
                raise ValueError(f"{topic!r} is not the name of a topic")
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        static = sinks.get(topic)
        if static is None:
            static = sinks[topic] = _static_sink(wiring, node, sink, topic)
        static(key, value, timestamp, headers)

    return write


def _chooser(wiring: Wiring, sink: Sink, topic: str) -> Callable[[Any, Any], int | None] | None:
    """What chooses the partition; None leaves it to the producer.

    The partition of a windowed key is that of the key without the window.
    """
    partitioner = sink.partitioner
    if partitioner is not None:
        count = wiring.partition_count(topic)
        return lambda key, value: partitioner(topic, key, value, count)
    if isinstance(sink.key, WindowedSerde) and topic in wiring.partitions:
        count = wiring.partitions[topic]
        encode = codec_of(sink.key.inner, Place(topic, is_key=True)).encode
        return lambda key, value: None if key is None else (murmur2(encode(key[0])) & _POSITIVE) % count
    return None


def _internal_sink(wiring: Wiring, node: Node, sink: Sink) -> Forward:
    topic = sink.topic
    assert topic is not None
    place = wiring.task.topology.decorate(topic)
    key_codec = codec_of(sink.key, Place(place, is_key=True))
    value_codec = codec_of(sink.value, Place(place))
    fail = wiring.fail(node, "writing")
    if sink.payload != "value":
        return payload_encoder(sink.payload, _repartition(wiring, node, topic, key_codec), value_codec, fail)
    pack = value_codec.pack
    write = _repartition(wiring, node, topic, key_codec)
    partitioner = sink.partitioner
    count = wiring.partition_count(topic)

    def send(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        try:
            value_bytes = None if value is None else pack(value)
            partition = None if partitioner is None else partitioner(topic, key, value, count)
        except Exception as error:  # noqa: BLE001 - serdes of users raise what they like
            fail(error)
            return
        write(key, value_bytes, timestamp, headers, partition)

    return send


def _repartition(wiring: Wiring, node: Node, topic: str, key_codec: Codec) -> Forward:
    """Return a function that writes an internal row to the partition of its key."""
    from barnabas.streams.runtime.task import Row

    count = wiring.partition_count(topic)
    fail = wiring.fail(node, "writing")
    encode, pack = key_codec.encode, key_codec.pack
    is_same = encode is pack
    own = wiring.task.partition % count
    append = wiring.task.rows.append
    new = tuple.__new__

    def write(key: Any, value: bytes | None, timestamp: int, headers: Any, partition: int | None = None) -> None:
        try:
            packed = None if key is None else pack(key)
            if packed is None and partition is None:
                partition = own
            elif partition is None:
                partition = (murmur2(packed if is_same else encode(key)) & _POSITIVE) % count
        except Exception as error:  # noqa: BLE001 - serdes of users raise what they like
            fail(error)
            return
        append(new(Row, (topic, partition, packed, value, headers, timestamp, True)))

    return write
