"""Who may do what, as the admin client sees it: the rules of the cluster, new ones, and those that are gone.

What a rule means is in ``barnabas.security.acl``, whose :class:`Rule` and :class:`Filter` are used here as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.client.admin.calls import AdminCalls, problem
from barnabas.model.errors import ApiError
from barnabas.security.acl import Filter, Operation, PatternType, Permission, ResourceType, Rule
from barnabas.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from barnabas.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from barnabas.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

EVERY_RULE: Final = Filter(ResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY)


class AclAdmin(AdminCalls):
    async def describe_acls(self, wanted: Filter = EVERY_RULE) -> list[Rule]:
        """The rules that match, sorted."""
        request = DescribeAclsRequest(
            resource_type_filter=wanted.resource_type,
            resource_name_filter=wanted.resource_name,
            pattern_type_filter=wanted.pattern_type,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission_type,
        )
        answer = await self._broker(None, request, DescribeAclsResponse)
        error = problem(answer.error_code, answer.error_message, about="rules")
        if error is not None:
            raise error
        return sorted(
            Rule(
                resource.resource_type,
                resource.resource_name,
                resource.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for resource in answer.resources
            for acl in resource.acls
        )

    async def create_acls(self, rules: Iterable[Rule]) -> dict[Rule, ApiError | None]:
        """Each rule is made or refused by itself; one that exists is no error."""
        rules = list(dict.fromkeys(rules))
        request = CreateAclsRequest(
            creations=[
                CreateAclsRequest.AclCreation(
                    resource_type=rule.resource_type,
                    resource_name=rule.resource_name,
                    resource_pattern_type=rule.pattern_type,
                    principal=rule.principal,
                    host=rule.host,
                    operation=rule.operation,
                    permission_type=rule.permission_type,
                )
                for rule in rules
            ]
        )
        answer = await self._controller(request, CreateAclsResponse)
        return {
            rule: problem(result.error_code, result.error_message, about=rule.resource_name)
            for rule, result in zip(rules, answer.results, strict=True)
        }

    async def delete_acls(self, filters: Iterable[Filter]) -> dict[Filter, list[Rule] | ApiError]:
        """The rules that each filter removed, or why it could not."""
        filters = list(dict.fromkeys(filters))
        request = DeleteAclsRequest(
            filters=[
                DeleteAclsRequest.DeleteAclsFilter(
                    resource_type_filter=each.resource_type,
                    resource_name_filter=each.resource_name,
                    pattern_type_filter=each.pattern_type,
                    principal_filter=each.principal,
                    host_filter=each.host,
                    operation=each.operation,
                    permission_type=each.permission_type,
                )
                for each in filters
            ]
        )
        answer = await self._controller(request, DeleteAclsResponse)
        return {each: _removed(result) for each, result in zip(filters, answer.filter_results, strict=True)}


def _removed(result: DeleteAclsResponse.DeleteAclsFilterResult) -> list[Rule] | ApiError:
    error = problem(result.error_code, result.error_message, about="rules")
    for acl in result.matching_acls:
        error = error or problem(acl.error_code, acl.error_message, about=acl.resource_name)
    if error is not None:
        return error
    return sorted(
        Rule(
            acl.resource_type,
            acl.resource_name,
            acl.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for acl in result.matching_acls
    )
