"""Rules added and removed at random, through the controller's decisions, against a list that is searched naively."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.metadata.acls import create_acls, delete_acls, describe_acls
from barnabas.metadata.image import EMPTY
from barnabas.metadata.image_builder import ImageBuilder
from barnabas.model.ids import Uuid
from barnabas.security.acl import Filter, Operation, PatternType, Permission, ResourceType, Rule, Rules
from barnabas.wire.message import Message
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest

NAMES = ("a", "ab", "abc", "b")
PRINCIPALS = ("User:alice", "User:bob")
HOSTS = ("10.0.0.1", "10.0.0.2")
KINDS = (ResourceType.TOPIC, ResourceType.GROUP)
OPERATIONS = (Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS)

some_rules = st.builds(
    Rule,
    resource_type=st.sampled_from(KINDS),
    resource_name=st.sampled_from((*NAMES, "*")),
    pattern_type=st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
    principal=st.sampled_from((*PRINCIPALS, "User:*")),
    host=st.sampled_from((*HOSTS, "*")),
    operation=st.sampled_from((*OPERATIONS, Operation.ALL)),
    permission_type=st.sampled_from((Permission.ALLOW, Permission.DENY)),
)
some_filters = st.builds(
    Filter,
    resource_type=st.sampled_from((*KINDS, ResourceType.ANY)),
    resource_name=st.sampled_from((*NAMES, "*", None)),
    pattern_type=st.sampled_from(PatternType),
    principal=st.sampled_from((*PRINCIPALS, "User:*", None)),
    host=st.sampled_from((*HOSTS, "*", None)),
    operation=st.sampled_from((*OPERATIONS, Operation.ALL, Operation.ANY)),
    permission_type=st.sampled_from(Permission),
)


def applies(one: Rule, kind: int, name: str) -> bool:
    if one.resource_type != kind:
        return False
    if one.pattern_type == PatternType.PREFIXED:
        return name.startswith(one.resource_name)
    return one.resource_name in (name, "*")


def naive(rules: list[Rule], principal: str, host: str, operation: int, kind: int, name: str) -> bool:
    mine = [
        one
        for one in rules
        if applies(one, kind, name) and one.principal in (principal, "User:*") and one.host in (host, "*")
    ]
    enough = {operation, Operation.ALL}
    if any(one.permission_type == Permission.DENY and one.operation in enough for one in mine):
        return False
    if operation == Operation.DESCRIBE:
        enough |= {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    if operation == Operation.DESCRIBE_CONFIGS:
        enough |= {Operation.ALTER_CONFIGS}
    return any(one.permission_type == Permission.ALLOW and one.operation in enough for one in mine)


def naive_match(wanted: Filter, one: Rule) -> bool:
    same_type = wanted.resource_type in (1, one.resource_type)
    if wanted.pattern_type == PatternType.MATCH:
        same_name = wanted.resource_name is None or (
            wanted.resource_name.startswith(one.resource_name)
            if one.pattern_type == PatternType.PREFIXED
            else one.resource_name in (wanted.resource_name, "*")
        )
    else:
        same_name = wanted.pattern_type in (1, one.pattern_type) and wanted.resource_name in (None, one.resource_name)
    return (
        same_type
        and same_name
        and wanted.principal in (None, one.principal)
        and wanted.host in (None, one.host)
        and wanted.operation in (1, one.operation)
        and wanted.permission_type in (1, one.permission_type)
    )


class Cve202427309RulesAndNoOthersAreRemoved(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.image = EMPTY
        self.model: list[Rule] = []
        self.ids = (Uuid(number.to_bytes(16, "big")) for number in itertools.count(1))
        self.offset = 0

    def _write(self, records: list[Message]) -> None:
        builder = ImageBuilder(self.image)
        for record in records:
            self.offset += 1
            builder.apply(record, self.offset)
        self.image = builder.build(epoch=1)

    @rule(rules=st.lists(some_rules, min_size=1, max_size=4))
    def add(self, rules: list[Rule]) -> None:
        request = CreateAclsRequest(
            creations=[
                CreateAclsRequest.AclCreation(
                    **{key: value for key, value in one._asdict().items() if key != "pattern_type"},
                    resource_pattern_type=one.pattern_type,
                )
                for one in rules
            ]
        )
        decision = create_acls(self.image, request, ids=self.ids)
        assert all(row.error_code == 0 for row in decision.response.results)
        self._write(decision.records)
        self.model += [one for one in dict.fromkeys(rules) if one not in self.model]

    @rule(wanted=some_filters)
    def remove(self, wanted: Filter) -> None:
        request = DeleteAclsRequest(
            filters=[
                DeleteAclsRequest.DeleteAclsFilter(
                    resource_type_filter=wanted.resource_type,
                    resource_name_filter=wanted.resource_name,
                    pattern_type_filter=wanted.pattern_type,
                    principal_filter=wanted.principal,
                    host_filter=wanted.host,
                    operation=wanted.operation,
                    permission_type=wanted.permission_type,
                )
            ]
        )
        decision = delete_acls(self.image, request)
        self._write(decision.records)
        gone = [one for one in self.model if naive_match(wanted, one)]
        assert len(decision.response.filter_results[0].matching_acls) == len(gone)
        self.model = [one for one in self.model if one not in gone]

    @rule(wanted=some_filters)
    def describe(self, wanted: Filter) -> None:
        request = DescribeAclsRequest(
            resource_type_filter=wanted.resource_type,
            resource_name_filter=wanted.resource_name,
            pattern_type_filter=wanted.pattern_type,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission_type,
        )
        found = [
            Rule(row.resource_type, row.resource_name, row.pattern_type, acl.principal, acl.host, acl.operation,
                 acl.permission_type)
            for row in describe_acls(self.image.security, request).resources
            for acl in row.acls
        ]  # fmt: skip
        assert sorted(found) == sorted(one for one in self.model if naive_match(wanted, one))

    @invariant()
    def every_decision_is_that_of_the_list(self) -> None:
        rules = Rules(Rule(*entry) for entry in self.image.security.acls.values())
        for principal, host, operation, kind, name in itertools.product(PRINCIPALS, HOSTS, OPERATIONS, KINDS, NAMES):
            asked = (principal, host, int(operation), int(kind), name)
            assert rules.allow(*asked) == naive(self.model, *asked), (asked, self.model)


Cve202427309RulesAndNoOthersAreRemoved.TestCase.settings = settings(
    max_examples=40, stateful_step_count=12, deadline=None
)
test_cve_2024_27309_rules_and_no_others_are_removed = Cve202427309RulesAndNoOthersAreRemoved.TestCase


@settings(max_examples=60, deadline=None)
@given(rules=st.lists(some_rules, max_size=6))
def test_a_resource_that_may_be_written_to_is_never_overlooked(rules: list[Rule]) -> None:
    """Every name of up to four letters stands for all there could be."""
    found = Rules(rules)
    names = ["".join(letters) for size in range(1, 5) for letters in itertools.product("abcz", repeat=size)]
    for principal in PRINCIPALS:
        asked = (principal, HOSTS[0], int(Operation.WRITE), int(ResourceType.TOPIC))
        if any(found.allow(*asked, name) for name in names):
            assert found.allow_any(*asked), (principal, rules)
