"""What the admin client does with a cluster of three: voters, features, brokers that are gone, rules.

What one broker is enough for, and Apache Kafka has to answer as well, is in `test_client_admin.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from waiting import until_async

from barnabas import Admin, ApiError, NewTopic, Settings, TopicPartition
from barnabas.client.admin.quorum import VoterEnd
from barnabas.model import errors
from barnabas.security.acl import Filter, Operation, PatternType, Permission, ResourceType, Rule
from barnabas.testing import Broker, Cluster

SECONDS_MAX = 90.0
LISTENER = "CONTROLLER"


def run(servers: str, work: Callable[[Admin], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            async with Admin(Settings(bootstrap_servers=tuple(servers.split(",")))) as admin:
                await work(admin)

    asyncio.run(bounded())


def test_voters_come_and_go_and_a_broker_is_forgotten(tmp_path: Path) -> None:
    settings = {
        "controller.quorum.auto.join.enable": "false",
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "300",
    }
    with Cluster(tmp_path / "cluster", settings=settings) as cluster:

        async def work(admin: Admin) -> None:
            async def voters() -> set[int]:
                return {voter.id for voter in (await admin.describe_quorum()).voters}

            async def are_watching() -> bool:
                return {each.id for each in (await admin.describe_quorum()).observers} >= {2, 3}

            assert await voters() == {1}
            await until_async(are_watching)
            known = {each.id: each.directory_id for each in (await admin.describe_quorum()).observers}
            for number in (2, 3):
                address = cluster.addresses[number]
                end = VoterEnd(LISTENER, address.host, address.controller_port)
                await admin.add_voter(number, known[number], [end])
            assert await voters() == {1, 2, 3}
            with pytest.raises(ApiError) as twice:
                await admin.add_voter(3, known[3], [end])
            assert twice.value.error is errors.DUPLICATE_VOTER
            await admin.remove_voter(3, known[3])
            assert await voters() == {1, 2}
            with pytest.raises(ApiError) as unknown:
                await admin.remove_voter(3, known[3])
            assert unknown.value.error is errors.VOTER_NOT_FOUND

            cluster.kill(3)

            async def is_fenced() -> bool:
                return 3 in (await admin.describe_cluster()).fenced

            await until_async(is_fenced)
            await admin.unregister_broker(3)
            with pytest.raises(ApiError) as gone:
                await admin.unregister_broker(3)
            assert gone.value.error is errors.BROKER_ID_NOT_REGISTERED

        run(cluster.bootstrap_servers, work)


def test_replicas_move_between_brokers(tmp_path: Path) -> None:
    place = TopicPartition("orders", 0)
    with Cluster(tmp_path / "cluster") as cluster:

        async def work(admin: Admin) -> None:
            await admin.create_topic(NewTopic("orders", partition_count=1, assignments={0: [1]}))
            assert await admin.alter_reassignments({place: [2, 3]}) == {place: None}

            async def is_moved() -> bool:
                topic = (await admin.describe_topics(["orders"]))["orders"]
                return topic.partitions[0].replicas == (2, 3)  # type: ignore[union-attr]

            await until_async(is_moved)
            assert await admin.list_reassignments([place]) == {}
            assert await admin.alter_reassignments({place: [3, 2]}) == {place: None}
            elected = await admin.elect_leaders([place])
            assert elected[place] is None or elected[place].error is errors.ELECTION_NOT_NEEDED
            refused = await admin.alter_reassignments({place: [9]})
            assert refused[place] is not None
            unclean = await admin.elect_leaders([place], kind="unclean")
            assert unclean[place] is not None  # it has a leader

        run(cluster.bootstrap_servers, work)


def test_features_are_raised_and_lowered() -> None:
    feature = "eligible.leader.replicas.version"

    async def work(admin: Admin) -> None:
        before = await admin.describe_features()
        assert before.finalized[feature] == 1
        assert before.supported[feature][1] >= 1
        assert await admin.update_features({feature: 0}, how="safe_downgrade", validate_only=True) == {feature: None}
        assert (await admin.describe_features()).finalized[feature] == 1
        assert await admin.update_features({feature: 0}, how="safe_downgrade") == {feature: None}
        assert (await admin.describe_features()).finalized.get(feature, 0) == 0
        assert await admin.update_features({feature: 1}) == {feature: None}
        assert (await admin.describe_features()).finalized[feature] == 1
        with pytest.raises(ApiError):
            await admin.update_features({"no.such.feature": 1})

    with Broker() as broker:
        run(broker.bootstrap_servers, work)


def test_rules_are_made_found_and_taken_away() -> None:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    rules = [
        Rule(ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:ada", "*", Operation.READ, Permission.ALLOW),
        Rule(ResourceType.GROUP, "orders-", PatternType.PREFIXED, "User:ada", "*", Operation.ALL, Permission.DENY),
    ]
    of_topic = Filter(ResourceType.TOPIC, "orders", PatternType.ANY, None, None, Operation.ANY, Permission.ANY)

    async def work(admin: Admin) -> None:
        assert await admin.create_acls(rules) == dict.fromkeys(rules)
        assert await admin.create_acls(rules[:1]) == {rules[0]: None}  # once more is no error
        assert await admin.describe_acls() == sorted(rules)
        assert await admin.describe_acls(of_topic) == rules[:1]
        assert await admin.delete_acls([of_topic]) == {of_topic: rules[:1]}
        assert await admin.describe_acls() == rules[1:]
        nameless = rules[0]._replace(resource_name="")
        assert isinstance((await admin.create_acls([nameless]))[nameless], ApiError)

    with Broker(settings=settings) as broker:
        run(broker.bootstrap_servers, work)
    with Broker() as open_to_all:

        async def refused(admin: Admin) -> None:
            with pytest.raises(ApiError) as caught:
                await admin.describe_acls()
            assert caught.value.error is errors.SECURITY_DISABLED

        run(open_to_all.bootstrap_servers, refused)
