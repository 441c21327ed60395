"""What Kafka's formatting tool leaves for the first start: users are taken over, and a damaged file is told of."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.metadata.bootstrap import bootstrap_records
from barnabas.metadata.formatted import BOOTSTRAP_FILE, CorruptBootstrap, formatted_records
from barnabas.metadata.records import FeatureLevelRecord, UserScramCredentialRecord, encode_record
from barnabas.raft.control_records import control_batch
from barnabas.wire.message import Message
from barnabas.wire.messages.raft_control import SnapshotFooterRecord, SnapshotHeaderRecord
from barnabas.wire.records import encode_batch
from barnabas.world.real import real_world

ALICE = UserScramCredentialRecord(
    name="alice", mechanism=1, salt=b"salt", stored_key=b"s" * 32, server_key=b"k" * 32, iterations=4096
)
LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=25)


def found_in(directory: Path, content: bytes) -> list[Message]:
    (directory / BOOTSTRAP_FILE).write_bytes(content)
    return formatted_records(real_world().disk, str(directory))


def as_the_tool_writes_it() -> bytes:
    rows = [(0, None, encode_record(record), ()) for record in (LEVEL, ALICE)]
    head = control_batch([SnapshotHeaderRecord()], base_offset=0, epoch=1, now_ms=0)
    foot = control_batch([SnapshotFooterRecord()], base_offset=3, epoch=1, now_ms=0)
    return bytes(head) + bytes(encode_batch(rows, base_offset=1, leader_epoch=1)) + bytes(foot)


def test_a_directory_without_the_file_has_nobody(tmp_path: Path) -> None:
    assert formatted_records(real_world().disk, str(tmp_path)) == []


def test_users_are_taken_over_and_levels_are_our_own(tmp_path: Path) -> None:
    found = found_in(tmp_path, as_the_tool_writes_it())
    assert found == [ALICE]
    assert ALICE in bootstrap_records(extra=found)


@pytest.mark.parametrize("length", [1, 60, 100, -1])
def test_a_file_that_is_cut_is_told_of(tmp_path: Path, length: int) -> None:
    with pytest.raises(CorruptBootstrap, match=BOOTSTRAP_FILE):
        found_in(tmp_path, as_the_tool_writes_it()[:length])


def test_a_flipped_bit_is_told_of(tmp_path: Path) -> None:
    content = bytearray(as_the_tool_writes_it())
    content[150] ^= 1
    with pytest.raises(CorruptBootstrap, match="checksum"):
        found_in(tmp_path, bytes(content))
