"""Consumer groups: the list, one group with members, lag and history, reset with preview, delete."""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec

from barnabas.client.group.lag import Lag, lags
from barnabas.console.endpoint import Call, Endpoint
from barnabas.model.ids import TopicPartition
from barnabas.ops.doctor.examination import examine
from barnabas.ops.groups.seek import Target, seek
from barnabas.ops.records.moments import parse_window
from barnabas.rest.errors import RestError

EXPLAIN_SECONDS: Final = 1.0


class Reset(msgspec.Struct):
    """Where a group is to continue: start, end, an offset, -10m, @2026-01-31T12:00 (as of ``group seek``)."""

    to: str = "start"
    topics: list[str] = []  # TOPIC or TOPIC:0,1; empty for all that the group has committed
    dry_run: bool = True


async def list_groups(call: Call) -> dict[str, Any]:
    view = call.view
    view.sampler.watch()
    rows = []
    for group in await view.groups.get():
        series = view.sampler.lag.of(group.group_id)
        rows.append(
            {
                "group": group.group_id,
                "state": group.state,
                "type": group.type or "classic",
                "protocol": group.protocol_type,
                "coordinator": group.coordinator,
                "lag": series.last,
                "behind_ms": view.sampler.lag_ms.of(group.group_id).last,
                "points": series.points(60),
            }
        )
    return {"groups": rows}


async def get_group(call: Call) -> dict[str, Any]:
    view, name = call.view, call.path("group")
    view.sampler.watch()
    described = await view.admin.describe_group(name)
    committed = await view.admin.group_offsets(name)
    found = await lags(view.admin.cluster, {place: entry.offset for place, entry in committed.items()})
    owners = {place: member for member in described.members for place in member.partitions}
    places = sorted({*found, *owners})
    return {
        "group": described.group_id,
        "state": described.state,
        "type": described.type,
        "assignor": described.assignor,
        "coordinator": described.coordinator,
        "members": [
            {
                "member_id": each.member_id,
                "instance_id": each.instance_id,
                "client_id": each.client_id,
                "host": each.host,
                "partitions": len(each.partitions),
                "topics": sorted({place.topic for place in each.partitions}),
                "lag": sum(found[place].records for place in each.partitions if place in found),
            }
            for each in described.members
        ],
        "partitions": [_partition_row(place, found.get(place), owners.get(place)) for place in places],
        "lag": sum(lag.records for lag in found.values()),
        "behind_ms": max((lag.behind_ms for lag in found.values() if lag.behind_ms is not None), default=None),
        "lag_history": view.sampler.lag.of(name).points(),
        "behind_history": view.sampler.lag_ms.of(name).points(),
    }


def _partition_row(place: TopicPartition, lag: Lag | None, owner: Any) -> dict[str, Any]:
    return {
        "topic": place.topic,
        "partition": place.partition,
        "committed": None if lag is None else lag.committed,
        "end": None if lag is None else lag.end,
        "lag": None if lag is None else lag.records,
        "behind_ms": None if lag is None else lag.behind_ms,
        "member": "" if owner is None else owner.client_id or owner.member_id,
    }


async def explain_group(call: Call) -> dict[str, Any]:
    """Why a group is behind or stuck: what the doctor finds about it."""
    found = await examine(
        call.view.admin, seconds=EXPLAIN_SECONDS, now_ms=int(time.time() * 1000), groups=[call.path("group")]
    )
    return {"findings": [finding._asdict() for finding in found.findings]}


async def reset_group(call: Call) -> dict[str, Any]:
    reset = await call.body(Reset)
    call.audited |= {"to": reset.to, "dry_run": reset.dry_run}
    if not reset.dry_run and call.console.is_read_only:
        raise RestError(403, "this console is read-only")
    window = parse_window(reset.to, now_ms=int(time.time() * 1000))
    moves = await seek(
        call.view.admin,
        call.path("group"),
        Target(position=window.start),
        reset.topics,
        is_executed=not reset.dry_run,
    )
    call.view.forget()
    return {
        "moves": [
            {
                "topic": move.partition.topic,
                "partition": move.partition.partition,
                "before": move.before,
                "after": move.after,
                "change": None if move.before is None else move.after - move.before,
            }
            for move in moves
        ]
    }


async def delete_group(call: Call) -> dict[str, Any]:
    name = call.path("group")
    outcome = (await call.view.admin.delete_groups([name]))[name]
    if outcome is not None:
        raise outcome
    call.view.forget()
    return {}


_AT: Final = "/clusters/{cluster}/groups"
ENDPOINTS: Final = (
    Endpoint("GET", _AT, list_groups, "All groups with state, lag and recent history"),
    Endpoint("GET", f"{_AT}/{{group}}", get_group, "A group with members, lag of each partition and history"),
    Endpoint("GET", f"{_AT}/{{group}}/explain", explain_group, "Why the group is behind or stuck"),
    Endpoint(
        "POST", f"{_AT}/{{group}}/reset", reset_group, "Preview or perform an offset reset", body=Reset, is_change=False
    ),
    Endpoint("DELETE", f"{_AT}/{{group}}", delete_group, "Delete a group without members"),
)
