"""Rules of access as people write them: names for operations, resources and patterns, and templates for usual needs.

Pure: words in, rules out. ``barnabas acl`` and the stand-in for Kafka's own command both make their rules here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from barnabas.ops.failure import Failure
from barnabas.security.acl import CLUSTER_NAME, WILDCARD, Operation, PatternType, Permission, ResourceType, Rule

# On the command line: the option that names a resource, and what it is.
RESOURCES: Final[Mapping[str, ResourceType]] = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.CLUSTER,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}
PATTERNS: Final = {"literal": PatternType.LITERAL, "prefixed": PatternType.PREFIXED}
OPERATIONS: Final = tuple(operation for operation in Operation if operation is not Operation.ANY)
# What a program of each sort needs, by the resources that it names.
TEMPLATES: Final[Mapping[str, Mapping[ResourceType, tuple[Operation, ...]]]] = {
    "producer": {
        ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
        ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
    },
    "consumer": {
        ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
        ResourceType.GROUP: (Operation.READ,),
    },
    # With --pattern prefixed and the id of the application, for the topics that it makes for itself.
    "streams": {
        ResourceType.TOPIC: (
            Operation.READ,
            Operation.WRITE,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.CREATE,
            Operation.DELETE,
        ),
        ResourceType.GROUP: (Operation.READ, Operation.DESCRIBE, Operation.DELETE),
        ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
    },
    "admin": {
        ResourceType.TOPIC: (Operation.ALL,),
        ResourceType.GROUP: (Operation.ALL,),
        ResourceType.CLUSTER: (Operation.ALL,),
        ResourceType.TRANSACTIONAL_ID: (Operation.ALL,),
    },
}


class Resource(NamedTuple):
    type: ResourceType
    name: str


def operation_of(text: str) -> Operation:
    """However it is spelt: DescribeConfigs, describe-configs, DESCRIBE_CONFIGS."""
    wanted = text.replace("-", "").replace("_", "").lower()
    for operation in OPERATIONS:
        if operation.name.replace("_", "").lower() == wanted:
            return operation
    known = ", ".join(name_of(operation) for operation in OPERATIONS)
    raise Failure(f"there is no operation {text!r}; say one of {known}")


def name_of(member: Operation | ResourceType | PatternType | Permission) -> str:
    return member.name.lower().replace("_", "-")


def principal_of(text: str) -> str:
    """A user may be named without saying that it is one."""
    return text if ":" in text else f"User:{text}"


def rules(
    resources: Iterable[Resource],
    operations: Mapping[ResourceType, Iterable[Operation]],
    *,
    principals: Iterable[str],
    hosts: Iterable[str],
    pattern: PatternType,
    permission: Permission,
) -> Iterator[Rule]:
    """Every principal, host and operation for every resource; a type without operations has no rule."""
    hosts = list(hosts) or [WILDCARD]
    for principal in principals:
        for resource in resources:
            for operation in operations.get(resource.type, ()):
                # The cluster is one thing: there is nothing that its name could begin with.
                kind = PatternType.LITERAL if resource.type is ResourceType.CLUSTER else pattern
                for host in hosts:
                    yield Rule(resource.type, resource.name, kind, principal, host, operation, permission)


def cluster() -> Resource:
    return Resource(ResourceType.CLUSTER, CLUSTER_NAME)


def row_of(rule: Rule) -> dict[str, str]:
    """A rule in words."""
    return {
        "principal": rule.principal,
        "host": rule.host,
        "permission": _word(Permission, rule.permission_type),
        "operation": _word(Operation, rule.operation),
        "resource": _word(ResourceType, rule.resource_type),
        "name": rule.resource_name,
        "pattern": _word(PatternType, rule.pattern_type),
    }


def _word(kind: type[Operation | ResourceType | PatternType | Permission], number: int) -> str:
    return name_of(kind(number)) if number in kind._value2member_map_ else str(number)
