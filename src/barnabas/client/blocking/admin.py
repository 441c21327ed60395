"""The admin client without async: every call of ``admin.Admin``, typed alike, waiting for its answer.

The methods are made of those of the asyncio client, one line each; a test holds the two against each other. Users
import it from ``blocking.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from barnabas.client.admin import client as admin
from barnabas.client.blocking.loop import LoopThread
from barnabas.client.settings.client import Settings

P = ParamSpec("P")
R = TypeVar("R")


def _waiting(
    method: Callable[Concatenate[admin.Admin, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Admin, P], R]:
    @wraps(method)
    def call(self: Admin, /, *arguments: P.args, **named: P.kwargs) -> R:
        return self._thread.run(method(self._inner, *arguments, **named))

    return call


class Admin:
    """As :class:`barnabas.client.admin.client.Admin`, waiting."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._thread = LoopThread()
        self._inner = self._thread.call(lambda: admin.Admin(settings))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        try:
            self._thread.run(self._inner.close())
        finally:
            self._thread.stop()

    create_topics = _waiting(admin.Admin.create_topics)
    create_topic = _waiting(admin.Admin.create_topic)
    delete_topics = _waiting(admin.Admin.delete_topics)
    delete_topic = _waiting(admin.Admin.delete_topic)
    list_topics = _waiting(admin.Admin.list_topics)
    describe_topics = _waiting(admin.Admin.describe_topics)
    create_partitions = _waiting(admin.Admin.create_partitions)
    delete_records = _waiting(admin.Admin.delete_records)
    list_offsets = _waiting(admin.Admin.list_offsets)
    describe_configs = _waiting(admin.Admin.describe_configs)
    list_config_resources = _waiting(admin.Admin.list_config_resources)
    alter_configs = _waiting(admin.Admin.alter_configs)
    describe_cluster = _waiting(admin.Admin.describe_cluster)
    describe_log_dirs = _waiting(admin.Admin.describe_log_dirs)
    alter_replica_log_dirs = _waiting(admin.Admin.alter_replica_log_dirs)
    list_groups = _waiting(admin.Admin.list_groups)
    describe_group = _waiting(admin.Admin.describe_group)
    group_offsets = _waiting(admin.Admin.group_offsets)
    alter_group_offsets = _waiting(admin.Admin.alter_group_offsets)
    delete_group_offsets = _waiting(admin.Admin.delete_group_offsets)
    remove_members = _waiting(admin.Admin.remove_members)
    delete_groups = _waiting(admin.Admin.delete_groups)
    list_transactions = _waiting(admin.Admin.list_transactions)
    describe_transactions = _waiting(admin.Admin.describe_transactions)
    describe_transaction = _waiting(admin.Admin.describe_transaction)
    fence_producer = _waiting(admin.Admin.fence_producer)
    describe_producers = _waiting(admin.Admin.describe_producers)
    abort_in_partition = _waiting(admin.Admin.abort_in_partition)
    describe_users = _waiting(admin.Admin.describe_users)
    set_password = _waiting(admin.Admin.set_password)
    remove_user = _waiting(admin.Admin.remove_user)
    describe_quotas = _waiting(admin.Admin.describe_quotas)
    alter_quotas = _waiting(admin.Admin.alter_quotas)
    alter_reassignments = _waiting(admin.Admin.alter_reassignments)
    list_reassignments = _waiting(admin.Admin.list_reassignments)
    elect_leaders = _waiting(admin.Admin.elect_leaders)
    move_replicas = _waiting(admin.Admin.move_replicas)
    describe_quorum = _waiting(admin.Admin.describe_quorum)
    add_voter = _waiting(admin.Admin.add_voter)
    remove_voter = _waiting(admin.Admin.remove_voter)
    unregister_broker = _waiting(admin.Admin.unregister_broker)
    describe_features = _waiting(admin.Admin.describe_features)
    update_features = _waiting(admin.Admin.update_features)
    describe_acls = _waiting(admin.Admin.describe_acls)
    create_acls = _waiting(admin.Admin.create_acls)
    delete_acls = _waiting(admin.Admin.delete_acls)
