"""Resets an application: deletes its internal topics, its committed offsets and its entry in the catalog.

After that the application starts as a new one: it reads its topics from the beginning. Output topics are not changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from barnabas.client.admin.client import Admin
from barnabas.client.cluster.cluster import Cluster
from barnabas.model import errors
from barnabas.streams.catalog.application import Application
from barnabas.streams.catalog.topic import find, forget

__all__ = ["Reset", "execute_reset", "plan_reset"]

INTERNAL_SUFFIXES = ("-changelog", "-repartition")
# Groups of an application: its offsets, decisions about commits, and what the source remembers.
_MORE_GROUPS = r"(\.commits(\.\d+)?|\.[0-9a-f]{8}\.(topics|start|first-[0-9a-f]{12}))?"


@dataclass(frozen=True)
class Reset:
    """What a reset deletes. ``checkpoint`` is the directory that the application was started from last, or empty."""

    application_id: str
    topics: list[str]
    groups: list[str]
    checkpoint: str


async def plan_reset(cluster: Cluster, application_id: str) -> Reset:
    """Find what belongs to an application; internal topics are found by their names if the catalog has no entry."""
    known: Application | None = await find(cluster, application_id)
    admin = Admin(cluster=cluster)
    exist = [topic.name for topic in await admin.list_topics(include_internal=True)]
    if known is not None:
        topics = [name for name in known.internal_topics if name in exist]
    else:
        topics = [name for name in exist if name.startswith(f"{application_id}-") and name.endswith(INTERNAL_SUFFIXES)]
    pattern = re.compile(re.escape(application_id) + _MORE_GROUPS)
    groups = [group.group_id for group in await admin.list_groups() if pattern.fullmatch(group.group_id)]
    return Reset(application_id, sorted(topics), sorted(groups), "" if known is None else known.checkpoint)


async def execute_reset(cluster: Cluster, reset: Reset) -> None:
    """Delete; raises the first refusal of the cluster. Can be repeated."""
    admin = Admin(cluster=cluster)
    for refused in (await admin.delete_groups(reset.groups)).values():
        if refused is not None and refused.error is not errors.GROUP_ID_NOT_FOUND:
            raise refused
    for refused in (await admin.delete_topics(reset.topics)).values():
        if refused is not None and refused.error is not errors.UNKNOWN_TOPIC_OR_PARTITION:
            raise refused
    await forget(cluster, reset.application_id)
