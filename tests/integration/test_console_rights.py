"""Users, ACLs and quotas through the console, against a broker with an authorizer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from console_clients import browser, console

from barnabas.testing import Broker

AT = "/clusters/local"


@pytest.fixture(scope="module")
def authorized() -> Iterator[Broker]:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with Broker(settings=settings) as running:
        yield running


def test_users_are_made_and_deleted_and_passwords_are_never_shown(authorized: Broker) -> None:
    async def run() -> None:
        async with console(authorized.bootstrap_servers) as url, browser(url) as client:
            assert (await client.get(f"{AT}/users")).json() == {"users": []}
            user = {"name": "ann", "password": "hush-hush"}
            assert (await client.put(f"{AT}/users", json=user)).status_code == 200
            answer = await client.get(f"{AT}/users")
            assert [row["user"] for row in answer.json()["users"]] == ["ann"]
            assert "hush" not in answer.text
            assert (await client.put(f"{AT}/users", json={"name": "bob", "password": ""})).status_code == 400
            assert (await client.delete(f"{AT}/users/ann")).status_code == 200
            assert (await client.delete(f"{AT}/users/ann")).status_code == 404

    asyncio.run(run())


def test_acls_come_from_templates_explain_what_a_user_may_do_and_go(authorized: Broker) -> None:
    async def run() -> None:
        async with console(authorized.bootstrap_servers) as url, browser(url) as client:
            for name in ("orders", "orders.eu", "secrets"):
                await client.post(f"{AT}/topics", json={"name": name, "partitions": 1})
            rules = {"principal": "ann", "template": "consumer", "topics": ["orders"], "pattern": "prefixed"}
            created = (await client.post(f"{AT}/acls", json=rules)).json()["created"]
            assert {row["operation"] for row in created} == {"read", "describe"}
            may = (await client.get(f"{AT}/access/ann")).json()["rows"]
            assert [(row["name"], row["operations"]) for row in may] == [
                ("orders", ["read", "describe"]),
                ("orders.eu", ["read", "describe"]),
            ]
            listed = (await client.get(f"{AT}/acls")).json()["rules"]
            assert len(listed) == 2
            for rule in listed:
                assert (await client.post(f"{AT}/acls/delete", json=rule)).json() == {"deleted": 1}
            assert (await client.get(f"{AT}/access/ann")).json()["rows"] == []
            assert (await client.post(f"{AT}/acls", json={"principal": "ann"})).status_code == 400
            assert (await client.post(f"{AT}/acls", json={**rules, "template": "king"})).status_code == 400

    asyncio.run(run())


def test_quotas_are_set_and_removed(authorized: Broker) -> None:
    async def run() -> None:
        async with console(authorized.bootstrap_servers) as url, browser(url) as client:
            change = {"entity": {"user": "ann"}, "limits": {"producer_byte_rate": 1000.0}}
            assert (await client.put(f"{AT}/quotas", json=change)).status_code == 200
            assert (await client.get(f"{AT}/quotas")).json()["quotas"] == [change]
            await client.put(f"{AT}/quotas", json={**change, "limits": {"producer_byte_rate": None}})
            assert (await client.get(f"{AT}/quotas")).json()["quotas"] == []

    asyncio.run(run())


def test_a_cluster_without_an_authorizer_says_so(shared_broker: Broker) -> None:
    async def run() -> None:
        async with console(shared_broker.bootstrap_servers) as url, browser(url) as client:
            assert (await client.get(f"{AT}/acls")).json()["enabled"] is False

    asyncio.run(run())
