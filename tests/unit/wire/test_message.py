"""Declarations: constructors, defaults, versions, and what cannot be encoded."""

from __future__ import annotations

import copy

import pytest

from barnabas.model.errors import Malformed
from barnabas.model.ids import ZERO_UUID, Uuid
from barnabas.wire.message import (
    Message,
    Unencodable,
    array,
    boolean,
    decode,
    encode,
    encode_parts,
    float64,
    int8,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
    uint16,
    uint32,
    uuid,
)
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse


class Sample(Message, versions=range(4), flexible=2):
    class Leaf(Message):
        name: str = string()
        number: int = int16(default=-1)

    class Branch(Message):
        leaves: list[Sample.Leaf] = array("Leaf")
        leaf: Sample.Leaf = struct("Leaf", since=1, ignorable=True)

    flag: bool = boolean(default=True)
    small: int = int8()
    port: int = uint16()
    wide: int = uint32(since=1)
    ratio: float = float64(ignorable=True, since=1)
    identity: Uuid = uuid(since=2)
    note: str | None = string(nullable=True, nullable_since=1)
    numbers: list[int] | None = array(int32, nullable=True, default=None, since=1)
    names: list[str] = array(string)
    identities: list[Uuid] = array(uuid, since=2, ignorable=True)
    branches: list[Branch] = array(Branch)
    branch: Branch | None = struct(Branch, nullable=True, since=3, ignorable=True)
    payload: bytes | None = records(nullable=True)
    late: int = int64(since=2, tag=5, tagged_since=3, ignorable=True)


def full() -> Sample:
    leaf = Sample.Leaf(name="leaf", number=7)
    return Sample(
        flag=False,
        small=-128,
        port=65535,
        wide=2**32 - 1,
        ratio=1.5,
        identity=Uuid(bytes(range(16))),
        note="note",
        numbers=[1, -1],
        names=["a", "ü"],
        identities=[ZERO_UUID, Uuid(bytes(range(16)))],
        branches=[Sample.Branch(leaves=[leaf], leaf=leaf)],
        branch=Sample.Branch(),
        payload=b"bytes",
        late=9,
    )


def test_a_constructor_without_arguments_gives_the_defaults() -> None:
    sample = Sample()
    assert sample.flag is True
    assert sample.note == ""
    assert sample.numbers is None
    assert sample.names == []
    assert sample.identity == ZERO_UUID
    assert sample.branch is None
    assert sample.payload is None


def test_every_instance_has_lists_of_its_own() -> None:
    first, second = Sample(), Sample()
    first.names.append("mine")
    assert second.names == []


def test_a_default_struct_is_shared_and_refuses_change() -> None:
    first, second = Sample.Branch(), Sample.Branch()
    assert first.leaf is second.leaf
    assert first.leaf == Sample.Leaf()
    assert isinstance(first.leaf, Sample.Leaf)
    assert repr(first.leaf) == repr(Sample.Leaf())
    with pytest.raises(AttributeError, match="assign a new one"):
        first.leaf.number = 3
    first.leaf = Sample.Leaf(number=3)
    assert second.leaf.number == -1


def test_an_unknown_argument_or_attribute_is_refused() -> None:
    with pytest.raises(TypeError):
        Sample(unknown=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Sample(1)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Sample().unknown = 1  # type: ignore[attr-defined]


def test_messages_are_equal_by_value_and_not_hashable() -> None:
    assert full() == full()
    other = full()
    other.branches[0].leaves[0].name = "other"
    assert other != full()
    assert Sample.Leaf() != Sample.Branch()
    assert copy.deepcopy(full()) == full()
    copied = copy.copy(Sample.Branch().leaf)
    copied.number = 4
    assert type(copied) is Sample.Leaf
    with pytest.raises(TypeError):
        hash(full())


def test_a_message_prints_its_values() -> None:
    assert repr(Sample.Leaf(name="x")) == "Sample.Leaf(name='x', number=-1)"


def test_facts_of_a_class() -> None:
    assert Sample.api_key is None
    assert Sample.versions == range(4)
    assert [Sample.is_flexible(version) for version in Sample.versions] == [False, False, True, True]
    assert not ProduceRequest.is_flexible(8)
    assert ProduceRequest.is_flexible(9)


@pytest.mark.parametrize("version", [2, 3])
def test_all_types_survive(version: int) -> None:
    sample = full()
    decoded = decode(Sample, version, encode(sample, version))
    if version < 3:
        sample.branch = None
    assert decoded == sample
    assert type(decoded.identities[0]) is Uuid


def test_a_field_may_become_tagged_in_a_later_version() -> None:
    sample = Sample(late=1)
    assert len(encode(sample, 2)) > len(encode(Sample(), 3))
    assert encode(sample, 3).endswith(b"\x01\x05\x08" + b"\0" * 7 + b"\x01")
    assert encode(Sample(), 3).endswith(b"\0")


def test_a_field_outside_of_its_versions_must_be_ignorable_or_default() -> None:
    assert decode(Sample, 0, encode(Sample(ratio=2.5), 0)).ratio == 0.0
    with pytest.raises(Unencodable, match="version 0 has no field wide"):
        encode(Sample(wide=1), 0)
    with pytest.raises(Unencodable, match="identity"):
        encode(Sample(identity=Uuid(bytes(range(16)))), 1)
    with pytest.raises(Unencodable, match="numbers"):
        encode(Sample(numbers=[]), 0)


def test_a_tagged_struct_that_the_version_lacks_must_be_default() -> None:
    request = FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=-1))
    assert encode(request, 14) == encode(FetchRequest(), 14)
    request.replica_state = FetchRequest.ReplicaState(replica_id=3)
    with pytest.raises(Unencodable, match="replica_state"):
        encode(request, 14)
    assert decode(FetchRequest, 15, encode(request, 15)).replica_state.replica_id == 3


