"""Permission checks for configs: which resource of the ACLs stands for a config resource of the request."""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.access.guarded_request import ERRORS, GuardedRequest
from barnabas.broker.access.permissions import split
from barnabas.broker.requests.api import Check, Refuse
from barnabas.metadata.configs_image import ResourceType as ConfigType
from barnabas.model.errors import ApiError, WireError
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.message import Message

_KINDS: Final = {
    ConfigType.TOPIC: ResourceType.TOPIC,
    ConfigType.BROKER: ResourceType.CLUSTER,
    ConfigType.BROKER_LOGGER: ResourceType.CLUSTER,
    ConfigType.CLIENT_METRICS: ResourceType.CLUSTER,
    ConfigType.GROUP: ResourceType.GROUP,
}


def denial(request: GuardedRequest, operation: Operation, row: Any) -> WireError | None:
    """The error for a config resource on which the operation is denied, None if it is allowed."""
    kind = _KINDS.get(row.resource_type)
    if kind is None:
        return None  # an unknown type of resource has no configs: the handler answers with an error
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else row.resource_name
    return None if request.asker.may(operation, kind, name) else ERRORS[kind]


def alter(refuse: Refuse, response: type[Message]) -> Check:
    """ALTER_CONFIGS on each resource; ``refuse`` makes the rows of the response for denied ones."""

    def needs(request: GuardedRequest, message: Any) -> Message | None:
        found = [(row, denial(request, Operation.ALTER_CONFIGS, row)) for row in message.resources]
        refused: list[Any] = []
        for row, error in found:
            if error is not None:
                rows: Any = refuse(type(message)(resources=[row]), ApiError(error))
                refused += rows.responses
        allowed = [row for row, error in found if error is None]
        return split(request, message, "resources", allowed, refused, response, "responses")

    return needs
