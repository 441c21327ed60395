"""The real shard of groups, on a log that is a list and in a time that passes only when a line says so.

A line is ``<who> <does> <name>=<value> ...``; what is heard is put into words by ``group_answers``.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

from group_answers import Actor, told

from barnabas.coordinator.classic.group import ClassicGroup
from barnabas.coordinator.classic.protocol import ClassicProtocol
from barnabas.coordinator.groups.offset_protocol import FetchOffsets
from barnabas.coordinator.groups.protocol import Protocols
from barnabas.coordinator.groups.requests import GroupRequest, TopicsDeleted
from barnabas.coordinator.groups.settings import GroupSettings
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.coordinator.groups.tally import GroupTally
from barnabas.coordinator.runtime.effects import Effects, ProducerIdEpoch
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid
from barnabas.wire.message import encode
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

START_MS = 1_767_225_600_000
UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
GROUP = "g"
STEPS_MAX = 1000


class Play:
    def __init__(self, settings: GroupSettings) -> None:
        self.settings = settings
        self.now_ms = START_MS
        self.log: list[tuple[bytes, bytes | None, ProducerIdEpoch | None] | tuple[int, bool]] = []
        self.actors: dict[str, Actor] = {}
        self.heard: list[str] = []
        self._request_ids = itertools.count(1)
        self._member_ids = itertools.count(1)
        self._asked: dict[int, Actor] = {}
        self.is_log_closed = False
        self.restart()

    def new_shard(self) -> GroupShard:
        return GroupShard(
            lambda: self.settings, lambda shard: Protocols(ClassicProtocol(shard)), tally=GroupTally(lambda: 0)
        )

    def restart(self) -> None:
        self.shard = self.new_shard()
        self._deadlines: dict[Hashable, int] = {}
        self._queue: list[tuple[int, int, Hashable]] = []
        self._asked.clear()
        for offset, entry in enumerate(self.log):
            if len(entry) == 2:
                self.shard.replay_marker(entry[0], 0, is_commit=entry[1])
            else:
                key, value, producer = entry
                self.shard.replay(key, value, offset=offset, producer=producer, timestamp_ms=self.now_ms)
        self._apply(self.shard.loaded(self.now_ms))

    # --- what another protocol says in other words ------------------------------------------------------------------

    def told(self, actor: Actor, response: Any) -> str:
        return told(actor, response)

    def subscription(self, facts: Mapping[str, str]) -> bytes:
        return b"\x00\x00" + encode(ConsumerProtocolSubscription(topics=facts.get("reads", "t").split(",")), 0)

    def assignment(self, text: str) -> bytes:
        return text.encode()

    def topic_ids(self) -> Mapping[str, Uuid]:
        return {}

    def shown(self, group: Any) -> str:
        if not isinstance(group, ClassicGroup):
            return "there is no such group"
        members = ", ".join(sorted(group.members)) or "nobody"
        return f"{group.state.value}, generation {group.generation}: {members}"

    # --- a small runtime ------------------------------------------------------------------------------------------

    def actor(self, name: str) -> Actor:
        return self.actors.setdefault(name, Actor(name))

    def ask(self, actor: Actor, request: Any) -> None:
        request_id = next(self._request_ids)
        self._asked[request_id] = actor
        try:
            self._apply(self.shard.handle(request_id, request, self.now_ms))
        except ApiError as error:
            self.heard.append(f"{actor.name} <- {error.error.name}")
            del self._asked[request_id]
        if request_id in self._asked:
            self.heard.append(f"{actor.name} waits")

    def tell(self, event: Any) -> None:
        self._apply(self.shard.handle(-1, event, self.now_ms))

    def _apply(self, effects: Effects) -> None:
        if effects.records and self.is_log_closed:
            self._fail(effects)
            return
        for key, value in effects.records:
            self.shard.replay(key, value, offset=len(self.log), producer=effects.producer, timestamp_ms=self.now_ms)
            self.log.append((key, value, effects.producer))
        self._set_timers(effects)
        for request_id, response in effects.answers:
            actor = self._asked.pop(request_id, None)
            if actor is not None:
                self.heard.append(f"{actor.name} <- {self.told(actor, response)}")

    def _fail(self, effects: Effects) -> None:
        """As the runtime does when the log takes nothing."""
        for request_id, _ in effects.answers:
            actor = self._asked.pop(request_id, None)
            if actor is not None:
                self.heard.append(f"{actor.name} <- {errors.COORDINATOR_NOT_AVAILABLE.name}")
        assert effects.rescue is not None, "the whole shard would be loaded again"
        self._set_timers(effects)
        self._apply(effects.rescue())

    def _set_timers(self, effects: Effects) -> None:
        for timer in effects.timers:
            if timer.deadline_ms is None:
                self._deadlines.pop(timer.key, None)
            else:
                self._deadlines[timer.key] = timer.deadline_ms
                heapq.heappush(self._queue, (timer.deadline_ms, next(self._request_ids), timer.key))

    def pass_time(self, duration_ms: int) -> None:
        until_ms = self.now_ms + duration_ms
        for _ in range(STEPS_MAX):
            if not self._queue or self._queue[0][0] > until_ms:
                break
            deadline_ms, _, key = heapq.heappop(self._queue)
            if self._deadlines.get(key) == deadline_ms:
                del self._deadlines[key]
                self.now_ms = max(self.now_ms, deadline_ms)
                self._apply(self.shard.on_timer(key, self.now_ms))
        self.now_ms = until_ms

    # --- what can be said -----------------------------------------------------------------------------------------

    def line(self, words: list[str]) -> None:
        who, does, facts = words[0], words[1] if len(words) > 1 else "", _facts(words[2:])
        if does in ("pass", "passes"):
            self.pass_time(duration(who))
        elif who == "the":
            self._happens(words[1:])
        else:
            getattr(self, f"_{does}")(self.actor(who), facts)

    def _happens(self, words: list[str]) -> None:
        match words:
            case ["log", "takes", what]:
                self.is_log_closed = what == "nothing"
            case ["broker", "restarts"]:
                self.restart()
            case ["topic", name, "is", "deleted"]:
                self.tell(TopicsDeleted(frozenset({name})))
            case ["group", group_id, "is", "shown"]:
                self.heard.append(self.shown(self.shard.groups.get(group_id)))
            case ["transaction", "of", producer, "is", outcome]:
                self.shard.replay_marker(int(producer), 0, is_commit=outcome == "committed")
                self.log.append((int(producer), outcome == "committed"))
            case _:
                raise ValueError(words)

    def _joins(self, actor: Actor, facts: dict[str, str]) -> None:
        actor.facts |= facts
        known = actor.facts
        if "as" in facts:
            actor.member_id = id_of(self, facts["as"])
        message = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=duration(known.get("session", "10s")),
            rebalance_timeout_ms=duration(known.get("rebalance", "60s")),
            member_id=actor.member_id,
            group_instance_id=known.get("instance"),
            protocol_type=known.get("type", "consumer"),
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=self.subscription(known))
                for name in known.get("speaks", "range").split(",")
            ],
        )
        new_id = f"{known.get('instance', actor.name)}-{next(self._member_ids)}"
        self.ask(
            actor, GroupRequest(message, int(known.get("version", "9")), actor.name, "/127.0.0.1", new_member_id=new_id)
        )

    def _syncs(self, actor: Actor, facts: dict[str, str]) -> None:
        message = SyncGroupRequest(
            group_id=GROUP,
            generation_id=int(facts.pop("generation", actor.generation)),
            member_id=id_of(self, facts.pop("as")) if "as" in facts else actor.member_id,
            group_instance_id=actor.facts.get("instance"),
            protocol_type=facts.pop("type", "consumer"),
            protocol_name=facts.pop("protocol", None),
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=self.actor(name).member_id, assignment=self.assignment(text)
                )
                for name, text in facts.items()
            ],
        )
        self.ask(actor, GroupRequest(message, 5))

    def _beats(self, actor: Actor, facts: dict[str, str]) -> None:
        message = HeartbeatRequest(
            group_id=GROUP,
            generation_id=int(facts.get("generation", actor.generation)),
            member_id=id_of(self, facts["as"]) if "as" in facts else actor.member_id,
            group_instance_id=actor.facts.get("instance"),
        )
        self.ask(actor, GroupRequest(message, 4))

    def _stays(self, actor: Actor, facts: dict[str, str]) -> None:
        """Beat in good time, unheard, for as long as that."""
        until_ms = self.now_ms + duration(facts["for"])
        while self.now_ms < until_ms:
            self.pass_time(duration(actor.facts.get("session", "10s")) // 2)
            self._beats(actor, {})
        self.heard.clear()

    def _leaves(self, actor: Actor, facts: dict[str, str]) -> None:
        identity = LeaveGroupRequest.MemberIdentity(
            member_id=id_of(self, facts["as"]) if "as" in facts else actor.member_id,
            group_instance_id=facts.get("instance"),
        )
        self.ask(actor, GroupRequest(LeaveGroupRequest(group_id=GROUP, members=[identity]), 5))

    def _commits(self, actor: Actor, facts: dict[str, str]) -> None:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=int(facts.get("partition", "0")),
            committed_offset=int(facts["offset"]),
            committed_metadata=facts.get("note"),
        )
        message = OffsetCommitRequest(
            group_id=facts.get("group", GROUP),
            generation_id_or_member_epoch=int(facts.get("generation", actor.generation)),
            member_id=actor.member_id,
            group_instance_id=actor.facts.get("instance"),
            topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=facts.get("topic", "t"), partitions=[partition])],
        )
        version = int(facts.get("version", "9"))
        self.ask(actor, GroupRequest(message, version, topic_ids=self.topic_ids()))

    def _writes(self, actor: Actor, facts: dict[str, str]) -> None:
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=int(facts["offset"])
        )
        message = TxnOffsetCommitRequest(
            transactional_id=actor.name,
            group_id=GROUP,
            producer_id=int(facts["producer"]),
            producer_epoch=0,
            generation_id=actor.generation,
            member_id=actor.member_id,
            topics=[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
        )
        self.ask(actor, GroupRequest(message, 5))

    def _fetches(self, actor: Actor, facts: dict[str, str]) -> None:
        topics = [OffsetFetchRequest.OffsetFetchRequestTopics(name=facts.get("topic", "t"), partition_indexes=[0])]
        group = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=facts.get("group", GROUP), topics=None if "all" in facts else topics
        )
        self.ask(actor, FetchOffsets(group, require_stable="stable" in facts))

    def _forgets(self, actor: Actor, facts: dict[str, str]) -> None:
        partition = OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)
        topic = OffsetDeleteRequest.OffsetDeleteRequestTopic(name=facts["topic"], partitions=[partition])
        self.ask(actor, GroupRequest(OffsetDeleteRequest(group_id=GROUP, topics=[topic]), 0))

    def _lists(self, actor: Actor, facts: dict[str, str]) -> None:
        message = ListGroupsRequest(
            states_filter=[facts["state"]] if "state" in facts else [],
            types_filter=[facts["type"]] if "type" in facts else [],
        )
        self.ask(actor, GroupRequest(message, 5))

    def _describes(self, actor: Actor, facts: dict[str, str]) -> None:
        version = int(facts.get("version", "6"))
        self.ask(actor, GroupRequest(DescribeGroupsRequest(groups=[facts.get("group", GROUP)]), version))

    def _deletes(self, actor: Actor, facts: dict[str, str]) -> None:
        self.ask(actor, GroupRequest(DeleteGroupsRequest(groups_names=[facts.get("group", GROUP)]), 2))


def _facts(words: list[str]) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def duration(text: str) -> int:
    number = text.rstrip("smhd")
    return int(number) * UNITS_MS[text[len(number) :]]


def id_of(play: Play, name: str) -> str:
    """The id of an actor, or an id as it is."""
    return "" if name == "nobody" else play.actors[name].member_id if name in play.actors else name


def played(text: str, play_of: Callable[[dict[str, str]], Play]) -> Iterator[str]:
    """A transcript with the answers as they come now. Lines with ``!`` set what the play goes by."""
    lines = text.splitlines()
    play = play_of(dict(line[2:].split(": ") for line in lines if line.startswith("! ")))
    for line in lines:
        if line.startswith("    "):
            continue
        yield line
        if line and not line.startswith(("#", "!")):
            play.line(line.split())
            yield from (f"    {told}" for told in play.heard)
            play.heard.clear()


def compare(path: Path, play_of: Callable[[dict[str, str]], Play], *, rewrite: bool) -> None:
    text = path.read_text()
    now = "\n".join(played(text, play_of)) + "\n"
    if rewrite:
        path.write_text(now)
    assert now.splitlines() == text.splitlines()
