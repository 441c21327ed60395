"""Brokers: the list, one broker with its log directories and settings."""

from __future__ import annotations

from typing import Any, Final

from barnabas.client.admin.configs import Resource, ResourceKind
from barnabas.console.api.overview import broker_rows
from barnabas.console.api.topic_changes import ConfigChange, alter
from barnabas.console.api.topics import config_rows
from barnabas.console.endpoint import Call, Endpoint
from barnabas.model.errors import ApiError, BarnabasError
from barnabas.rest.errors import RestError

LARGEST_MAX: Final = 50  # replicas shown of a directory


async def list_brokers(call: Call) -> dict[str, Any]:
    view = call.view
    described = await view.description.get()
    parts = [part for topic in await view.topics.get() for part in topic.partitions]
    return {
        "cluster_id": described.cluster_id,
        "brokers": broker_rows(described, parts, await view.disks.get()),
        "quorum": await _quorum(call),
    }


async def _quorum(call: Call) -> dict[str, Any] | None:
    try:
        quorum = await call.view.admin.describe_quorum()
    except BarnabasError:
        return None
    return {
        "leader": quorum.leader_id,
        "epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "voters": [{"id": each.id, "behind": quorum.high_watermark - each.log_end_offset} for each in quorum.voters],
        "observers": [
            {"id": each.id, "behind": quorum.high_watermark - each.log_end_offset} for each in quorum.observers
        ],
    }


async def get_broker(call: Call) -> dict[str, Any]:
    view = call.view
    broker = _id(call)
    described = await view.description.get()
    parts = [part for topic in await view.topics.get() for part in topic.partitions]
    disks = await view.disks.get()
    rows = [row for row in broker_rows(described, parts, disks) if row["id"] == broker]
    if not rows:
        raise RestError(404, f"there is no broker {broker}")
    directories = disks.get(broker, ())
    return {
        **rows[0],
        "directories_error": directories if isinstance(directories, str) else None,
        "directory_rows": [
            {
                "path": each.path,
                "error": None if each.error is None else each.error.message,
                "total_bytes": each.total_bytes,
                "usable_bytes": each.usable_bytes,
                "bytes": sum(replica.size_bytes for replica in each.replicas.values()),
                "replicas": len(each.replicas),
                "largest": [
                    {"topic": place.topic, "partition": place.partition, "bytes": replica.size_bytes}
                    for place, replica in sorted(each.replicas.items(), key=lambda item: -item[1].size_bytes)[
                        :LARGEST_MAX
                    ]
                ],
            }
            for each in (directories if isinstance(directories, tuple) else ())
        ],
    }


def _id(call: Call) -> int:
    text = call.path("broker")
    if not (text.isascii() and text.isdecimal()):
        raise RestError(404, f"there is no broker {text!r}")
    return int(text)


async def get_broker_config(call: Call) -> dict[str, Any]:
    resource = Resource(ResourceKind.BROKER, str(_id(call)))
    entries = (await call.view.admin.describe_configs([resource], include_documentation=True))[resource]
    if isinstance(entries, ApiError):
        raise entries
    return {"configs": config_rows(entries)}


async def alter_broker_config(call: Call) -> dict[str, Any]:
    change = await call.body(ConfigChange)
    call.audited["names"] = ",".join([*change.set, *change.delete])
    return await alter(call, Resource(ResourceKind.BROKER, str(_id(call))), change)


_AT: Final = "/clusters/{cluster}/brokers"
ENDPOINTS: Final = (
    Endpoint("GET", _AT, list_brokers, "All brokers and the controller quorum"),
    Endpoint("GET", f"{_AT}/{{broker}}", get_broker, "A broker with its log directories"),
    Endpoint("GET", f"{_AT}/{{broker}}/config", get_broker_config, "Settings of a broker with documentation"),
    Endpoint("PATCH", f"{_AT}/{{broker}}/config", alter_broker_config, "Change dynamic settings", body=ConfigChange),
)
