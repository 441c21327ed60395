"""CreateAcls, DeleteAcls and DescribeAcls: the rules of who may do what, one by one in the metadata log.

What a rule means is ``security.acl``'s; whether anyone asks for the rules at all is the broker's (its authorizer).
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.metadata.decision import RECORDS_MAX, Decision
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from barnabas.metadata.security_image import SecurityImage
from barnabas.model.errors import INVALID_REQUEST, POLICY_VIOLATION, ApiError
from barnabas.model.ids import Uuid
from barnabas.security.acl import CLUSTER_NAME, Filter, Operation, PatternType, Permission, ResourceType, Rule
from barnabas.wire.message import Message
from barnabas.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from barnabas.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from barnabas.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

_KINDS = frozenset(ResourceType) - {ResourceType.ANY}
_OPERATIONS = frozenset(Operation) - {Operation.ANY}


def create_acls(
    image: ClusterImage, request: CreateAclsRequest, *, ids: Iterator[Uuid]
) -> Decision[CreateAclsResponse]:
    """Each rule succeeds or fails alone; one that exists already is a success without a record."""
    existing = {Rule(*entry) for entry in image.security.acls.values()}
    records: list[Message] = []
    response = CreateAclsResponse()
    for creation in request.creations:
        row = CreateAclsResponse.AclCreationResult(error_message=None)
        response.results.append(row)
        rule = Rule(
            creation.resource_type,
            creation.resource_name,
            creation.resource_pattern_type,
            creation.principal,
            creation.host,
            creation.operation,
            creation.permission_type,
        )
        try:
            _check_new(rule)
            if rule not in existing:
                _check_count(len(records) + 1)
                existing.add(rule)
                entry_id = next(one for one in ids if one not in image.security.acls)
                records.append(AccessControlEntryRecord(id=entry_id, **rule._asdict()))
        except ApiError as error:
            row.error_code, row.error_message = error.error.code, error.message
    return Decision(records, response)


def delete_acls(image: ClusterImage, request: DeleteAclsRequest) -> Decision[DeleteAclsResponse]:
    """Every rule that a filter matches is removed and told; one that two filters match is told twice."""
    removed: dict[Uuid, Message] = {}
    response = DeleteAclsResponse()
    for asked in request.filters:
        result = DeleteAclsResponse.DeleteAclsFilterResult(error_message=None)
        response.filter_results.append(result)
        try:
            found = _found(image.security, _filter(asked))
            _check_count(len(removed.keys() | {entry_id for entry_id, _ in found}))
        except ApiError as error:
            result.error_code, result.error_message = error.error.code, error.message
            continue
        for entry_id, rule in found:
            removed[entry_id] = RemoveAccessControlEntryRecord(id=entry_id)
            result.matching_acls.append(DeleteAclsResponse.DeleteAclsMatchingAcl(error_message=None, **rule._asdict()))
    return Decision(list(removed.values()), response)


def describe_acls(security: SecurityImage, request: DescribeAclsRequest) -> DescribeAclsResponse:
    resources: dict[tuple[int, str, int], list[DescribeAclsResponse.AclDescription]] = {}
    for _, rule in _found(security, _filter(request)):
        resources.setdefault(rule[:3], []).append(
            DescribeAclsResponse.AclDescription(
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation,
                permission_type=rule.permission_type,
            )
        )
    return DescribeAclsResponse(
        error_message=None,
        resources=[
            DescribeAclsResponse.DescribeAclsResource(
                resource_type=kind, resource_name=name, pattern_type=pattern, acls=acls
            )
            for (kind, name, pattern), acls in resources.items()
        ],
    )


def _filter(asked: DeleteAclsRequest.DeleteAclsFilter | DescribeAclsRequest) -> Filter:
    return Filter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )


def _found(security: SecurityImage, wanted: Filter) -> list[tuple[Uuid, Rule]]:
    if not wanted.is_known:
        raise ApiError(INVALID_REQUEST, "the filter has a type, an operation or a permission that is not known")
    rules = ((entry_id, Rule(*entry)) for entry_id, entry in security.acls.items())
    return sorted((pair for pair in rules if wanted.matches(pair[1])), key=lambda pair: (pair[1], pair[0]))


def _check_new(rule: Rule) -> None:
    if rule.resource_type not in _KINDS:
        raise ApiError(INVALID_REQUEST, f"no rule can be for resources of type {rule.resource_type}")
    if rule.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise ApiError(INVALID_REQUEST, f"a rule is literal (3) or prefixed (4), not {rule.pattern_type}")
    if rule.operation not in _OPERATIONS:
        raise ApiError(INVALID_REQUEST, f"{rule.operation} is no operation that a rule can be about")
    if rule.permission_type not in (Permission.DENY, Permission.ALLOW):
        raise ApiError(INVALID_REQUEST, f"a rule denies (2) or allows (3), not {rule.permission_type}")
    if not rule.resource_name:
        raise ApiError(INVALID_REQUEST, "a rule names its resource; * means all of them")
    if rule.resource_type == ResourceType.CLUSTER and rule.resource_name != CLUSTER_NAME:
        raise ApiError(INVALID_REQUEST, f"the cluster is called {CLUSTER_NAME} in a rule, not {rule.resource_name}")
    kind, colon, _ = rule.principal.partition(":")
    if not (kind and colon):
        raise ApiError(INVALID_REQUEST, f"the principal {rule.principal!r} has no type: say User:<name>")


def _check_count(count: int) -> None:
    if count > RECORDS_MAX:
        raise ApiError(POLICY_VIOLATION, f"one request may change {RECORDS_MAX} rules, not {count}: ask in parts")
