"""The matrix of rights: each API against the table that Kafka publishes, by no rule, allow, deny, prefix, wildcard."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rights import FAILED, TOPIC, C, Granted, May, T, codes
from rights_table import FREE, IMPLIED, NEEDS, OTHER_WAYS, VERSIONS, requests
from talk import Talk, batch, produce_request

from barnabas.broker.requests.routes import ROUTES
from barnabas.security.acl import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages import request_of


def is_refused(talk: Talk, key: ApiKey) -> bool:
    return bool(codes(talk.ask(requests()[key], VERSIONS.get(key))) & FAILED)


def test_every_api_that_is_served_says_what_it_needs() -> None:
    assert set(ROUTES) == set(NEEDS) | FREE
    assert set(requests()) == set(NEEDS)


def check_rights(
    refused: Callable[[Talk], bool],
    alice: Talk,
    admin: Talk,
    grant: Granted,
    needs: list[tuple[Operation, ResourceType]],
    names: dict[ResourceType, str],
    denied: Operation | None = None,
) -> None:
    """No rule, each right alone, all of them, a denial, a prefix, a wildcard, another address, a super user."""
    assert not refused(admin)  # a super user
    assert refused(alice)  # no rule
    for left_out in needs:
        for operation, kind in needs:
            if (operation, kind) != left_out:
                grant(operation, kind)
        assert refused(alice)  # one is missing
        grant.nothing()
    for operation, kind in needs:
        grant(operation, kind, names.get(kind))
    assert not refused(alice)  # allowed
    grant(denied or needs[0][0], needs[0][1], names.get(needs[0][1]), permission=Permission.DENY)
    assert refused(alice)  # a denial beats it
    grant.nothing()
    for operation, kind in needs:
        pattern = PatternType.LITERAL if kind is C else PatternType.PREFIXED
        grant(operation, kind, CLUSTER_NAME if kind is C else "rights", pattern=pattern)
    assert not refused(alice)  # by a prefix
    grant.nothing()
    for _, kind in needs:
        grant(May.ALL, kind, CLUSTER_NAME if kind is C else "*", principal="User:*", host="127.0.0.1")
    assert not refused(alice)  # everybody everything, from here
    grant.nothing()
    for _, kind in needs:
        grant(May.ALL, kind, CLUSTER_NAME if kind is C else "*", host="10.0.0.1")
    assert refused(alice)  # from elsewhere


@pytest.mark.parametrize("key", NEEDS, ids=lambda key: key.name)
def test_an_api_needs_just_what_the_table_says(alice: Talk, admin: Talk, grant: Granted, key: ApiKey) -> None:
    names = {T: "rights-gone"} if key is ApiKey.DELETE_TOPICS else {}
    check_rights(lambda talk: is_refused(talk, key), alice, admin, grant, NEEDS[key], names)


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_an_api_needs_what_the_table_says_in_every_other_way(
    alice: Talk, admin: Talk, grant: Granted, way: str
) -> None:
    make, version, needs = OTHER_WAYS[way]
    denied = IMPLIED.get(way.partition(", by ")[0]) if ", by " in way else None
    refused = lambda talk: bool(codes(talk.ask(make(), version)) & FAILED)  # noqa: E731
    check_rights(refused, alice, admin, grant, needs, {}, denied)


@pytest.mark.parametrize("key", sorted(set(ROUTES) - {ApiKey.SASL_HANDSHAKE}), ids=lambda key: ApiKey(key).name)
def test_a_refusal_is_an_answer_in_every_version(alice: Talk, grant: Granted, key: int) -> None:
    for version in ROUTES[key].versions:
        if key == ApiKey.PRODUCE:
            alice.ask(produce_request(TOPIC, batch(b"x")), version)
        else:
            alice.ask(request_of(ApiKey(key))(), version)
    assert alice.is_open
