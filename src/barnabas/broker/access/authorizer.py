"""The one who is asked whether somebody may do something: the rules in force, the super users, and recent decisions.

A broker has one if ``authorizer.class.name`` says so, and none else. The rules follow the metadata; what an API needs
is in ``authorize``, and what rules mean in ``barnabas.security.acl``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from barnabas.metadata.security_image import SecurityImage
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType, Rule, Rules

DECISIONS_MAX: Final = 10_000
DENIED_MAX: Final = 100  # of one request; more would only be counted
IPV4_IN_IPV6: Final = "::ffff:"


class Authorizer:
    def __init__(
        self, security: Callable[[], SecurityImage], *, super_users: Iterable[str], is_open_without_rules: bool
    ) -> None:
        self._security = security
        self._super_users = frozenset(super_users)
        self._is_open_without_rules = is_open_without_rules
        self._seen: Any = None  # the entries from which the rules were made
        self._rules = Rules(())
        self._decisions: dict[tuple[str, str, int, int, str], bool] = {}
        self._told: set[tuple[str, str, str]] = set()

    def may(self, principal: str, host: str, operation: int, kind: int, name: str) -> bool:
        if principal in self._super_users:
            return True
        self._follow()
        key = (principal, host, operation, kind, name)
        decision = self._decisions.get(key)
        if decision is None:
            if len(self._decisions) >= DECISIONS_MAX:
                self._decisions.clear()
            decision = self._decisions[key] = self._rules.allow(*key)
        return decision

    def may_any(self, principal: str, host: str, operation: int, kind: int) -> bool:
        if principal in self._super_users:
            return True
        self._follow()
        return self._rules.allow_any(principal, host, operation, kind)

    def is_news(self, refusal: tuple[str, str, str]) -> bool:
        if refusal in self._told:
            return False
        if len(self._told) >= DECISIONS_MAX:
            self._told.clear()
        self._told.add(refusal)
        return True

    def _follow(self) -> None:
        entries = self._security().acls
        if entries is not self._seen:
            self._seen = entries
            rules = (Rule(*entry) for entry in entries.values())
            self._rules = Rules(rules, is_open_without_rules=self._is_open_without_rules)
            self._decisions.clear()
            self._told.clear()


class Asker:
    """Who sends a request, and from where."""

    __slots__ = ("_authorizer", "denied", "host", "principal")

    def __init__(self, authorizer: Authorizer, principal: str, host: str) -> None:
        self._authorizer = authorizer
        self.principal = principal
        self.host = host.removeprefix(IPV4_IN_IPV6)
        self.denied: list[tuple[Operation, ResourceType, str]] = []  # what was asked for and is not theirs

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        return self.may_one_of((operation, kind, name))

    def may_describe(self, topic: str) -> bool:
        """Whether a topic shows in a list. That it does not is no refusal, so the audit log does not have it."""
        return self._authorizer.may(self.principal, self.host, Operation.DESCRIBE, ResourceType.TOPIC, topic)

    def may_cluster(self, *any_of: Operation) -> bool:
        return self.may_one_of(*((operation, ResourceType.CLUSTER, CLUSTER_NAME) for operation in any_of))

    def may_any(self, operation: Operation, kind: ResourceType) -> bool:
        return self._authorizer.may_any(self.principal, self.host, operation, kind)

    def is_first_refusal(self, name: str) -> bool:
        """Whether this one has not been refused this before, since the rules last changed."""
        return self._authorizer.is_news((self.principal, self.host, name))

    def may_one_of(self, *rights: tuple[Operation, ResourceType, str]) -> bool:
        """Whether one of these rights is there; what is denied is remembered only if none is."""
        for operation, kind, name in rights:
            if self._authorizer.may(self.principal, self.host, operation, kind, name):
                return True
        if len(self.denied) < DENIED_MAX:
            self.denied += rights
        return False
