"""Users, ACLs and quotas: what there is, what a principal may do, and changes."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from barnabas.console.endpoint import Call, Endpoint, Parameter
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.ops import acl_rules
from barnabas.rest.errors import RestError
from barnabas.security.acl import Filter, Operation, PatternType, Permission, ResourceType, Rule, Rules
from barnabas.security.scram import MECHANISMS
from barnabas.world.real import real_world

ROWS_MAX: Final = 5000
PASSWORD_CHARACTERS_MIN: Final = 1
HOST: Final = "*"
_SHOWN: Final = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.DESCRIBE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (Operation.READ, Operation.DESCRIBE, Operation.DELETE),
}


class NewUser(msgspec.Struct):
    name: str
    password: str
    mechanism: Literal["SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"


class NewRules(msgspec.Struct):
    """A template, or operations; for topics, groups, transactional ids, and the cluster."""

    principal: str
    template: str | None = None  # producer, consumer, streams, admin
    operations: list[str] = []
    topics: list[str] = []
    groups: list[str] = []
    transactional_ids: list[str] = []
    cluster: bool = False
    pattern: Literal["literal", "prefixed"] = "literal"
    permission: Literal["allow", "deny"] = "allow"
    host: str = HOST


class RuleRow(msgspec.Struct):
    principal: str
    host: str
    permission: str
    operation: str
    resource: str
    name: str
    pattern: str


class QuotaChange(msgspec.Struct):
    """``entity`` names user, client-id or ip; null is the default. A limit of null is removed."""

    entity: dict[str, str | None]
    limits: dict[str, float | None]


async def list_users(call: Call) -> dict[str, Any]:
    return {"users": [entry._asdict() for entry in await call.view.admin.describe_users()]}


async def set_user(call: Call) -> dict[str, Any]:
    user = await call.body(NewUser)
    call.audited["name"] = user.name
    if not user.name or len(user.password) < PASSWORD_CHARACTERS_MIN:
        raise RestError(400, "give a user name and a password")
    world = real_world()
    try:
        await call.view.admin.set_password(world, user.name, user.password, MECHANISMS[user.mechanism])
    finally:
        await world.workers.close()
    return {}


async def delete_user(call: Call) -> dict[str, Any]:
    name = call.path("user")
    admin = call.view.admin
    has = [entry.mechanism for entry in await admin.describe_users() if entry.user == name]
    if not has:
        raise RestError(404, f"there is no user {name!r}")
    await admin.remove_user(name, [MECHANISMS[each] for each in has])
    return {}


async def list_acls(call: Call) -> dict[str, Any]:
    try:
        rules = await call.view.admin.describe_acls()
    except ApiError as error:
        if error.error is not errors.SECURITY_DISABLED:
            raise
        return {"enabled": False, "rules": [], "total": 0, "templates": []}
    return {
        "enabled": True,
        "rules": [acl_rules.row_of(rule) for rule in rules[:ROWS_MAX]],
        "total": len(rules),
        "templates": list(acl_rules.TEMPLATES),
    }


async def create_acls(call: Call) -> dict[str, Any]:
    given = await call.body(NewRules)
    call.audited["principal"] = given.principal
    if not given.principal:
        raise RestError(400, "give a principal, such as alice or User:alice")
    resources = [acl_rules.Resource(ResourceType.TOPIC, name) for name in given.topics]
    resources += [acl_rules.Resource(ResourceType.GROUP, name) for name in given.groups]
    resources += [acl_rules.Resource(ResourceType.TRANSACTIONAL_ID, name) for name in given.transactional_ids]
    if given.cluster:
        resources.append(acl_rules.cluster())
    operations: Any
    if given.template is not None:
        operations = acl_rules.TEMPLATES.get(given.template)
        if operations is None:
            raise RestError(400, f"there is no template {given.template!r}; there are {', '.join(acl_rules.TEMPLATES)}")
    else:
        chosen = [acl_rules.operation_of(text) for text in given.operations]
        operations = dict.fromkeys(ResourceType, chosen)
    rules = list(
        acl_rules.rules(
            resources,
            operations,
            principals=[acl_rules.principal_of(given.principal)],
            hosts=[given.host],
            pattern=acl_rules.PATTERNS[given.pattern],
            permission=Permission.ALLOW if given.permission == "allow" else Permission.DENY,
        )
    )
    if not rules:
        raise RestError(400, "no rule follows from this: name resources, and operations or a template for them")
    for outcome in (await call.view.admin.create_acls(rules)).values():
        if outcome is not None:
            raise outcome
    return {"created": [acl_rules.row_of(rule) for rule in rules]}


async def delete_acl(call: Call) -> dict[str, Any]:
    rule = _rule(await call.body(RuleRow))
    call.audited["rule"] = " ".join(map(str, rule))
    wanted = Filter(
        rule.resource_type,
        rule.resource_name,
        rule.pattern_type,
        rule.principal,
        rule.host,
        rule.operation,
        rule.permission_type,
    )
    outcome = (await call.view.admin.delete_acls([wanted]))[wanted]
    if isinstance(outcome, ApiError):
        raise outcome
    return {"deleted": len(outcome)}


def _rule(row: RuleRow) -> Rule:
    def member(kind: Any, text: str) -> int:
        try:
            return int(kind[text.upper().replace("-", "_")])
        except KeyError:
            raise RestError(400, f"there is no {text!r}") from None

    return Rule(
        member(ResourceType, row.resource),
        row.name,
        member(PatternType, row.pattern),
        row.principal,
        row.host,
        member(Operation, row.operation),
        member(Permission, row.permission),
    )


async def explain_access(call: Call) -> dict[str, Any]:
    """What a principal may do with each topic and group, by the rules that there are."""
    principal = acl_rules.principal_of(call.path("principal"))
    host = call.query("host", "127.0.0.1")
    rules = Rules(await call.view.admin.describe_acls())
    names = {
        ResourceType.TOPIC: [topic.name for topic in await call.view.topics.get()],
        ResourceType.GROUP: [group.group_id for group in await call.view.groups.get()],
    }
    rows = []
    for kind, shown in _SHOWN.items():
        for name in names[kind]:
            allowed = [
                acl_rules.name_of(operation)
                for operation in shown
                if rules.allow(principal, host, operation, kind, name)
            ]
            if allowed:
                rows.append({"resource": acl_rules.name_of(kind), "name": name, "operations": allowed})
    return {"principal": principal, "rows": rows[:ROWS_MAX], "total": len(rows)}


async def list_quotas(call: Call) -> dict[str, Any]:
    return {"quotas": [quota._asdict() for quota in await call.view.admin.describe_quotas()]}


async def alter_quota(call: Call) -> dict[str, Any]:
    change = await call.body(QuotaChange)
    call.audited["entity"] = change.entity
    if not change.entity or not change.limits:
        raise RestError(400, "name an entity (user, client-id or ip) and at least one limit")
    await call.view.admin.alter_quotas(change.entity, change.limits)
    return {}


_AT: Final = "/clusters/{cluster}"
ENDPOINTS: Final = (
    Endpoint("GET", f"{_AT}/users", list_users, "SCRAM users"),
    Endpoint("PUT", f"{_AT}/users", set_user, "Create a user, or give one a new password", body=NewUser),
    Endpoint("DELETE", f"{_AT}/users/{{user}}", delete_user, "Delete a user"),
    Endpoint("GET", f"{_AT}/acls", list_acls, "ACLs, and the templates for new ones"),
    Endpoint("POST", f"{_AT}/acls", create_acls, "Create ACLs from a template or operations", body=NewRules),
    Endpoint("POST", f"{_AT}/acls/delete", delete_acl, "Delete an ACL", body=RuleRow),
    Endpoint(
        "GET",
        f"{_AT}/access/{{principal}}",
        explain_access,
        "What a principal may do with each topic and group",
        parameters=(Parameter("host", "the address that it connects from"),),
    ),
    Endpoint("GET", f"{_AT}/quotas", list_quotas, "Client quotas"),
    Endpoint("PUT", f"{_AT}/quotas", alter_quota, "Change the quotas of an entity", body=QuotaChange),
)
