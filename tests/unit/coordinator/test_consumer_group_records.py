"""The lines of consumer groups: byte for byte what Kafka 4.3.1's own serialiser writes for the same values."""

from __future__ import annotations

import pytest

from barnabas.coordinator.consumer.member import Member, MemberState
from barnabas.coordinator.consumer.records import (
    CURRENT_MEMBER,
    GROUP,
    MEMBER,
    PATTERN,
    RECORD_TYPES,
    TARGET,
    TARGET_MEMBER,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupKey,
    GroupMemberKey,
    GroupPatternKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from barnabas.model.errors import Malformed
from barnabas.model.ids import Uuid

TOPIC = Uuid((1).to_bytes(8, "big") + (2).to_bytes(8, "big"))
current = ConsumerGroupCurrentMemberAssignmentValue
member = ConsumerGroupMemberMetadataValue

WRITTEN_BY_KAFKA = [
    (
        GROUP,
        GroupKey(group_id="g"),
        ConsumerGroupMetadataValue(epoch=7, metadata_hash=-5),
        "0003000167",
        "000000000007010008fffffffffffffffb",
    ),
    (
        MEMBER,
        GroupMemberKey(group_id="g", member_id="m"),
        member(
            instance_id="i",
            rack_id=None,
            client_id="c",
            client_host="/h",
            subscribed_topic_names=["a", "b"],
            subscribed_topic_regex="x.*",
            rebalance_timeout_ms=9,
            server_assignor="range",
            classic_member_metadata=member.ClassicMemberMetadata(
                session_timeout_ms=6,
                supported_protocols=[member.ClassicProtocol(name="range", metadata=b"\x01\x02")],
            ),
        ),
        "000500016700016d",
        "00000269000263032f68030261026204782e2a000000090672616e67650100110100000006020672616e67650301020000",
    ),
    (
        TARGET,
        GroupKey(group_id="g"),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=7, assignment_timestamp=8),
        "0006000167",
        "0000000000070100080000000000000008",
    ),
    (
        TARGET_MEMBER,
        GroupMemberKey(group_id="g", member_id="m"),
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                ConsumerGroupTargetAssignmentMemberValue.TopicPartition(topic_id=TOPIC, partitions=[0, 3])
            ]
        ),
        "000700016700016d",
        "000002000000000000000100000000000000020300000000000000030000",
    ),
    (
        CURRENT_MEMBER,
        GroupMemberKey(group_id="g", member_id="m"),
        current(
            member_epoch=4,
            previous_member_epoch=3,
            state=2,
            assigned_partitions=[current.TopicPartitions(topic_id=TOPIC, partitions=[0, 1], assignment_epochs=[2, 4])],
            partitions_pending_revocation=[current.TopicPartitions(topic_id=TOPIC, partitions=[5])],
        ),
        "000800016700016d",
        (
            "000000000004000000030202000000000000000100000000000000020300000000000000010100090300000002000000040200"
            "00000000000001000000000000000202000000050000"
        ),
    ),
    (
        PATTERN,
        GroupPatternKey(group_id="g", regular_expression="x.*"),
        ConsumerGroupRegularExpressionValue(topics=["xa", "xb"], version=3, timestamp=9),
        "00100001670003782e2a",
        "0000030378610378620000000000000003000000000000000900",
    ),
]


@pytest.mark.parametrize(("kind", "key", "value", "key_hex", "value_hex"), WRITTEN_BY_KAFKA)
def test_lines_are_written_and_read_as_kafka_does(kind, key, value, key_hex, value_hex):
    assert encode_key(kind, key).hex() == key_hex
    assert encode_value(kind, value).hex() == value_hex
    assert decode_key(bytes.fromhex(key_hex)) == (kind, key)
    assert decode_value(kind, bytes.fromhex(value_hex)) == value


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x01\x00\x01g", b"\x00\x03\x00\x01", b"\x00\x03\x00\x01gx"])
def test_a_key_that_is_none_of_these_is_malformed(data):
    with pytest.raises(Malformed):
        decode_key(data)


@pytest.mark.parametrize("data", [b"", b"\x00\x01", b"\x00\x00\x01", b"\x00\x00" + bytes(40)])
def test_a_value_that_is_none_of_these_is_malformed(data):
    with pytest.raises(Malformed):
        decode_value(RECORD_TYPES[3], data)


def test_partitions_without_epochs_of_their_own_have_the_members():
    value = current(
        member_epoch=4, state=1, assigned_partitions=[current.TopicPartitions(topic_id=TOPIC, partitions=[5, 6])]
    )
    assert Member(member_id="m").with_current(value).assigned == {TOPIC: {5: 4, 6: 4}}


def test_a_state_from_the_future_is_unknown():
    assert Member(member_id="m").with_current(current(state=9)).state is MemberState.UNKNOWN


def test_a_member_as_a_kafka_broker_wrote_it() -> None:
    """Not a classic member: Kafka says so by a tagged field that is null, and takes an absent one for a struct."""
    content = bytes.fromhex("000000000872646b61666b610b2f3132372e302e302e310206706c61696e01000493e00001000100")
    value = decode_value(MEMBER, content)
    assert isinstance(value, ConsumerGroupMemberMetadataValue)
    assert value.classic_member_metadata is None
    assert value.subscribed_topic_names == ["plain"]
    assert encode_value(MEMBER, value) == content
