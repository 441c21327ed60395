"""``kafka-topics.sh``: create, delete, describe, change and list topics, as Kafka's TopicCommand does."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.shims.shim import admin_of, carry_out, exactly_one, parser_of, raise_first
from barnabas.cli.terminal.connection import attend, pairs
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.ops.failure import Failure
from barnabas.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin
    from barnabas.client.admin.configs import ConfigEntry

ACTIONS: Final = ("create", "delete", "alter", "list", "describe")
FAILED: Final = "Error while executing topic command : "


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("kafka-topics.sh", "Create, delete, describe or change a topic.")
    _configure(parser)
    return carry_out(parser, _run, arguments)


def _configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    for action in ACTIONS:
        add(f"--{action}", action="store_true")
    add("--topic", help="a name; to describe, change, delete and list, a regular expression")
    add("--partitions", type=int)
    add("--replication-factor", type=int)
    add("--replica-assignment", metavar="1:2:3,2:3:1", help="the replicas of each partition")
    add("--config", action="append", default=[], metavar="NAME=VALUE")
    for flag in ("if-not-exists", "if-exists", "exclude-internal", "topics-with-overrides"):
        add(f"--{flag}", action="store_true")
    for flag in ("under-replicated", "unavailable", "under-min-isr", "at-min-isr"):
        add(f"--{flag}-partitions", action="store_true")


def _run(arguments: Namespace) -> None:
    action = exactly_one(arguments, *ACTIONS)
    work = {"create": _create, "delete": _delete, "alter": _alter, "list": _list, "describe": _describe}[action]
    if action in ("create", "delete", "alter") and arguments.topic is None:
        raise Failure("Missing required argument(s) [topic]")
    attend(work(arguments))


async def _create(arguments: Namespace) -> None:
    from barnabas.client.admin.topics import NewTopic

    async with admin_of(arguments) as admin:
        topic = NewTopic(
            arguments.topic,
            -1 if arguments.partitions is None else arguments.partitions,
            -1 if arguments.replication_factor is None else arguments.replication_factor,
            pairs(arguments.config),
            _assignments(arguments.replica_assignment),
        )
        outcome = (await admin.create_topics([topic]))[topic.name]
    if isinstance(outcome, ApiError):
        if outcome.error is errors.TOPIC_ALREADY_EXISTS and arguments.if_not_exists:
            return
        raise_first([outcome], prefix=FAILED)
    print(f"Created topic {arguments.topic}.")


def _assignments(text: str | None) -> dict[int, list[int]]:
    try:
        parts = text.split(",") if text else []
        return {index: [int(replica) for replica in part.split(":")] for index, part in enumerate(parts)}
    except ValueError:
        raise Failure(f"--replica-assignment {text!r}: say 1:2:3,2:3:1") from None


async def _names(admin: Admin, arguments: Namespace, *, may_be_missing: bool) -> list[str]:
    """The topics that ``--topic`` matches as a whole; all of them without it."""
    topics = await admin.cluster.all_topics()
    names = [topic.name for topic in topics if not (arguments.exclude_internal and topic.is_internal)]
    if arguments.topic is not None:
        try:
            pattern = re.compile(arguments.topic.replace(",", "|").strip("\"'"))
        except re.error as error:
            raise Failure(f"{arguments.topic} is an invalid regex: {error}") from error
        names = [name for name in names if pattern.fullmatch(name)]
        if not names and not may_be_missing:
            raise Failure(f"{FAILED}Topic '{arguments.topic}' does not exist as expected")
    return sorted(names)


async def _delete(arguments: Namespace) -> None:
    async with admin_of(arguments) as admin:
        names = await _names(admin, arguments, may_be_missing=arguments.if_exists)
        raise_first((await admin.delete_topics(names)).values() if names else (), prefix=FAILED)


async def _alter(arguments: Namespace) -> None:
    if arguments.partitions is None:
        raise Failure("Missing required argument(s) [partitions]")
    async with admin_of(arguments) as admin:
        names = await _names(admin, arguments, may_be_missing=arguments.if_exists)
        wanted = dict.fromkeys(names, arguments.partitions)
        raise_first((await admin.create_partitions(wanted)).values() if names else (), prefix=FAILED)


async def _list(arguments: Namespace) -> None:
    async with admin_of(arguments) as admin:
        for name in await _names(admin, arguments, may_be_missing=True):
            print(name)


async def _describe(arguments: Namespace) -> None:
    from barnabas.client.admin.configs import Resource, ResourceKind

    async with admin_of(arguments) as admin:
        names = await _names(admin, arguments, may_be_missing=arguments.if_exists or arguments.topic is None)
        described = (
            await admin.describe_configs([Resource(ResourceKind.TOPIC, name) for name in names]) if names else {}
        )
        rows = await _partitions(admin, names)
    for name in names:
        configs = described[Resource(ResourceKind.TOPIC, name)]
        raise_first([configs], prefix=FAILED)
        assert not isinstance(configs, ApiError)
        _print_topic(arguments, rows[name], configs)


async def _partitions(admin: Admin, names: list[str]) -> dict[str, Any]:
    """All partitions of the topics, page by page."""
    found: dict[str, Any] = {}
    cursor = None
    while names:
        request = DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names], cursor=cursor
        )
        answer = await admin.cluster.call_any(request, DescribeTopicPartitionsResponse)
        for topic in answer.topics:
            known = found.setdefault(topic.name or "", topic)
            if known is not topic:
                known.partitions += topic.partitions
        if answer.next_cursor is None:
            break
        following = answer.next_cursor
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=following.topic_name, partition_index=following.partition_index
        )
    return found


def _print_topic(arguments: Namespace, topic: Any, configs: dict[str, ConfigEntry]) -> None:
    own = [f"{entry.name}={entry.value}" for entry in configs.values() if not entry.is_default]
    minimum = int(configs["min.insync.replicas"].value or 1) if "min.insync.replicas" in configs else 1
    parts = [part for part in topic.partitions if _is_wanted(arguments, part, minimum)]
    is_narrowed = len(parts) != len(topic.partitions) or _is_narrow(arguments)
    if arguments.topics_with_overrides and not own:
        return
    if not is_narrowed:
        print(
            f"Topic: {topic.name}\tTopicId: {topic.topic_id}\tPartitionCount: {len(topic.partitions)}"
            f"\tReplicationFactor: {len(topic.partitions[0].replica_nodes)}\tConfigs: {','.join(own)}"
        )
    if arguments.topics_with_overrides:
        return
    for part in parts:
        print(
            f"\tTopic: {topic.name}\tPartition: {part.partition_index}"
            f"\tLeader: {'none' if part.leader_id < 0 else part.leader_id}\tReplicas: {_ids(part.replica_nodes)}"
            f"\tIsr: {_ids(part.isr_nodes)}\tElr: {_ids(part.eligible_leader_replicas or ())}"
            f"\tLastKnownElr: {_ids(part.last_known_elr or ())}"
        )


def _is_narrow(arguments: Namespace) -> bool:
    return bool(
        arguments.under_replicated_partitions
        or arguments.unavailable_partitions
        or arguments.under_min_isr_partitions
        or arguments.at_min_isr_partitions
    )


def _is_wanted(arguments: Namespace, part: Any, minimum: int) -> bool:
    if not _is_narrow(arguments):
        return True
    in_sync = len(part.isr_nodes)
    return bool(
        (arguments.under_replicated_partitions and in_sync < len(part.replica_nodes))
        or (arguments.unavailable_partitions and part.leader_id < 0)
        or (arguments.under_min_isr_partitions and in_sync < minimum)
        or (arguments.at_min_isr_partitions and in_sync == minimum)
    )


def _ids(nodes: Sequence[int]) -> str:
    return ",".join(map(str, nodes))
