"""The times of records at offsets, which coordinators ask of leaders in a tagged field of ListOffsets."""

from __future__ import annotations

import asyncio

import pytest
from talk import Talk

from barnabas.broker.lag import offset_times
from barnabas.broker.lag.offset_times import LOOK_UPS_MAX, UNKNOWN
from barnabas.wire.compression import Codec
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.records import encode_batch

LATEST = -1


def write(talk: Talk, topic: str, *times_ms: int, codec: Codec = Codec.NONE) -> None:
    batch = encode_batch([(time_ms, None, b"v", ()) for time_ms in times_ms], codec=codec)
    assert talk.produce(topic, batch).error_code == 0


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_the_time_of_a_record_is_told_by_its_offset(talk: Talk, name: str, codec: Codec) -> None:
    talk.create(name, message_timestamp_before_max_ms=str(2**62))
    write(talk, name, 100, 300, 200, codec=codec)
    write(talk, name, 250)
    row = talk.offset(name, LATEST, unread_offsets=[0, 1, 2, 3, 4, 99])
    assert (row.error_code, row.offset, row.log_start_offset, row.newest_timestamp) == (0, 4, 0, 300)
    assert row.unread_timestamps == [100, 300, 200, 250, -1, -1]


def test_whoever_does_not_ask_is_told_nothing_more(talk: Talk, name: str) -> None:
    talk.create(name)
    row = talk.offset(name, LATEST)
    assert (row.log_start_offset, row.newest_timestamp, row.unread_timestamps) == (-1, -1, [])
    row = talk.offset(name, LATEST, unread_offsets=[])
    assert (row.log_start_offset, row.newest_timestamp, row.unread_timestamps) == (0, -1, [])


def test_offsets_that_cannot_be_are_answered(talk: Talk, name: str) -> None:
    talk.create(name, message_timestamp_before_max_ms=str(2**62))
    write(talk, name, 100)
    row = talk.offset(name, LATEST, unread_offsets=[-(2**63), -1, 2**63 - 1])
    assert row.unread_timestamps == [100, 100, -1]
    assert talk.offset("nowhere", LATEST, unread_offsets=[0]).error_code == 3


def test_one_request_gets_few_look_ups_and_the_rest_is_not_known(
    talk: Talk, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.create(name, partitions=2, message_timestamp_before_max_ms=str(2**62))
    write(talk, name, 100)
    assert len(talk.offset(name, LATEST, unread_offsets=[0] * (LOOK_UPS_MAX + 100)).unread_timestamps) == LOOK_UPS_MAX
    monkeypatch.setattr(offset_times, "LOOK_UPS_MAX", 2)
    assert talk.offset(name, LATEST, unread_offsets=[1, 0, 0]).unread_timestamps == [-1, 100]
    batch = encode_batch([(200, None, b"v", ())])
    assert talk.produce(name, batch, partition=1).error_code == 0
    parts = [
        ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=LATEST, unread_offsets=offsets)
        for index, offsets in enumerate(([0], [0, 0]))
    ]
    answer = talk.ask(ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=parts)]))
    assert [row.unread_timestamps for row in answer.topics[0].partitions] == [[100], [200, UNKNOWN]]


def test_others_are_served_between_two_look_ups(
    shared_broker: object, talk: Talk, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.create(name, message_timestamp_before_max_ms=str(2**62))
    write(talk, name, 100)
    turns = []
    original = offset_times._look_up

    def look_up(wanted: offset_times._LookUp) -> None:
        loop = asyncio.get_running_loop()
        place = len(turns)
        turns.append("look-up")
        loop.call_soon(turns.append, f"turn after {place}")
        original(wanted)

    monkeypatch.setattr(offset_times, "_look_up", look_up)
    assert talk.offset(name, LATEST, unread_offsets=[0, 0, 0]).unread_timestamps == [100] * 3
    talk.ask(ApiVersionsRequest(client_software_name="t", client_software_version="1"))
    assert turns == ["look-up", "turn after 0", "look-up", "turn after 2", "look-up", "turn after 4"]
