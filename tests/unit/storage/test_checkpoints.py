"""Checkpoint files are Kafka's, line by line."""

from __future__ import annotations

import pytest

from barnabas.model.ids import TopicPartition
from barnabas.storage.checkpoints import CorruptCheckpoint, decode_offsets, encode_offsets


def test_offsets_are_written_in_order() -> None:
    offsets = {TopicPartition("b", 1): 7, TopicPartition("a", 10): 0, TopicPartition("a", 2): 5}
    assert encode_offsets(offsets) == b"0\n3\na 2 5\na 10 0\nb 1 7\n"
    assert decode_offsets(encode_offsets(offsets)) == offsets


@pytest.mark.parametrize(
    "content",
    [b"", b"0\n", b"9\n0\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na x 1\n", b"\xff\n0\n", b"0\nmany\n"],
)
def test_a_torn_checkpoint_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        decode_offsets(content)
