"""Everything that the admin client can ask and change, against Barnabas or what ``BARNABAS_TEST_BOOTSTRAP`` names.

What a broker of that version does not offer is said so, with Kafka's own error; nothing hangs or fails otherwise.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas import Admin, ApiError, Consumer, ConsumerSettings, NewTopic, Producer, ProducerSettings, Settings
from barnabas import TopicPartition as Place
from barnabas.client.admin.configs import Change, Operation, Resource, ResourceKind
from barnabas.model import errors
from barnabas.model.errors import BarnabasError
from barnabas.security.scram import SHA_256
from barnabas.testing import Broker
from barnabas.world.real import real_world

SECONDS_MAX = 60.0
VERSION = os.environ.get("BARNABAS_TEST_VERSION", "")


def run(broker: Broker, work: Callable[[Admin], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            async with Admin(Settings(bootstrap_servers=(broker.bootstrap_servers,))) as admin:
                await work(admin)

    asyncio.run(bounded())


async def offered(call: Coroutine[Any, Any, Any], *, since: str = "") -> Any:
    """The answer; None where the broker does not offer it, which only an older or unfinished one may do."""
    try:
        return await call
    except ApiError as error:
        if error.error is not errors.UNSUPPORTED_VERSION:
            raise
        assert since > VERSION or not VERSION, f"{VERSION} should offer this"
        return None


async def directory_of(admin: Admin, broker: int, place: Place) -> str:
    """Where the partition lies, which a broker may know a little later than its controller knows the topic."""
    while True:
        for directory in await admin.describe_log_dirs(broker):
            if place in directory.replicas:
                return directory.path
        await asyncio.sleep(0.1)


async def _done(call: Coroutine[Any, Any, None]) -> bool:
    await call
    return True


def test_topics_are_made_grown_emptied_and_deleted(shared_broker: Broker, name: str) -> None:
    async def work(admin: Admin) -> None:
        made = await admin.create_topic(NewTopic(name, partition_count=2, configs={"retention.ms": "3600000"}))
        assert made.name == name
        again = await admin.create_topics([NewTopic(name), NewTopic(f"{name}-b")], validate_only=True)
        assert isinstance(again[name], ApiError)
        assert again[name].error is errors.TOPIC_ALREADY_EXISTS
        assert await admin.create_partitions({name: 4}) == {name: None}
        async with Producer(ProducerSettings(bootstrap_servers=(shared_broker.bootstrap_servers,))) as producer:
            for _ in range(50):
                try:
                    await producer.send(name, b"x", partition=3)
                    break
                except ApiError as error:  # the new partition is not everywhere known yet
                    if error.error is not errors.UNKNOWN_TOPIC_OR_PARTITION:
                        raise
                    producer.cluster.invalidate()
                    await asyncio.sleep(0.1)
            await producer.send(name, b"y", partition=3)
        assert len((await admin.describe_topics([name]))[name].partitions) == 4  # type: ignore[union-attr]
        assert await admin.delete_records({Place(name, 3): 1}) == {Place(name, 3): 1}
        assert (await admin.list_offsets({Place(name, 3): -2}))[Place(name, 3)].offset == 1
        assert name in {topic.name for topic in await admin.list_topics()}
        await admin.delete_topic(name)
        assert (await admin.delete_topics([name])).get(name) is not None

    run(shared_broker, work)


def test_settings_are_read_and_changed(shared_broker: Broker, name: str) -> None:
    async def work(admin: Admin) -> None:
        await admin.create_topic(NewTopic(name, partition_count=1))
        resource = Resource(ResourceKind.TOPIC, name)
        changes = [Change("retention.ms", "60000"), Change("cleanup.policy", "compact", Operation.APPEND)]
        assert await admin.alter_configs({resource: changes}) == {resource: None}
        for _ in range(50):
            found = (await admin.describe_configs([resource]))[resource]
            # The broker that is asked may hear of the topic, and of its settings, a little later than the controller.
            if isinstance(found, dict) and found["retention.ms"].value == "60000":
                break
            await asyncio.sleep(0.1)
        assert isinstance(found, dict)
        assert found["cleanup.policy"].value == "delete,compact"
        assert await admin.alter_configs({resource: [Change("retention.ms", None, Operation.DELETE)]}) == {
            resource: None
        }
        brokers = (await admin.describe_cluster()).brokers
        own = Resource(ResourceKind.BROKER, str(brokers[0].id))
        assert isinstance((await admin.describe_configs([own]))[own], dict)
        listed = await offered(admin.list_config_resources([ResourceKind.TOPIC]), since="4.1")
        assert listed is None or resource in listed

    run(shared_broker, work)


def test_brokers_and_their_disks_are_described(shared_broker: Broker, name: str) -> None:
    async def work(admin: Admin) -> None:
        await admin.create_topic(NewTopic(name, partition_count=1))
        described = await admin.describe_cluster()
        assert described.cluster_id
        assert await directory_of(admin, described.brokers[0].id, Place(name, 0))
        features = await admin.describe_features()
        assert VERSION == "2.8" or features.finalized
        quorum = await offered(admin.describe_quorum(), since="3.3")
        assert quorum is None or quorum.leader_id in {voter.id for voter in quorum.voters}

    run(shared_broker, work)


def test_groups_and_their_offsets_are_seen_and_moved(shared_broker: Broker, name: str) -> None:
    servers = (shared_broker.bootstrap_servers,)

    async def work(admin: Admin) -> None:
        await admin.create_topic(NewTopic(name, partition_count=1))
        place = Place(name, 0)
        async with Producer(ProducerSettings(bootstrap_servers=servers)) as producer:
            await producer.send_many(name, [(None, b"%d" % number) for number in range(10)])
        settings = ConsumerSettings(
            bootstrap_servers=servers, group_id=name, auto_offset_reset="earliest", group_instance_id="static"
        )
        async with Consumer(settings) as consumer:
            await consumer.subscribe([name])
            assert len(await consumer.poll(10)) == 10
            await consumer.commit()
            described = await admin.describe_group(name)
            assert [member.instance_id for member in described.members] == ["static"]
            assert name in {group.group_id for group in await admin.list_groups()}
        assert (await admin.group_offsets(name))[place].offset == 10
        assert await admin.remove_members(name, ["static"]) == {"static": None}
        await admin.alter_group_offsets(name, {place: 4})
        assert (await admin.group_offsets(name))[place].offset == 4
        assert await admin.delete_group_offsets(name, [place]) == {place: None}
        gone = (await admin.delete_groups([name]))[name]  # older ones forget a group with its last offset
        assert gone is None or gone.error is errors.GROUP_ID_NOT_FOUND
        with pytest.raises(ApiError):
            await admin.describe_group(f"{name}-none")

    run(shared_broker, work)


def test_quotas_are_set_and_taken_away(shared_broker: Broker, name: str) -> None:
    async def work(admin: Admin) -> None:
        entity = {"client-id": name}
        limits = {"producer_byte_rate": 1024.0, "request_percentage": 50.0}
        if await offered(_done(admin.alter_quotas(entity, limits)), since="2.8") is None:
            return
        for _ in range(50):
            found = await admin.describe_quotas(entity)
            if found:
                break
            await asyncio.sleep(0.1)
        assert [(quota.entity, quota.limits) for quota in found] == [(entity, limits)]
        await admin.alter_quotas(entity, dict.fromkeys(limits))
        assert any(quota.entity == entity for quota in found)

    run(shared_broker, work)


def test_replicas_are_moved_and_leaders_elected(shared_broker: Broker, name: str) -> None:
    async def work(admin: Admin) -> None:
        await admin.create_topic(NewTopic(name, partition_count=1))
        place = Place(name, 0)
        broker = (await admin.describe_cluster()).brokers[0].id
        assert await offered(admin.list_reassignments(), since="2.8") in ({}, None)
        moved = await offered(admin.alter_reassignments({place: [broker]}), since="2.8")
        assert moved in ({place: None}, None)
        none = await offered(admin.alter_reassignments({place: None}), since="2.8")
        assert none is None or none[place].error is errors.NO_REASSIGNMENT_IN_PROGRESS
        elected = await offered(admin.elect_leaders([place]), since="2.8")
        assert elected is None or elected[place].error is errors.ELECTION_NOT_NEEDED

    run(shared_broker, work)


def test_transactions_and_producers_are_seen(shared_broker: Broker, name: str) -> None:
    servers = (shared_broker.bootstrap_servers,)

    async def work(admin: Admin) -> None:
        await admin.create_topic(NewTopic(name, partition_count=1))
        async with Producer(ProducerSettings(bootstrap_servers=servers, transactional_id=name)) as producer:
            await producer.begin_transaction()
            await producer.send(name, b"x")
            listed = await offered(admin.list_transactions(), since="3.0")
            if listed is not None:
                assert name in {each.transactional_id for each in listed}
                described = await admin.describe_transaction(name)
                assert described.partitions == (Place(name, 0),)
                assert len(await admin.describe_producers(Place(name, 0))) == 1
            await producer.commit_transaction()

    run(shared_broker, work)


def test_a_transaction_is_ended_by_force(shared_broker: Broker, name: str) -> None:
    servers = (shared_broker.bootstrap_servers,)

    async def work(admin: Admin) -> None:
        await admin.create_topic(NewTopic(name, partition_count=1))
        place = Place(name, 0)
        async with Producer(ProducerSettings(bootstrap_servers=servers, transactional_id=name)) as producer:
            await producer.begin_transaction()
            await producer.send(name, b"x")
            if await offered(admin.describe_transaction(name), since="3.0") is not None:
                (held,) = [each for each in await admin.describe_producers(place) if each.transaction_start_offset >= 0]
                described: Any = await admin.describe_transactions([name, f"{name}-none"])
                assert described[name].producer_id == held.producer_id
                assert isinstance(described[f"{name}-none"], ApiError)
            assert await admin.fence_producer(name) > 0
            with pytest.raises(BarnabasError):
                await producer.commit_transaction()
        read = ConsumerSettings(bootstrap_servers=servers, isolation_level="read_committed")
        async with Consumer(read) as consumer:
            await consumer.assign([place], until_end=True)
            assert [record.value async for record in consumer] == []

    run(shared_broker, work)


def test_an_open_transaction_is_aborted_in_its_partition_alone(shared_broker: Broker, name: str) -> None:
    servers = (shared_broker.bootstrap_servers,)

    async def work(admin: Admin) -> None:
        await admin.create_topic(NewTopic(name, partition_count=1))
        place = Place(name, 0)
        async with Producer(ProducerSettings(bootstrap_servers=servers, transactional_id=name)) as producer:
            await producer.begin_transaction()
            await producer.send(name, b"x")
            found = await offered(admin.describe_producers(place), since="2.8")
            if found is not None:
                (held,) = [each for each in found if each.transaction_start_offset >= 0]
                await admin.abort_in_partition(place, held)
                left = await admin.describe_producers(place)
                assert all(each.transaction_start_offset < 0 for each in left)
            await producer.abort_transaction()

    run(shared_broker, work)


def test_users_get_passwords_and_lose_them(shared_broker: Broker, name: str) -> None:
    async def work(admin: Admin) -> None:
        world = real_world()
        if await offered(_done(admin.set_password(world, name, "secret", SHA_256)), since="2.8") is None:
            return
        for _ in range(50):
            found = [each for each in await admin.describe_users() if each.user == name]
            if found:
                break
            await asyncio.sleep(0.1)
        assert [(each.mechanism, each.iterations) for each in found] == [("SCRAM-SHA-256", 4096)]
        await admin.remove_user(name, [SHA_256])
        with pytest.raises(ApiError) as gone:
            await admin.remove_user(name, [SHA_256])
        assert gone.value.error is errors.RESOURCE_NOT_FOUND

    run(shared_broker, work)


def test_replicas_stay_in_their_directory_or_are_told_that_another_is_none(shared_broker: Broker, name: str) -> None:
    async def work(admin: Admin) -> None:
        await admin.create_topic(NewTopic(name, partition_count=1))
        place = Place(name, 0)
        broker = (await admin.describe_cluster()).brokers[0].id
        directory = await directory_of(admin, broker, place)
        moved = await offered(admin.move_replicas(broker, {place: directory}), since="2.8" if VERSION else "")
        if moved is None:
            return
        assert moved == {place: None}
        refused = await admin.move_replicas(broker, {place: f"{directory}-none"})
        assert refused[place].error is errors.LOG_DIR_NOT_FOUND

    run(shared_broker, work)
