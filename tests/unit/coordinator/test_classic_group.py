"""A classic group at moments that pass too quickly for a transcript."""

from __future__ import annotations

from barnabas.coordinator.classic.protocol import ClassicProtocol
from barnabas.coordinator.classic.rebalance import JOIN, SESSION
from barnabas.coordinator.groups.protocol import Protocols
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.coordinator.groups.settings import GroupSettings
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.coordinator.groups.tally import GroupTally
from barnabas.coordinator.runtime.effects import Effects
from barnabas.model import errors
from barnabas.wire.messages.join_group import JoinGroupRequest

GROUP = "g"


def join(shard: GroupShard, request_id: int, member_id: str, protocol: str = "range", now_ms: int = 0) -> Effects:
    message = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=protocol, metadata=b"")],
    )
    return shard.handle(request_id, GroupRequest(message, 9, new_member_id=f"member-{request_id}"), now_ms)


def test_who_joins_in_the_moment_after_the_last_member_went_is_let_in() -> None:
    settings = GroupSettings(initial_rebalance_delay_ms=0)
    shard = GroupShard(lambda: settings, lambda made: Protocols(ClassicProtocol(made)), tally=GroupTally(lambda: 0))
    join(shard, 1, "")
    assert join(shard, 2, "member-1").answers[0].response.error_code == errors.NONE.code
    join(shard, 3, "")  # it has an id now, and has not joined
    shard.on_timer((SESSION, GROUP, "member-1"), 10_000)
    assert not shard.groups[GROUP].members
    joining = join(shard, 4, "member-3", "roundrobin", 10_000)
    answers = [*joining.answers, *shard.on_timer((JOIN, GROUP), 10_000).answers]
    assert [(each.request_id, each.response.error_code) for each in answers] == [(4, errors.NONE.code)]
