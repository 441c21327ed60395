"""Frames and headers, judged by kio where it can read them."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.model.errors import Malformed
from barnabas.wire.api import ApiKey
from barnabas.wire.frame import (
    RequestHeader,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from barnabas.wire.message import Unencodable, decode
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.messages.raft_control import EndTxnMarker


def joined(parts: list[Any]) -> bytes:
    frame = b"".join(parts)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    return frame[4:]


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("client_id", [None, "", "client-ä"])
def test_a_request_can_be_read_again(version: int, client_id: str | None) -> None:
    request = ProduceRequest(acks=-1, timeout_ms=5)
    frame = joined(encode_request(request, version, correlation_id=-7, client_id=client_id))
    header, position = decode_request_header(memoryview(frame))
    assert header == RequestHeader(ApiKey.PRODUCE, version, -7, client_id)
    assert isinstance(header, RequestHeader)
    assert decode(ProduceRequest, version, frame, position) == request


@pytest.mark.parametrize("version", [8, 9])
def test_kio_reads_our_request_header(version: int) -> None:
    kio_serial = pytest.importorskip("kio.serial")
    from kio.schema.request_header.v1.header import RequestHeader as OldHeader
    from kio.schema.request_header.v2.header import RequestHeader as NewHeader

    frame = joined(encode_request(ProduceRequest(), version, correlation_id=3, client_id="me"))
    header, size = kio_serial.entity_reader(NewHeader if version == 9 else OldHeader)(frame, 0)
    assert (header.request_api_key, header.request_api_version, header.correlation_id) == (0, version, 3)
    assert header.client_id == "me"
    assert decode_request_header(frame)[1] == size


@pytest.mark.parametrize("version", [8, 9])
def test_a_response_can_be_read_again(version: int) -> None:
    response = ProduceResponse(throttle_time_ms=4)
    frame = joined(encode_response(response, version, correlation_id=2**31 - 1))
    assert len(frame) == 4 + (version == 9) + len(joined([b"\0\0\0\0"])) + (8 if version == 8 else 6)
    assert decode_response(ProduceResponse, version, frame) == (2**31 - 1, response)


def test_the_answer_to_api_versions_keeps_the_old_header() -> None:
    response = ApiVersionsResponse(error_code=35)
    frame = joined(encode_response(response, 3, correlation_id=1))
    assert frame[:6] == b"\0\0\0\x01\0\x23"
    assert decode_response(ApiVersionsResponse, 3, frame) == (1, response)
    header, _ = decode_request_header(joined(encode_request(ApiVersionsRequest(), 3, correlation_id=1, client_id="c")))
    assert header.api_version == 3


def test_tagged_fields_of_a_header_are_passed_over() -> None:
    frame = b"\0\0\0\x09\0\0\0\x01\0\x01c" + b"\x01\x05\x02xy" + b"body"
    header, position = decode_request_header(frame)
    assert header.client_id == "c"
    assert frame[position:] == b"body"
    assert decode_response(ProduceResponse, 9, b"\0\0\0\x01" + b"\x01\x05\x02xy" + b"\x01\0\0\0\0\0")[0] == 1


def test_a_header_of_an_unknown_version_can_still_be_read() -> None:
    header, position = decode_request_header(b"\0\x12\x7f\xff\0\0\0\x01\xff\xff\0body")
    assert header == RequestHeader(ApiKey.API_VERSIONS, 32767, 1, None)
    assert position == 11


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0\0\0\x09\0\0\0\x01",
        b"\0\0\0\x08\0\0\0\x01\0\x05abcd",
        b"\0\0\0\x09\0\0\0\x01\xff\xff",
        b"\0\0\0\x09\0\0\0\x01\0\x01\xff\0",
        b"\0\0\0\x09\0\0\0\x01\xff\xff\x01",
        b"\x7f\xff\0\0\0\0\0\x01\xff\xff",
        b"\xff\xff\0\0\0\0\0\x01\xff\xff",
    ],
)
def test_a_header_that_cannot_be_read_is_malformed(frame: bytes) -> None:
    with pytest.raises(Malformed):
        decode_request_header(frame)


@pytest.mark.parametrize("frame", [b"", b"\0\0\0", b"\0\0\0\x01", b"\0\0\0\x01\x01"])
def test_a_response_that_ends_early_is_malformed(frame: bytes) -> None:
    with pytest.raises(Malformed):
        decode_response(ProduceResponse, 9, frame)


class Slice:
    size_bytes = 1000


def test_the_size_counts_what_is_still_in_files() -> None:
    partition = FetchResponse.PartitionData(records=Slice())
    topic = FetchResponse.FetchableTopicResponse(partitions=[partition])
    head, part, tail = encode_response(FetchResponse(responses=[topic]), 12, correlation_id=1)
    assert part is partition.records
    assert isinstance(head, bytearray)
    assert isinstance(tail, bytearray)
    assert int.from_bytes(head[:4], "big") == len(head) - 4 + 1000 + len(tail)


def test_a_client_id_that_is_too_long_and_a_message_without_api_are_refused() -> None:
    with pytest.raises(Unencodable):
        encode_request(ProduceRequest(), 9, correlation_id=1, client_id="x" * 40_000)
    with pytest.raises(AssertionError):
        encode_request(EndTxnMarker(), 0, correlation_id=1, client_id=None)
