"""Moves the committed offsets of a group, or shows how they would move.

Only a group without members can be moved, because members would go on from where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Start, resolve
from barnabas.model.ids import TopicPartition
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin

EMPTY: Final = "Empty"


class Move(NamedTuple):
    partition: TopicPartition
    before: int | None
    after: int


class Target(NamedTuple):
    """Where a group is to continue: at a position, at another group's offsets, or at given offsets; exactly one is
    set."""

    position: Start | None = None
    group: str | None = None
    offsets: Mapping[TopicPartition, int] | None = None


async def seek(admin: Admin, group: str, target: Target, topics: Sequence[str], *, is_executed: bool) -> list[Move]:
    """Return the offsets of a group before and after a seek; commit them if ``is_executed``.

    ``topics`` limits it to ``TOPIC`` or ``TOPIC:0,1``; without any, all partitions with a committed offset are moved.
    """
    committed = {place: entry.offset for place, entry in (await admin.group_offsets(group)).items()}
    wanted = await _wanted(admin, target, topics, committed)
    after = await _targets(admin, target, wanted)
    moves = [Move(place, committed.get(place), offset) for place, offset in sorted(after.items())]
    if not moves:
        raise Failure(f"there is nothing to move: {group!r} has committed nothing; name topics with --topic")
    if is_executed:
        await _check_empty(admin, group, is_known=bool(committed))
        await admin.alter_group_offsets(group, {move.partition: move.after for move in moves})
    return moves


async def _wanted(
    admin: Admin, target: Target, topics: Sequence[str], committed: Mapping[TopicPartition, int]
) -> list[TopicPartition]:
    if target.offsets is not None:
        return sorted(target.offsets)
    if topics:
        return await places_of(admin, topics)
    return sorted(committed if target.group is None else await admin.group_offsets(target.group))


async def places_of(admin: Admin, texts: Iterable[str]) -> list[TopicPartition]:
    """Partitions as people write them: TOPIC for all of its, TOPIC:0,1 for some."""
    found: dict[TopicPartition, None] = {}
    for text in texts:
        name, _, numbers = text.partition(":")
        topic = await admin.cluster.topic(name, timeout_ms=0)
        try:
            chosen = [int(number) for number in numbers.split(",")] if numbers else range(len(topic.partitions))
        except ValueError:
            raise Failure(f"{text!r}: say TOPIC, or TOPIC:0,1 for some of its partitions") from None
        for index in chosen:
            if not 0 <= index < len(topic.partitions):
                raise Failure(f"{name} has partitions 0 to {len(topic.partitions) - 1}, and no {index}")
            found[TopicPartition(name, index)] = None
    return list(found)


async def _targets(admin: Admin, target: Target, wanted: list[TopicPartition]) -> dict[TopicPartition, int]:
    """Return offsets that exist: an offset outside of a log is moved to the log's start or end."""
    if not wanted:
        return {}
    if target.group is not None:
        others = await admin.group_offsets(target.group)
        if not others:
            raise Failure(f"{target.group!r} has committed nothing")
        return {place: others[place].offset for place in wanted if place in others}
    if target.offsets is not None:
        offsets = dict(target.offsets)
    else:
        assert target.position is not None
        starts = dict.fromkeys(wanted, target.position)
        offsets = await resolve(admin.cluster, starts, isolation_level="read_uncommitted")
    first = await admin.list_offsets(dict.fromkeys(wanted, EARLIEST_TIMESTAMP))
    last = await admin.list_offsets(dict.fromkeys(wanted, LATEST_TIMESTAMP))
    return {place: min(max(offset, first[place].offset), last[place].offset) for place, offset in offsets.items()}


async def _check_empty(admin: Admin, group: str, *, is_known: bool) -> None:
    if is_known:
        state = (await admin.describe_group(group)).state
        if state != EMPTY:
            raise Failure(f"{group!r} is {state}: its members would not notice; stop them first")
