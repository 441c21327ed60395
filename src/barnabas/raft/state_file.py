"""``quorum-state``: the epoch, the leader and the vote, as the line of JSON that Kafka writes.

Version 0 goes with kraft.version 0 and lists the voters; version 1 knows the directory of who got the vote.
The file is replaced as a whole and synced before anything that rests on it becomes visible. Only the driver uses it.
"""

from __future__ import annotations

import json
from typing import Any, Final

from barnabas.model.errors import BarnabasError
from barnabas.model.ids import NO_BROKER, ZERO_UUID, Uuid
from barnabas.raft.events import QuorumState
from barnabas.raft.voters import KRAFT_VERSION_RECONFIGURABLE, ReplicaKey
from barnabas.world.disk import Disk, replace

QUORUM_STATE_FILE: Final = "quorum-state"
STATE_BYTES_MAX: Final = 64 * 1024
VERSION_MAX: Final = 1


class CorruptState(BarnabasError):
    """The file does not hold what it must; a replica that guessed could vote twice."""


def encode_state(state: QuorumState, *, kraft_version: int, voter_ids: tuple[int, ...] = ()) -> bytes:
    voted_id = state.voted.id if state.voted is not None else NO_BROKER
    fields: dict[str, Any] = {"leaderId": state.leader_id, "leaderEpoch": state.epoch, "votedId": voted_id}
    if kraft_version >= KRAFT_VERSION_RECONFIGURABLE:
        fields["votedDirectoryId"] = str(state.voted.directory_id if state.voted is not None else ZERO_UUID)
        version = 1
    else:
        voters = [{"voterId": voter_id} for voter_id in voter_ids]
        fields = {"clusterId": "", **fields, "appliedOffset": 0, "currentVoters": voters}
        version = 0
    return json.dumps({**fields, "data_version": version}, separators=(",", ":")).encode()


def decode_state(content: bytes) -> QuorumState:
    try:
        fields = json.loads(content.split(b"\n", 1)[0])
        if not isinstance(fields, dict):
            raise CorruptState(f"{QUORUM_STATE_FILE} holds no JSON object")
        version = fields["data_version"]
        epoch, leader_id, voted_id = fields["leaderEpoch"], fields["leaderId"], fields["votedId"]
        if not isinstance(version, int) or not 0 <= version <= VERSION_MAX:
            raise CorruptState(f"{QUORUM_STATE_FILE} has version {version}, and {VERSION_MAX} is the newest known")
        if not all(isinstance(number, int) for number in (epoch, leader_id, voted_id)):
            raise CorruptState(f"{QUORUM_STATE_FILE} has something else than a number")
        directory_id = Uuid.parse(fields["votedDirectoryId"]) if version else ZERO_UUID
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptState(f"{QUORUM_STATE_FILE} cannot be read: {error}") from error
    voted = ReplicaKey(voted_id, directory_id) if voted_id >= 0 else None
    return QuorumState(max(epoch, 0), max(leader_id, NO_BROKER), voted)


def read_state(disk: Disk, directory: str) -> QuorumState | None:
    path = f"{directory}/{QUORUM_STATE_FILE}"
    if not disk.exists(path):
        return None
    content = disk.read_all(path, size_bytes_max=STATE_BYTES_MAX)
    try:
        return decode_state(content)
    except CorruptState as error:
        raise CorruptState(f"{path}: {error}. It says whom this node voted for, so it cannot be guessed.") from error


async def write_state(
    disk: Disk, directory: str, state: QuorumState, *, kraft_version: int, voter_ids: tuple[int, ...]
) -> None:
    content = encode_state(state, kraft_version=kraft_version, voter_ids=voter_ids)
    await replace(disk, f"{directory}/{QUORUM_STATE_FILE}", content)
