"""A request on a broker that has an authorizer: it knows who asks, and adds to the answer what was refused.

Rules take the rows of a request that may not be served out of it before the handler sees it; ``amend`` puts their
refusals into the answer, whenever that is given. Brokers without an authorizer never make one of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.broker.authorizer import Asker
from barnabas.broker.request import Request
from barnabas.broker.services import Services
from barnabas.metadata.image import ClusterImage
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed, WireError
from barnabas.security.acl import Operation, ResourceType
from barnabas.security.principal import ANONYMOUS, USER, NoRuleMatches, Principal, distinguished_name
from barnabas.transport.connection import Connection, Parts
from barnabas.wire.frame import RequestHeader
from barnabas.wire.message import Message

ERRORS: dict[int, WireError] = {
    ResourceType.TOPIC: errors.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: errors.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: errors.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


class GuardedRequest(Request):
    __slots__ = ("_amend", "asker")

    def __init__(self, broker: Services, connection: Connection, header: RequestHeader) -> None:
        super().__init__(broker, connection, header)
        assert broker.authorizer is not None
        self.asker: Asker = Asker(broker.authorizer, str(principal_of(broker, connection)), connection.peer[0])
        self._amend: list[Callable[[Any], None]] = []

    @property
    def image(self) -> ClusterImage:
        return self.broker.image

    def when_answered(self, amend: Callable[[Any], None]) -> None:
        """Change the answer of the handler before it leaves; those who come later change it later."""
        self._amend.append(amend)

    def encode(self, response: Message, version: int | None = None) -> Parts:
        amends, self._amend = self._amend, []
        for amend in amends:
            amend(response)
        return super().encode(response, version)

    def require(self, operation: Operation, kind: ResourceType, name: str) -> None:
        if not self.asker.may(operation, kind, name):
            raise ApiError(ERRORS[kind])

    def require_cluster(self, operation: Operation) -> None:
        if not self.asker.may_cluster(operation):
            raise ApiError(errors.CLUSTER_AUTHORIZATION_FAILED)


def principal_of(broker: Services, connection: Connection) -> Principal:
    """Whom the peer has proved to be: by signing in, by its certificate, or not at all."""
    known = connection.state
    if known is None:
        known = connection.state = Certified(broker, connection)
    principal: Principal | None = known.principal
    return ANONYMOUS if principal is None else principal


class Certified:
    """What is known of a peer on a listener without sign-in: what its certificate says, if it has shown one."""

    __slots__ = ("principal",)

    def __init__(self, broker: Services, connection: Connection) -> None:
        certificate = connection.peer_certificate
        self.principal: Principal | None = None
        if certificate is not None:
            rules = broker.settings.security.listeners[connection.listener_name].mapping_rules
            try:
                self.principal = Principal(USER, rules.name(distinguished_name(certificate["subject"])))
            except NoRuleMatches as error:
                raise Malformed(str(error)) from error
