"""Who may do what to which resource: rules as Kafka has them, and the decision that follows from them.

A rule is about one resource by its name, about all that begin with a prefix, or (the literal name ``*``) about all of a
kind. A denial beats every permission; without a permission the answer is no. Who is asking and which operation an API
needs is decided elsewhere (``barnabas.broker.access.permissions``); rules are kept in the metadata log.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

WILDCARD: Final = "*"
EVERYONE: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"


class ResourceType(enum.IntEnum):
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(enum.IntEnum):
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class PatternType(enum.IntEnum):
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(enum.IntEnum):
    ANY = 1
    DENY = 2
    ALLOW = 3


# Whoever may do one of these may do the first too.
_IMPLYING: Final = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}


class Rule(NamedTuple):
    """Numbers as the wire and the metadata log have them."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def is_about(self, principal: str, host: str) -> bool:
        return self.principal in (principal, EVERYONE) and self.host in (host, WILDCARD)

    def denies(self, operation: int) -> bool:
        return self.permission_type == Permission.DENY and self.operation in (operation, Operation.ALL)

    def allows(self, operation: int) -> bool:
        return self.permission_type == Permission.ALLOW and (
            self.operation in (operation, Operation.ALL) or self.operation in _IMPLYING.get(operation, ())  # type: ignore[call-overload]
        )


class Filter(NamedTuple):
    """What rules are asked for or removed; None and ANY match everything."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    @property
    def is_known(self) -> bool:
        return (
            self.resource_type in ResourceType._value2member_map_
            and self.pattern_type in PatternType._value2member_map_
            and self.operation in Operation._value2member_map_
            and self.permission_type in Permission._value2member_map_
        )

    def matches(self, rule: Rule) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, rule.resource_type)
            and self._matches_name(rule)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (Operation.ANY, rule.operation)
            and self.permission_type in (Permission.ANY, rule.permission_type)
        )

    def _matches_name(self, rule: Rule) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, rule.pattern_type):
            return False
        name = self.resource_name
        if name is None:
            return True
        if self.pattern_type != PatternType.MATCH:
            return name == rule.resource_name
        if rule.pattern_type == PatternType.PREFIXED:
            return name.startswith(rule.resource_name)
        return rule.resource_name in (name, WILDCARD)


class Rules:
    """All rules of a cluster at one moment, arranged so that a decision looks only at those that apply."""

    def __init__(self, rules: Iterable[Rule], *, is_open_without_rules: bool = False) -> None:
        self._is_open_without_rules = is_open_without_rules
        self._literal: dict[tuple[int, str], list[Rule]] = {}
        self._prefixed: dict[tuple[int, str], list[Rule]] = {}
        lengths: dict[int, set[int]] = {}
        for rule in rules:
            key = (rule.resource_type, rule.resource_name)
            if rule.pattern_type == PatternType.PREFIXED:
                self._prefixed.setdefault(key, []).append(rule)
                lengths.setdefault(rule.resource_type, set()).add(len(rule.resource_name))
            else:
                self._literal.setdefault(key, []).append(rule)
        self._lengths = {kind: sorted(found) for kind, found in lengths.items()}

    def about(self, kind: int, name: str) -> Iterator[Rule]:
        """The rules whose resource this is."""
        yield from self._literal.get((kind, name), ())
        if name != WILDCARD:
            yield from self._literal.get((kind, WILDCARD), ())
        for length in self._lengths.get(kind, ()):
            if length > len(name):
                break
            yield from self._prefixed.get((kind, name[:length]), ())

    def allow(self, principal: str, host: str, operation: int, kind: int, name: str) -> bool:
        is_allowed = has_rules = False
        for rule in self.about(kind, name):
            has_rules = True
            if rule.is_about(principal, host):
                if rule.denies(operation):
                    return False
                is_allowed = is_allowed or rule.allows(operation)
        return is_allowed or (self._is_open_without_rules and not has_rules)

    def allow_any(self, principal: str, host: str, operation: int, kind: int) -> bool:
        """Whether there could be a resource of the kind to which this may be done."""
        mine = [
            rule
            for rules in (*self._literal.values(), *self._prefixed.values())
            for rule in rules
            if rule.resource_type == kind and rule.is_about(principal, host)
        ]
        denied = [rule for rule in mine if rule.denies(operation)]
        if any(_covers_all(rule) for rule in denied):
            return False
        if self._is_open_without_rules and (kind, WILDCARD) not in self._literal:
            return True
        return any(
            rule.allows(operation) and (_covers_all(rule) or not any(_covers(no, rule) for no in denied))
            for rule in mine
        )


def _covers_all(rule: Rule) -> bool:
    return rule.pattern_type == PatternType.LITERAL and rule.resource_name == WILDCARD


def _covers(outer: Rule, inner: Rule) -> bool:
    """Whether every resource that the inner rule is about is one of the outer's."""
    if outer.pattern_type == PatternType.PREFIXED:
        return inner.resource_name.startswith(outer.resource_name)
    return inner.pattern_type == PatternType.LITERAL and inner.resource_name == outer.resource_name
