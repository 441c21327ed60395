"""The admin client: everything that can be asked of a cluster or changed in it.

What it can do is written noun by noun in the modules ``admin_…`` beside this one, which only joins them. Calls about
one thing raise what went wrong; calls about many answer with an error in place of a result.
"""

from __future__ import annotations

from typing import Self

from barnabas.client.admin.acls import AclAdmin
from barnabas.client.admin.brokers import BrokerAdmin
from barnabas.client.admin.configs import ConfigAdmin
from barnabas.client.admin.groups import GroupAdmin
from barnabas.client.admin.quorum import QuorumAdmin
from barnabas.client.admin.quotas import QuotaAdmin
from barnabas.client.admin.replicas import ReplicaAdmin
from barnabas.client.admin.topics import TopicAdmin
from barnabas.client.admin.transactions import TransactionAdmin
from barnabas.client.admin.users import UserAdmin
from barnabas.client.cluster.cluster import Cluster
from barnabas.client.settings.client import Settings, settled
from barnabas.world.world import World


class Admin(
    TopicAdmin,
    ConfigAdmin,
    BrokerAdmin,
    GroupAdmin,
    TransactionAdmin,
    UserAdmin,
    AclAdmin,
    QuotaAdmin,
    ReplicaAdmin,
    QuorumAdmin,
):
    def __init__(
        self, settings: Settings | None = None, *, cluster: Cluster | None = None, world: World | None = None
    ) -> None:
        super().__init__(cluster or Cluster(settled(Settings, settings), world=world))
        self._owns_cluster = cluster is None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._owns_cluster:
            await self.cluster.close()
