"""What the coordinator of groups answers, in the words of a transcript, and who remembers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.model import errors
from barnabas.wire.messages.heartbeat import HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupResponse
from barnabas.wire.messages.offset_commit import OffsetCommitResponse
from barnabas.wire.messages.offset_delete import OffsetDeleteResponse
from barnabas.wire.messages.offset_fetch import OffsetFetchResponse
from barnabas.wire.messages.sync_group import SyncGroupResponse
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitResponse


class Actor:
    """Someone who talks to the coordinator, and what it remembers between two requests."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.member_id = ""
        self.generation = -1
        self.facts: dict[str, str] = {}


def _error(code: int) -> str:
    return errors.error_of(code).name


def told(actor: Actor, response: Any) -> str:
    teller = next((tell for kind, tell in _TELLERS.items() if isinstance(response, kind)), None)
    assert teller is not None, response
    return teller(actor, response)


def _told_join(actor: Actor, response: JoinGroupResponse) -> str:
    if response.error_code:
        if response.error_code == errors.MEMBER_ID_REQUIRED.code:
            actor.member_id = response.member_id
        if response.error_code in (errors.UNKNOWN_MEMBER_ID.code, errors.FENCED_INSTANCE_ID.code):
            actor.member_id = ""
        return f"{_error(response.error_code)} {response.member_id}".rstrip()
    actor.member_id, actor.generation = response.member_id, response.generation_id
    text = f"{response.member_id} in generation {response.generation_id} of {response.protocol_name}"
    if response.leader != response.member_id:
        return f"{text}, led by {response.leader or 'nobody'}"
    members = ", ".join(member.member_id for member in response.members) or "nobody it is told of"
    return f"{text}, leads {members}{' and need not assign' if response.skip_assignment else ''}"


def _told_sync(actor: Actor, response: SyncGroupResponse) -> str:
    return _error(response.error_code) if response.error_code else f"gets {response.assignment.decode() or 'nothing'}"


def _told_leave(actor: Actor, response: LeaveGroupResponse) -> str:
    error = response.error_code or response.members[0].error_code
    if not error:
        actor.member_id = ""
    return "gone" if not error else _error(error)


def _told_commit(actor: Actor, response: OffsetCommitResponse | TxnOffsetCommitResponse) -> str:
    code = response.topics[0].partitions[0].error_code
    return "committed" if not code else _error(code)


def _told_fetch(actor: Actor, response: OffsetFetchResponse.OffsetFetchResponseGroup) -> str:
    found = [
        f"{topic.name}-{each.partition_index} "
        + (_error(each.error_code) if each.error_code else f"at {each.committed_offset}")
        + (f" ({each.metadata})" if each.metadata else "")
        for topic in response.topics
        for each in topic.partitions
    ]
    return ", ".join(found) or "nothing"


def _told_delete(actor: Actor, response: OffsetDeleteResponse) -> str:
    code = response.topics[0].partitions[0].error_code
    return "forgotten" if not code else _error(code)


def _told_list(actor: Actor, response: list[Any]) -> str:
    return "; ".join(_item(item) for item in response) or "no groups"


def _item(item: Any) -> str:
    match type(item).__name__:
        case "ListedGroup":
            return f"{item.group_id}: {item.group_state}, {item.group_type}, {item.protocol_type or 'no'} protocol"
        case "DescribedGroup":
            if item.error_code:
                return f"{_error(item.error_code)}, {item.group_state}"
            members = ", ".join(
                f"{member.member_id} has {member.member_assignment.decode() or 'nothing'}" for member in item.members
            )
            return f"{item.group_state} {item.protocol_type} {item.protocol_data}: {members or 'nobody'}"
        case _:
            return f"{item.group_id} {'deleted' if not item.error_code else _error(item.error_code)}"


_TELLERS: dict[type, Callable[[Actor, Any], str]] = {
    JoinGroupResponse: _told_join,
    SyncGroupResponse: _told_sync,
    HeartbeatResponse: lambda actor, response: "alive" if not response.error_code else _error(response.error_code),
    LeaveGroupResponse: _told_leave,
    OffsetCommitResponse: _told_commit,
    TxnOffsetCommitResponse: _told_commit,
    OffsetFetchResponse.OffsetFetchResponseGroup: _told_fetch,
    OffsetDeleteResponse: _told_delete,
    list: _told_list,
}
