"""A request on a broker that has an authorizer: it knows who asks.

Rules take the rows of a request that may not be served out of it before the handler sees it, and what they add with
``when_answered`` puts the refusals into the answer, whenever that is given. Brokers without an authorizer never make
one of these.
"""

from __future__ import annotations

from barnabas.broker.access.authorizer import Asker
from barnabas.broker.requests.amended_request import AmendedRequest
from barnabas.broker.requests.services import Services
from barnabas.metadata.image import ClusterImage
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed, WireError
from barnabas.security.acl import Operation, ResourceType
from barnabas.security.principal import ANONYMOUS, USER, NoRuleMatches, Principal, distinguished_name
from barnabas.transport.connection import Connection
from barnabas.wire.frame import RequestHeader

ERRORS: dict[int, WireError] = {
    ResourceType.TOPIC: errors.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: errors.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: errors.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


class GuardedRequest(AmendedRequest):
    __slots__ = ("asker",)

    def __init__(self, broker: Services, connection: Connection, header: RequestHeader) -> None:
        super().__init__(broker, connection, header)
        assert broker.authorizer is not None
        self.asker: Asker = Asker(broker.authorizer, str(principal_of(broker, connection)), connection.peer[0])

    @property
    def image(self) -> ClusterImage:
        return self.broker.image

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
