"""Who in a classic group reads which partition: range, round robin, sticky and cooperative sticky, as in Java.

Pure. The leader of a group asks :meth:`Assignor.assign`; every member puts :meth:`Assignor.user_data` into its
subscription. The sticky ones share the balancing of ``balance.py``. Racks of replicas are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct, error
from typing import Final, NamedTuple, TypeAlias

from barnabas.client.partitions.balance import Claim, balanced
from barnabas.client.partitions.protocol import NO_GENERATION, Subscription, by_topic
from barnabas.model.errors import Malformed
from barnabas.model.ids import TopicPartition

Assignment: TypeAlias = dict[str, list[TopicPartition]]  # member id -> partitions, in order

_INT32: Final = Struct(">i")
_INT16: Final = Struct(">h")


class Candidate(NamedTuple):
    member_id: str
    subscription: Subscription
    instance_id: str | None = None

    @property
    def rank(self) -> tuple[bool, str]:
        """Java's order: static members first, by their own names, so that a restart changes nothing."""
        return (self.instance_id is None, self.member_id if self.instance_id is None else self.instance_id)


class Assignor:
    name: str
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """What a member says for this assignor about its last assignment."""
        return None

    def assign(self, counts: Mapping[str, int], members: Sequence[Candidate]) -> Assignment:
        """Every partition of a topic that someone subscribes to, to exactly one of those; every member has an entry.

        ``counts`` says how many partitions each topic has; a topic that it does not have does not exist.
        """
        raise NotImplementedError


class Range(Assignor):
    """Topic by topic, neighbouring partitions go to one member; the first members get one more."""

    name = "range"

    def assign(self, counts: Mapping[str, int], members: Sequence[Candidate]) -> Assignment:
        assignment: Assignment = {member.member_id: [] for member in members}
        ranked = sorted(members, key=lambda member: member.rank)
        for topic in sorted(counts):
            readers = [member for member in ranked if topic in member.subscription.topics]
            if not readers:
                continue
            share, more = divmod(counts[topic], len(readers))
            start = 0
            for index, reader in enumerate(readers):
                end = start + share + (index < more)
                assignment[reader.member_id] += [TopicPartition(topic, number) for number in range(start, end)]
                start = end
        return assignment


class RoundRobin(Assignor):
    """All partitions in order are dealt out to the members in order, past those who did not subscribe."""

    name = "roundrobin"

    def assign(self, counts: Mapping[str, int], members: Sequence[Candidate]) -> Assignment:
        assignment: Assignment = {member.member_id: [] for member in members}
        ranked = sorted(members, key=lambda member: member.rank)
        turn = 0
        for topic in sorted(counts):
            if not any(topic in member.subscription.topics for member in ranked):
                continue
            for number in range(counts[topic]):
                while topic not in ranked[turn % len(ranked)].subscription.topics:
                    turn += 1
                assignment[ranked[turn % len(ranked)].member_id].append(TopicPartition(topic, number))
                turn += 1
        return assignment


class Sticky(Assignor):
    """Even, and as much as possible stays where it was. Members give everything up first and say what they had."""

    name = "sticky"

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        if generation == NO_GENERATION:
            return None
        out = bytearray(_INT32.pack(len(by_topic(owned))))
        for topic, partitions in by_topic(owned).items():
            name = topic.encode()
            out += _INT16.pack(len(name)) + name + _INT32.pack(len(partitions))
            for partition in partitions:
                out += _INT32.pack(partition)
        return bytes(out + _INT32.pack(generation))

    def claim(self, subscription: Subscription) -> Claim:
        """What a member had, and since when; rubbish counts as nothing, as one bad member must not stop a group."""
        if not subscription.user_data:
            return Claim((), NO_GENERATION)
        try:
            return _decode_sticky(subscription.user_data)
        except Malformed:
            return Claim((), NO_GENERATION)

    def assign(self, counts: Mapping[str, int], members: Sequence[Candidate]) -> Assignment:
        claims = {member.member_id: self.claim(member.subscription) for member in members}
        return balanced(counts, {member.member_id: member.subscription.topics for member in members}, claims)


class CooperativeSticky(Sticky):
    """As sticky, but members keep what they have: a partition that moves is free for one generation (KIP-429)."""

    name = "cooperative-sticky"
    is_cooperative = True

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return _INT32.pack(generation)

    def claim(self, subscription: Subscription) -> Claim:
        generation = subscription.generation
        if generation == NO_GENERATION and subscription.user_data and len(subscription.user_data) >= _INT32.size:
            (generation,) = _INT32.unpack_from(subscription.user_data)  # from before subscriptions had a generation
        return Claim(subscription.owned, generation)

    def assign(self, counts: Mapping[str, int], members: Sequence[Candidate]) -> Assignment:
        assignment = super().assign(counts, members)
        owners: dict[TopicPartition, set[str]] = {}
        for member in members:
            for partition in member.subscription.owned:
                owners.setdefault(partition, set()).add(member.member_id)
        for member_id, partitions in assignment.items():
            # Whoever still has it must let go first; the round that follows gives it away.
            partitions[:] = [place for place in partitions if not owners.get(place, set()) - {member_id}]
        return assignment


def _decode_sticky(data: bytes) -> Claim:
    """Topics with their partitions and, since version 1, the generation: no version is written, the end tells."""
    owned: list[TopicPartition] = []
    try:
        (topic_count,) = _INT32.unpack_from(data)
        position = _INT32.size
        for _ in range(min(topic_count, len(data))):
            (size,) = _INT16.unpack_from(data, position)
            start = position + _INT16.size
            topic = data[start : start + size].decode()
            (count,) = _INT32.unpack_from(data, start + size)
            position = start + size + _INT32.size
            for _ in range(min(count, len(data))):
                owned.append(TopicPartition(topic, *_INT32.unpack_from(data, position)))
                position += _INT32.size
        generation = _INT32.unpack_from(data, position)[0] if len(data) >= position + _INT32.size else NO_GENERATION
    except (error, UnicodeDecodeError) as reason:
        raise Malformed(f"the user data of a sticky member: {reason}") from reason
    return Claim(tuple(owned), generation)


ASSIGNORS: Final[Mapping[str, Assignor]] = {
    assignor.name: assignor for assignor in (Range(), RoundRobin(), Sticky(), CooperativeSticky())
}
