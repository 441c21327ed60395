"""What groups do is counted once: offsets committed, expired and deleted, and rebalances of both protocols."""

from __future__ import annotations

from classic_play import Classic
from consumer_play import GROUP, Play

from barnabas.coordinator.groups.offset_access import EXPIRY
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest

WEEK_MS = 7 * 24 * 3_600_000


def counted(play: Play) -> dict[str, int]:
    return {name: meter.count for name, meter in vars(play.shard.tally).items() if meter.count}


def commit(play: Play, *partitions: int, metadata: str = "") -> None:
    part = OffsetCommitRequest.OffsetCommitRequestPartition
    parts = [part(partition_index=each, committed_offset=1, committed_metadata=metadata) for each in partitions]
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=parts)
    play.send(OffsetCommitRequest(group_id=GROUP, generation_id_or_member_epoch=-1, topics=[topic]), 8)


def test_every_offset_that_is_committed_counts_and_none_that_is_refused() -> None:
    play = Play({"t": 4})
    commit(play, 0, 1, 2)
    commit(play, 3)
    commit(play, 0, metadata="x" * 10_000)
    assert counted(play) == {"offset_commits": 4}


def test_offsets_that_expire_are_not_those_that_are_deleted() -> None:
    play = Play({"t": 4})
    commit(play, 0, 1, 2, 3)
    part = OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic(name="t", partitions=[part])
    play.send(OffsetDeleteRequest(group_id=GROUP, topics=[topic]), 0)
    assert counted(play) == {"offset_commits": 4, "offset_deletions": 1}
    play.perform(play.shard.on_timer((EXPIRY,), play.now_ms + 2 * WEEK_MS))
    assert counted(play) == {"offset_commits": 4, "offset_deletions": 1, "offset_expirations": 3}


def test_offsets_go_with_their_group() -> None:
    play = Play({"t": 4})
    commit(play, 0, 1)
    play.send(DeleteGroupsRequest(groups_names=[GROUP]), 2)
    assert counted(play) == {"offset_commits": 2, "offset_deletions": 2}


def test_a_classic_group_has_rebalanced_when_its_leader_has_assigned() -> None:
    play = Play({"t": 4})
    one = Classic(play)
    one.join("t")
    assert counted(play) == {}
    one.sync(**{one.member_id.replace("-", "_"): {"t": [0, 1, 2, 3]}})
    assert counted(play) == {"classic_rebalances": 1}
    one.sync()
    one.heartbeat()
    assert counted(play) == {"classic_rebalances": 1}


def test_a_consumer_group_rebalances_with_every_new_epoch() -> None:
    play = Play({"t": 4})
    play.join("a", "t")
    assert counted(play) == {"consumer_rebalances": 1}
    play.ask("a", 1, {"t": [0, 1, 2, 3]})
    assert counted(play) == {"consumer_rebalances": 1}
    play.join("b", "t")
    assert counted(play) == {"consumer_rebalances": 2}
    play.ask("b", -1)
    assert counted(play) == {"consumer_rebalances": 3}
    play.set_topics({"t": 8})
    play.ask("a", 1, {"t": [0, 1, 2, 3]})
    assert counted(play) == {"consumer_rebalances": 4}
    assert play.group.epoch == 4
