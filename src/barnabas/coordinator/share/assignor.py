"""The assignor ``simple`` of share groups (KIP-932): every partition has a member, and every member has partitions.

With more members than partitions several members share a partition. Members keep what they have as far as balance
allows. A pure function; partitions without initialized state are not passed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.coordinator.consumer.assignors import MemberSpec, Partitions
from barnabas.model.ids import Uuid

NAME = "simple"
_Pair = tuple[Uuid, int]


def simple(members: Sequence[MemberSpec], assignable: Partitions) -> dict[str, Partitions]:
    """The partitions of each member. If subscriptions differ, each topic is balanced by itself."""
    ordered = sorted(members, key=lambda member: member.member_id)
    pools = [frozenset(topic for member in ordered for topic in member.topics)]
    if any(member.topics != ordered[0].topics for member in ordered):
        pools = [frozenset((topic,)) for topic in sorted(pools[0])]
    result: dict[str, dict[Uuid, frozenset[int]]] = {member.member_id: {} for member in ordered}
    for topics in pools:
        subscribed = [member for member in ordered if topics <= member.topics]
        partitions = [(topic, index) for topic in sorted(topics) for index in sorted(assignable.get(topic, ()))]
        for member_id, pairs in _shared(subscribed, partitions).items():
            for topic, index in pairs:
                result[member_id][topic] = result[member_id].get(topic, frozenset()) | {index}
    return {member_id: dict(partitions) for member_id, partitions in result.items()}


def _shared(members: Sequence[MemberSpec], partitions: Sequence[_Pair]) -> Mapping[str, set[_Pair]]:
    """One pool of partitions over its subscribers, as evenly as possible."""
    result: dict[str, set[_Pair]] = {member.member_id: set() for member in members}
    if not members or not partitions:
        return result
    sharing = -(-len(members) // len(partitions))  # members of one partition
    total = sharing * len(partitions)
    holders: dict[_Pair, int] = dict.fromkeys(partitions, 0)
    quotas: dict[str, int] = {}
    for place, member in enumerate(members):
        quota = -(-total * (place + 1) // len(members)) - -(-total * place // len(members))
        quotas[member.member_id] = quota
        for pair in sorted((topic, index) for topic, indexes in member.assigned.items() for index in indexes):
            if len(result[member.member_id]) < quota and holders.get(pair, sharing) < sharing:
                result[member.member_id].add(pair)
                holders[pair] += 1
    unfilled = [member_id for member_id in result if len(result[member_id]) < quotas[member_id]]
    for pair in sorted(partitions, key=lambda pair: (holders[pair], pair)):
        place = 0
        while holders[pair] < sharing and place < len(unfilled):
            member_id = unfilled[place]
            if pair in result[member_id]:
                place += 1
                continue
            result[member_id].add(pair)
            holders[pair] += 1
            unfilled.pop(place)
            if len(result[member_id]) < quotas[member_id]:
                unfilled.append(member_id)  # behind those that wait for their first partition
    return result
