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

    def _follow(self) -> None:
        entries = self._security().acls
        if entries is not self._seen:
            self._seen = entries
            rules = (Rule(*entry) for entry in entries.values())
            self._rules = Rules(rules, is_open_without_rules=self._is_open_without_rules)
            self._decisions.clear()


class Asker:
    """Who sends a request, and from where."""

    __slots__ = ("_authorizer", "_host", "_principal")

    def __init__(self, authorizer: Authorizer, principal: str, host: str) -> None:
        self._authorizer = authorizer
        self._principal = principal
        self._host = host.removeprefix(IPV4_IN_IPV6)

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        return self._authorizer.may(self._principal, self._host, operation, kind, name)

    def may_cluster(self, operation: Operation) -> bool:
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_any(self, operation: Operation, kind: ResourceType) -> bool:
        return self._authorizer.may_any(self._principal, self._host, operation, kind)
