"""The part of ``kafka-consumer-groups.sh`` that says where a group is moved to: ``--to-earliest``, ``--shift-by``, …"""

from __future__ import annotations

import re
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.client.offsets import EARLIEST, EARLIEST_TIMESTAMP, LATEST, LATEST_TIMESTAMP, Start, resolve
from barnabas.model.ids import TopicPartition
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin

EMPTY: Final = ("Empty", "Dead")
_DURATION: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
DRY_RUN: Final = "WARN: No action will be performed as the --execute option is missing."


def configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--topic", action="append", default=[], metavar="TOPIC[:0,1,2]")
    add("--all-topics", action="store_true")
    for flag in ("execute", "dry-run", "export", "to-earliest", "to-latest", "to-current"):
        add(f"--{flag}", action="store_true")
    add("--to-offset", type=int, metavar="N")
    add("--shift-by", type=int, metavar="N")
    add("--to-datetime", metavar="YYYY-MM-DDTHH:mm:SS.sss")
    add("--by-duration", metavar="PnDTnHnMnS")
    add("--from-file", metavar="CSV", help="lines of topic,partition,offset")


async def reset(admin: Admin, group: str, arguments: Namespace) -> list[tuple[str, str, int, int]]:
    """The new offsets; committed if ``--execute`` says so."""
    wanted = await _targets(admin, group, arguments)
    if arguments.execute:
        state = await _state(admin, group)
        if state not in EMPTY:
            raise Failure(f"Error: Assignments can only be reset if the group '{group}' is inactive, but is {state}.")
        await admin.alter_group_offsets(group, wanted)
    elif not arguments.dry_run and not arguments.export:
        print(DRY_RUN, file=sys.stderr)
    return [(group, place.topic, place.partition, offset) for place, offset in sorted(wanted.items())]


async def _state(admin: Admin, group: str) -> str:
    from barnabas.model.errors import ApiError

    try:
        return (await admin.describe_group(group)).state
    except ApiError:
        return EMPTY[0]  # a group that is not there is made by its first commit


async def places(admin: Admin, group: str, arguments: Namespace) -> list[TopicPartition]:
    if arguments.all_topics:
        return sorted(await admin.group_offsets(group))
    found: list[TopicPartition] = []
    for text in arguments.topic:
        name, _, numbers = text.partition(":")
        topic = await admin.cluster.topic(name, timeout_ms=0)
        try:
            chosen: Iterable[int] = map(int, numbers.split(",")) if numbers else range(len(topic.partitions))
            found += [TopicPartition(name, index) for index in chosen]
        except ValueError:
            raise Failure(f"--topic {text!r}: say TOPIC or TOPIC:0,1,2") from None
    if not found:
        raise Failure("One of the reset scopes should be defined: --all-topics, --topic.")
    return found


async def _targets(admin: Admin, group: str, arguments: Namespace) -> dict[TopicPartition, int]:
    if arguments.from_file is not None:
        return await _within(admin, _read(arguments.from_file))
    chosen = await places(admin, group, arguments)
    if arguments.shift_by is not None or arguments.to_current:
        current = {place: entry.offset for place, entry in (await admin.group_offsets(group)).items()}
        missing = [place for place in chosen if place not in current]
        if missing and not arguments.to_current:
            raise Failure(
                f"Error: Cannot shift offset for partition {missing[0]} since there is no current committed offset"
            )
        ends = await resolve(admin.cluster, dict.fromkeys(missing, LATEST), isolation_level="read_uncommitted")
        shift = arguments.shift_by or 0
        return await _within(admin, {place: current.get(place, ends.get(place, 0)) + shift for place in chosen})
    start = _start(arguments, now_ms=time.time_ns() // 1_000_000)
    found = await resolve(admin.cluster, dict.fromkeys(chosen, start), isolation_level="read_uncommitted")
    return await _within(admin, found)


def _start(arguments: Namespace, *, now_ms: int) -> Start:
    if arguments.to_earliest:
        return EARLIEST
    if arguments.to_latest:
        return LATEST
    if arguments.to_offset is not None:
        return Start.at(arguments.to_offset)
    if arguments.to_datetime is not None:
        try:
            moment = datetime.fromisoformat(arguments.to_datetime)
        except ValueError:
            raise Failure(f"--to-datetime {arguments.to_datetime!r}: say YYYY-MM-DDTHH:mm:SS.sss") from None
        return Start.at_time(int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))
    if arguments.by_duration is not None:
        return Start.at_time(now_ms - duration_ms(arguments.by_duration))
    raise Failure("One of the reset options is needed: --to-earliest, --to-latest, --to-offset, --shift-by, …")


def duration_ms(text: str) -> int:
    """As ISO 8601 writes durations."""
    found = _DURATION.fullmatch(text)
    if found is None or text in ("P", "PT"):
        raise Failure(f"--by-duration {text!r}: say PnDTnHnMnS, such as P1DT2H")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


async def _within(admin: Admin, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Offsets outside of a log are moved to its edge."""
    if not wanted:
        return {}
    first = await admin.list_offsets(dict.fromkeys(wanted, EARLIEST_TIMESTAMP))
    last = await admin.list_offsets(dict.fromkeys(wanted, LATEST_TIMESTAMP))
    return {place: min(max(offset, first[place].offset), last[place].offset) for place, offset in wanted.items()}


def _read(path: str) -> dict[TopicPartition, int]:
    found = {}
    try:
        for line in Path(path).read_text().split():
            topic, partition, offset = line.rsplit(",", 2)
            found[TopicPartition(topic.strip('"'), int(partition))] = int(offset)
    except OSError as error:
        raise Failure(f"--from-file {path}: {error.strerror}") from error
    except ValueError:
        raise Failure(f"--from-file {path}: a line is not topic,partition,offset") from None
    return found
