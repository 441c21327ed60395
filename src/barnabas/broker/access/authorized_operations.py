"""What somebody may do to a resource, as the bit field in which answers tell it to those who ask.

Metadata, DescribeCluster, DescribeTopicPartitions and the descriptions of groups have such a field. Without an
authorizer everybody may do everything. Whether a request may be served at all is decided in ``authorize``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.broker.requests.request import Request
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType

# Which operations there are on a resource of each type.
OPERATIONS: Final[Mapping[ResourceType, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}


def authorized_operations(request: Request, kind: ResourceType, name: str) -> int:
    asker = request.asker
    return sum(1 << operation for operation in OPERATIONS[kind] if asker is None or asker.may(operation, kind, name))


def cluster_operations(request: Request) -> int:
    """Nothing at all for those who may not describe the cluster."""
    if request.asker is not None and not request.asker.may_cluster(Operation.DESCRIBE):
        return 0
    return authorized_operations(request, ResourceType.CLUSTER, CLUSTER_NAME)