def test_a_tagged_field_at_its_default_takes_no_bytes() -> None:
    partition = FetchResponse.PartitionData(current_leader=FetchResponse.LeaderIdAndEpoch())
    response = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[partition])])
    plain = len(encode(response, 12))
    partition.current_leader = FetchResponse.LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
    assert len(encode(response, 12)) == plain + 11


@pytest.mark.parametrize(
    "wrong",
    [
        {"small": 128},
        {"port": -1},
        {"names": ["\ud800"]},
        {"names": [None]},
        {"names": None},
        {"names": ["x" * 32768]},
        {"branches": [None]},
        {"identities": [b"short"]},
        {"numbers": [2**31]},
    ],
)
def test_what_the_format_cannot_carry_is_unencodable(wrong: dict[str, object]) -> None:
    with pytest.raises(Unencodable):
        encode(Sample(**wrong), 3)  # type: ignore[arg-type]
    assert issubclass(Unencodable, ValueError)


def test_null_is_refused_where_the_version_knows_no_null() -> None:
    with pytest.raises(Unencodable):
        encode(Sample(note=None), 0)
    assert decode(Sample, 1, encode(Sample(note=None), 1)).note is None


def test_a_long_string_is_refused_in_both_encodings() -> None:
    longest = Sample(names=["x" * 32767])
    assert decode(Sample, 0, encode(longest, 0)) == longest
    assert decode(Sample, 3, encode(longest, 3)) == longest
    with pytest.raises(Unencodable):
        encode(Sample(names=["x" * 32768]), 0)


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(Malformed, match="no version 4"):
        decode(Sample, 4, b"")
    with pytest.raises(Unencodable, match="no version 2"):
        encode(ProduceRequest(), 2)


def test_records_are_a_view_of_what_was_received() -> None:
    data = bytearray(encode(Sample(payload=b"abc"), 3))
    decoded = decode(Sample, 3, data)
    assert isinstance(decoded.payload, memoryview)
    data[data.index(b"abc")] = ord("x")
    assert decoded.payload == b"xbc"


class Slice:
    """As the storage hands it out: bytes that are still in a file."""

    size_bytes = 70_000


def test_large_records_and_file_slices_become_parts() -> None:
    partition = ProduceRequest.PartitionProduceData
    large, small, part = b"l" * 5000, b"s" * 4096, Slice()
    partitions = [partition(records=large), partition(records=small), partition(records=part), partition(records=b"")]  # type: ignore[arg-type]
    request = ProduceRequest(topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=partitions)])
    out, parts = bytearray(b"head"), []
    encode_parts(request, 9, out, parts)
    assert [type(each) for each in parts] == [bytes, bytes, bytearray, Slice]
    assert parts[0].startswith(b"head")
    assert parts[1] is large
    assert parts[3] is part
    whole = b"".join([*parts[:3], b"f" * 70_000, out])
    decoded = decode(ProduceRequest, 9, whole, 4)
    assert [len(each.records or b"") for each in decoded.topic_data[0].partition_data] == [5000, 4096, 70_000, 0]
    with pytest.raises(Unencodable, match="in parts"):
        encode(request, 9)


def test_known_bytes_of_a_produce_response() -> None:
    partition = ProduceResponse.PartitionProduceResponse(index=1, base_offset=5, log_start_offset=0)
    topic = ProduceResponse.TopicProduceResponse(name="t", partition_responses=[partition])
    expected = "02 0274 02 00000001 0000 0000000000000005 ffffffffffffffff 0000000000000000 01 00 00 00 00000000 00"
    assert encode(ProduceResponse(responses=[topic]), 9) == bytes.fromhex(expected)


def test_known_bytes_of_a_metadata_request() -> None:
    assert encode(MetadataRequest(topics=None), 1) == b"\xff\xff\xff\xff"
    topic = MetadataRequest.MetadataRequestTopic(name="t")
    assert encode(MetadataRequest(topics=[topic]), 4) == b"\0\0\0\x01\0\x01t\x01"
