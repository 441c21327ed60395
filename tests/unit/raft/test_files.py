"""The files of the quorum: its state and its snapshots, in Kafka's formats."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.model.errors import CorruptBatch
from barnabas.model.ids import Uuid
from barnabas.raft.control_records import voter_set_of
from barnabas.raft.events import QuorumState
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.raft.snapshot import (
    CorruptSnapshot,
    PartialSnapshot,
    SnapshotReader,
    list_snapshots,
    remove_leftovers,
    snapshot_path,
    write_snapshot,
)
from barnabas.raft.state_file import CorruptState, decode_state, encode_state
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from barnabas.wire.messages.raft_control import VotersRecord
from barnabas.world.real import real_world

KEY = ReplicaKey(1, Uuid.parse("J8aAPcfLQt2bqs1JT_rMgQ"))
VOTERS = VoterSet.of(Voter(KEY, (Endpoint("CONTROLLER", "localhost", 9093),)))


def test_the_state_is_written_as_kafka_writes_it() -> None:
    assert encode_state(QuorumState(2, -1, KEY), kraft_version=1) == (
        b'{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"J8aAPcfLQt2bqs1JT_rMgQ","data_version":1}'
    )
    assert encode_state(QuorumState(2, 3), kraft_version=1) == (
        b'{"leaderId":3,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )
    assert encode_state(QuorumState(2, 3), kraft_version=0, voter_ids=(1, 2)) == (
        b'{"clusterId":"","leaderId":3,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
    )


def test_the_state_comes_back() -> None:
    for state in (QuorumState(2, -1, KEY), QuorumState(2, 3), QuorumState()):
        assert decode_state(encode_state(state, kraft_version=1)) == state
    old = b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":4,"currentVoters":[],"data_version":0}'
    assert decode_state(old) == QuorumState(2, 1, ReplicaKey(4))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        b"[]",
        b'{"leaderId":1}',
        b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"data_version":2}',
        b'{"leaderId":"1","leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}',
        b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"short","data_version":1}',
    ],
)
def test_a_state_that_cannot_be_read_is_not_guessed(content: bytes) -> None:
    with pytest.raises(CorruptState):
        decode_state(content)


def write(tmp_path: Path, snapshot: OffsetAndEpoch, records: list[bytes]) -> str:
    disk = real_world().disk
    part = PartialSnapshot(disk, str(tmp_path), snapshot)
    asyncio.run(write_snapshot(part, records, append_time_ms=77, now_ms=99, kraft_version=1, voter_set=VOTERS))
    return snapshot_path(str(tmp_path), snapshot)


def test_a_snapshot_comes_back_with_its_voters(tmp_path: Path) -> None:
    records = [b"%d" % number * 100 for number in range(5000)]
    path = write(tmp_path, OffsetAndEpoch(123, 4), records)
    assert path.endswith("/00000000000000000123-0000000004.checkpoint")
    reader = SnapshotReader(real_world().disk, path)
    assert (reader.append_time_ms, reader.kraft_version, reader.voter_set) == (77, 1, VOTERS)
    assert list(reader) == records
    reader.close()
    assert list_snapshots(real_world().disk, str(tmp_path)) == [OffsetAndEpoch(123, 4)]


def test_a_snapshot_that_was_cut_or_changed_is_noticed(tmp_path: Path) -> None:
    path = Path(write(tmp_path, OffsetAndEpoch(1, 1), [b"a" * 1000]))
    whole = path.read_bytes()
    for content in (b"", whole[:50], whole[:-75], whole[:-1], whole[:300] + b"?" + whole[301:], whole + whole[-75:]):
        path.write_bytes(content)
        with pytest.raises(CorruptSnapshot):
            list(SnapshotReader(real_world().disk, str(path)))


def test_what_a_crash_left_of_a_snapshot_goes(tmp_path: Path) -> None:
    disk = real_world().disk
    PartialSnapshot(disk, str(tmp_path), OffsetAndEpoch(5, 1)).append(b"half")
    assert list_snapshots(disk, str(tmp_path)) == []
    remove_leftovers(disk, str(tmp_path))
    assert disk.list(str(tmp_path)) == []


def test_voters_of_which_two_are_one_are_no_voters() -> None:
    record = VotersRecord(voters=[VotersRecord.Voter(voter_id=1), VotersRecord.Voter(voter_id=1)])
    with pytest.raises(CorruptBatch):
        voter_set_of(record)
    with pytest.raises(CorruptBatch):
        voter_set_of(VotersRecord())
