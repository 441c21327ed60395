"""A produce read in place says what the declared message says, compiled or not, and leaves everything else alone."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.model.ids import Uuid
from barnabas.wire import produce_frame, records
from barnabas.wire.frame import encode_request
from barnabas.wire.messages.produce import ProduceRequest

VERSIONS = range(produce_frame.FIRST_VERSION, produce_frame.LAST_VERSION + 1)
SIZES = (0, 1, 125, 126, 127, 128, 16_381, 16_382, 16_383, 16_384, 2_100_000)


def load_interpreted() -> ModuleType:
    source = Path(records.__file__).parent / "produce_frame.py"
    spec = importlib.util.spec_from_file_location("interpreted_produce_frame", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FORMS = {"as built": produce_frame, "interpreted": load_interpreted()}


def frame_of(
    version: int,
    payload: bytes | None,
    *,
    topic: str = "orders",
    index: int = 3,
    acks: int = -1,
    timeout_ms: int = 30_000,
    client: str | None = "c",
    transactional_id: str | None = None,
    topics: int = 1,
    partitions: int = 1,
) -> memoryview:
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic if version < 13 else "",
                topic_id=Uuid(bytes(range(16))) if version >= 13 else Uuid(bytes(16)),
                partition_data=[ProduceRequest.PartitionProduceData(index=index, records=payload)] * partitions,
            )
        ]
        * topics,
    )
    parts = encode_request(request, version, correlation_id=-77, client_id=client)
    return memoryview(bytearray(b"".join(bytes(part) for part in parts)))[4:]  # type: ignore[arg-type]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", SIZES)
def test_it_says_what_was_sent(form: str, version: int, size: int) -> None:
    payload = bytes([7]) * size
    frame = frame_of(version, payload, index=70_000, acks=1, timeout_ms=-2)
    found = FORMS[form].read(frame)
    assert found is not None
    topic = bytes(range(16)) if version >= 13 else b"\7orders"
    assert found[:6] == (version, -77, 1, -2, topic, 70_000)
    assert frame[found[6] : found[7]] == payload


@pytest.mark.parametrize("form", FORMS)
def test_everything_else_is_left_alone(form: str) -> None:
    read = FORMS[form].read
    odd = {
        "acks=0": frame_of(9, b"x", acks=0),
        "acks=7": frame_of(9, b"x", acks=7),
        "an older version": frame_of(8, b"x"),
        "a transaction": frame_of(9, b"x", transactional_id="t"),
        "two topics": frame_of(9, b"x", topics=2),
        "no topic": frame_of(9, b"x", topics=0),
        "two partitions": frame_of(9, b"x", partitions=2),
        "no partition": frame_of(9, b"x", partitions=0),
        "no records": frame_of(9, None),
        "a long name": frame_of(9, b"x", topic="n" * 127),
        "no name": frame_of(9, b"x", topic=""),
    }
    for name, frame in odd.items():
        assert read(frame) is None, name
    assert read(frame_of(9, b"x", topic="n" * 126)) is not None
    assert read(frame_of(9, b"x", client=None)) is not None
    for version in VERSIONS:
        whole = frame_of(version, b"x" * 200)
        for size in range(len(whole)):
            assert read(whole[:size]) is None, size


@given(st.sampled_from(VERSIONS), st.integers(0, 250), st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255))))
def test_both_forms_agree_on_what_is_broken(version: int, size: int, changes: list[tuple[int, int]]) -> None:
    frame = frame_of(version, bytes(size))
    for position, byte in changes:
        frame[position % len(frame)] = byte
    assert FORMS["as built"].read(frame) == FORMS["interpreted"].read(frame)


@given(st.binary(max_size=80))
def test_bytes_from_nowhere(data: bytes) -> None:
    assert FORMS["as built"].read(memoryview(data)) == FORMS["interpreted"].read(memoryview(data))
