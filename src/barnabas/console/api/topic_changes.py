"""Changes to topics: create, clone, alter settings, add partitions, delete records, delete."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from barnabas.client.admin.configs import Change, ConfigSource, Operation, Resource, ResourceKind
from barnabas.client.admin.topics import NewTopic
from barnabas.console.api.topics import topic_of
from barnabas.console.endpoint import Call, Endpoint
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.rest.errors import RestError


class TopicDraft(msgspec.Struct):
    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: dict[str, str] = {}
    clone_of: str | None = None  # copy partitions, replicas and settings of this topic
    validate_only: bool = False


class ConfigChange(msgspec.Struct):
    set: dict[str, str] = {}
    delete: list[str] = []  # back to the default
    validate_only: bool = False


class PartitionCount(msgspec.Struct):
    count: int


class Purge(msgspec.Struct):
    """Delete records before these offsets, by partition; -1 deletes all. Without offsets: all of every partition."""

    offsets: dict[str, int] | None = None


async def create_topic(call: Call) -> dict[str, Any]:
    draft = await call.body(TopicDraft)
    call.audited["topic"] = draft.name
    view = call.view
    partitions, replicas, configs = draft.partitions, draft.replication_factor, dict(draft.configs)
    if draft.clone_of is not None:
        described = (await view.admin.describe_topics([draft.clone_of]))[draft.clone_of]
        if isinstance(described, ApiError):
            raise described
        partitions = partitions if partitions > 0 else len(described.partitions)
        replicas = replicas if replicas > 0 else len(described.partitions[0].replicas)
        resource = Resource(ResourceKind.TOPIC, draft.clone_of)
        entries = (await view.admin.describe_configs([resource]))[resource]
        if isinstance(entries, ApiError):
            raise entries
        own = {name: entry.value or "" for name, entry in entries.items() if entry.source is ConfigSource.TOPIC}
        configs = own | configs
    topic = NewTopic(draft.name, partitions, replicas, configs)
    created = await view.admin.create_topic(topic, validate_only=draft.validate_only)
    view.forget()
    return {
        "name": created.name,
        "partitions": created.partition_count,
        "replication_factor": created.replication_factor,
    }


async def delete_topic(call: Call) -> dict[str, Any]:
    await call.view.admin.delete_topic(call.path("topic"))
    call.view.forget()
    return {}


async def alter_topic_config(call: Call) -> dict[str, Any]:
    change = await call.body(ConfigChange)
    call.audited["names"] = ",".join([*change.set, *change.delete])
    resource = Resource(ResourceKind.TOPIC, call.path("topic"))
    return await alter(call, resource, change)


async def alter(call: Call, resource: Resource, change: ConfigChange) -> dict[str, Any]:
    changes = [Change(name, value) for name, value in change.set.items()]
    changes += [Change(name, None, Operation.DELETE) for name in change.delete]
    if not changes:
        raise RestError(400, "there is nothing to change")
    outcome = (await call.view.admin.alter_configs({resource: changes}, validate_only=change.validate_only))[resource]
    if outcome is not None:
        raise outcome
    call.view.forget()
    return {}


async def add_partitions(call: Call) -> dict[str, Any]:
    count = (await call.body(PartitionCount)).count
    name = call.path("topic")
    call.audited["count"] = count
    outcome = (await call.view.admin.create_partitions({name: count}))[name]
    if outcome is not None:
        raise outcome
    call.view.forget()
    return {}


async def purge_topic(call: Call) -> dict[str, Any]:
    purge = await call.body(Purge)
    topic = await topic_of(call)
    wanted = {str(part.partition): -1 for part in topic.partitions} if purge.offsets is None else purge.offsets
    try:
        offsets = {TopicPartition(topic.name, int(index)): offset for index, offset in wanted.items()}
    except ValueError:
        raise RestError(400, "offsets must be by partition number") from None
    outcomes = await call.view.admin.delete_records(offsets)
    call.view.forget()
    failed = [outcome for outcome in outcomes.values() if isinstance(outcome, ApiError)]
    if failed:
        raise failed[0]
    return {"first_offsets": {str(place.partition): offset for place, offset in outcomes.items()}}


_AT: Final = "/clusters/{cluster}/topics"
ENDPOINTS: Final = (
    Endpoint("POST", _AT, create_topic, "Create a topic, or clone one", body=TopicDraft),
    Endpoint("DELETE", f"{_AT}/{{topic}}", delete_topic, "Delete a topic and its records"),
    Endpoint("PATCH", f"{_AT}/{{topic}}/config", alter_topic_config, "Change settings of a topic", body=ConfigChange),
    Endpoint("POST", f"{_AT}/{{topic}}/partitions", add_partitions, "Add partitions", body=PartitionCount),
    Endpoint("POST", f"{_AT}/{{topic}}/purge", purge_topic, "Delete records of a topic", body=Purge),
)
