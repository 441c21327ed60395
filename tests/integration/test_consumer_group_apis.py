"""Groups of the consumer protocol over the wire: heartbeats, descriptions, settings of one group, bad guests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from talk import Talk

from barnabas.model import errors
from barnabas.model.ids import Uuid
from barnabas.testing import Broker
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest

GROUP_RESOURCE = 32
SET = 0
OF_GROUP, OF_FILE, BY_DEFAULT = 8, 4, 5
CONSUMER_MEMBER = 1


class Group:
    """One group, seen from the socket."""

    def __init__(self, talk: Talk, group_id: str) -> None:
        self.talk = talk
        self.group_id = group_id
        answer = talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id]), 6)
        assert answer.coordinators[0].error_code == 0

    def beat(self, member: str, epoch: int, has: Mapping[Uuid, list[int]] | None = None, **fields: Any) -> Any:
        version = fields.pop("version", 1)
        entry = ConsumerGroupHeartbeatRequest.TopicPartitions
        message = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=member,
            member_epoch=epoch,
            topic_partitions=None if has is None else [entry(topic_id=t, partitions=p) for t, p in has.items()],
            **fields,
        )
        return self.talk.ask(message, version)

    def join(self, member: str, *names: str, **fields: Any) -> Any:
        given = {"subscribed_topic_names": list(names), "rebalance_timeout_ms": 60_000, **fields}
        return self.beat(member, 0, {}, **given)

    def describe(self, version: int = 1) -> Any:
        (described,) = self.talk.ask(ConsumerGroupDescribeRequest(group_ids=[self.group_id]), version).groups
        return described


def assignment(answer: Any) -> dict[Uuid, list[int]]:
    assert answer.error_code == 0, answer
    return {each.topic_id: each.partitions for each in answer.assignment.topic_partitions}


@pytest.fixture
def group(talk: Talk, name: str) -> Group:
    return Group(talk, f"group-of-{name}")


def test_a_member_joins_stays_and_leaves(talk, group, name):
    topic = talk.create(name, 3)
    answer = group.join("m", name)
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("m", 2, 5000)
    assert assignment(answer) == {topic: [0, 1, 2]}
    answer = group.beat("m", 2, {topic: [0, 1, 2]})
    assert (answer.error_code, answer.assignment) == (0, None)
    assert group.beat("m", -1).member_epoch == -1
    assert group.describe().group_state == "Empty"


def test_the_first_epochs_are_kafkas(talk, group, name):
    """As Kafka 4.3.1 answers the same requests."""
    talk.create(name, 2)
    assert group.join("m", name).member_epoch == 2
    assert group.join("n", name).member_epoch == 3
    group.beat("m", -1)
    group.beat("n", -1)
    described = group.describe()
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Empty", 5, 3)
    assert group.join("z", name).member_epoch == 6


def test_the_broker_makes_an_id_for_who_has_none_in_version_0(talk, group, name):
    talk.create(name)
    answer = group.join("", name, version=0)
    assert answer.error_code == 0
    assert len(Uuid.parse(answer.member_id)) == 16
    assert group.join("", name, version=1).error_code == errors.INVALID_REQUEST.code


def test_a_refusal_has_a_sentence(group):
    answer = group.beat("m", 5)
    assert answer.error_code == errors.GROUP_ID_NOT_FOUND.code
    assert group.group_id in answer.error_message


def test_a_group_is_described_with_all_that_its_members_have(talk, group, name):
    topic = talk.create(name, 2)
    group.join("m", name, instance_id="i", rack_id="r", server_assignor="range")
    described = group.describe()
    assert (described.group_state, described.assignor_name) == ("Stable", "range")
    assert (described.group_epoch, described.assignment_epoch) == (2, 2)
    (member,) = described.members
    assert (member.member_id, member.instance_id, member.rack_id, member.member_epoch) == ("m", "i", "r", 2)
    assert (member.client_id, member.client_host, member.member_type) == ("talk", "/127.0.0.1", CONSUMER_MEMBER)
    assert member.subscribed_topic_names == [name]
    for part in (member.assignment, member.target_assignment):
        (row,) = part.topic_partitions
        assert (row.topic_id, row.topic_name, row.partitions) == (topic, name, [0, 1])
    assert group.describe(version=0).members[0].member_id == "m"


def test_tools_of_both_protocols_say_what_they_know(talk, group, name):
    talk.create(name)
    group.join("m", name)
    listed = talk.ask(ListGroupsRequest(types_filter=["consumer"], states_filter=["stable"])).groups
    assert group.group_id in {each.group_id for each in listed}
    assert {each.group_type for each in listed} == {"consumer"}
    (described,) = talk.ask(DescribeGroupsRequest(groups=[group.group_id])).groups
    assert described.error_code == errors.GROUP_ID_NOT_FOUND.code
    unknown = Group(talk, "nobody").describe()
    assert unknown.error_code == errors.GROUP_ID_NOT_FOUND.code


def test_a_group_is_deleted_when_it_is_empty(talk, group, name):
    talk.create(name)
    group.join("m", name)
    (result,) = talk.ask(DeleteGroupsRequest(groups_names=[group.group_id])).results
    assert result.error_code == errors.NON_EMPTY_GROUP.code
    group.beat("m", -1)
    (result,) = talk.ask(DeleteGroupsRequest(groups_names=[group.group_id])).results
    assert result.error_code == 0
    assert group.describe().error_code == errors.GROUP_ID_NOT_FOUND.code


@pytest.mark.parametrize(("epoch", "code"), [(2, 0), (3, errors.STALE_MEMBER_EPOCH.code)])
def test_commits_are_held_to_the_members_epoch(talk, group, name, epoch, code):
    topic = talk.create(name)
    group.join("m", name)
    request = OffsetCommitRequest(
        group_id=group.group_id,
        generation_id_or_member_epoch=epoch,
        member_id="m",
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                topic_id=topic,
                partitions=[OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)],
            )
        ],
    )
    (row,) = talk.ask(request).topics
    assert row.partitions[0].error_code == code


# --- settings of one group --------------------------------------------------------------------------------------------


def alter(talk: Talk, group_id: str, **values: str) -> int:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=GROUP_RESOURCE,
        resource_name=group_id,
        configs=[
            IncrementalAlterConfigsRequest.AlterableConfig(
                name=key.replace("_", "."), config_operation=SET, value=value
            )
            for key, value in values.items()
        ],
    )
    code: int = talk.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses[0].error_code
    return code


def test_a_group_may_have_settings_of_its_own(talk, group, name):
    talk.create(name)
    assert alter(talk, group.group_id, consumer_heartbeat_interval_ms="7000") == 0
    assert group.join("m", name).heartbeat_interval_ms == 7000
    other = Group(talk, f"other-{name}")
    assert other.join("m", name).heartbeat_interval_ms == 5000
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name=group.group_id, configuration_keys=None
    )
    (result,) = talk.ask(DescribeConfigsRequest(resources=[resource])).results
    rows = {row.name: (row.value, row.config_source) for row in result.configs if row.name.startswith("consumer.")}
    assert rows == {
        "consumer.heartbeat.interval.ms": ("7000", OF_GROUP),
        "consumer.session.timeout.ms": ("45000", BY_DEFAULT),
        "consumer.assignment.interval.ms": ("0", OF_FILE),
    }


@pytest.mark.parametrize(
    "values",
    [
        {"consumer_heartbeat_interval_ms": "100"},  # less than the broker allows any group
        {"consumer_session_timeout_ms": "1000000"},
        {"consumer_heartbeat_interval_ms": "often"},
        {"share_isolation_level": "read_everything"},
    ],
)
def test_a_setting_that_no_group_may_have_is_refused(talk, group, values):
    assert alter(talk, group.group_id, **values) == errors.INVALID_CONFIG.code


# --- time and restarts ------------------------------------------------------------------------------------------------


def test_a_session_ends_on_the_brokers_clock(name):
    with Broker() as broker, Talk(broker.bootstrap_servers) as talk:
        talk.create(name)
        group = Group(talk, "g")
        group.join("m", name)
        broker.clock.advance("44s")
        assert group.describe().group_state == "Stable"
        broker.clock.advance("1s")
        assert group.describe().group_state == "Empty"
        assert group.beat("m", 1).error_code == errors.UNKNOWN_MEMBER_ID.code


def test_a_group_goes_on_after_a_restart(tmp_path: Path, name: str):
    with Broker(data_dir=tmp_path) as broker, Talk(broker.bootstrap_servers) as talk:
        topic = talk.create(name, 2)
        group = Group(talk, "g")
        group.join("m", name, instance_id="i")
        group.join("n", subscribed_topic_regex=f"{name}.*")
        group.beat("m", 2, {topic: [0]}, instance_id="i")
        assert assignment(group.beat("n", 3, {})) == {topic: [1]}
        before = group.describe()
    with Broker(data_dir=tmp_path) as broker, Talk(broker.bootstrap_servers) as talk:
        group = Group(talk, "g")
        assert group.describe() == before
        assert group.beat("m", 3, {topic: [0]}, instance_id="i").error_code == 0
        talk.create(f"{name}-2")
        broker.clock.advance("5s")
        assert len(assignment(group.beat("n", 3, {topic: [1]}))) == 2


# --- bad guests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["(", "(a{1000}){1000}", "x" * 30_000, "(?=look)"])
def test_a_pattern_meant_to_hurt_is_refused(talk: Talk, group: Group, name: str, pattern: str):
    talk.create(name)
    answer = group.join("m", subscribed_topic_regex=pattern)
    assert answer.error_code == errors.INVALID_REGULAR_EXPRESSION.code
    assert group.describe().error_code == errors.GROUP_ID_NOT_FOUND.code


def test_a_subscription_too_large_to_be_kept_disturbs_nobody(talk: Talk, group: Group, new_name: Callable[[], str]):
    name = new_name()
    talk.create(name)
    group.join("m", name)
    answer = group.join("n", *(f"{'x' * 200}-{number}" for number in range(10_000)))
    assert answer.error_code == errors.INVALID_REQUEST.code
    assert group.beat("m", 2).error_code == 0


def test_a_group_takes_no_more_members_than_the_broker_allows(name: str):
    with Broker(settings={"group.consumer.max.size": "2"}) as broker, Talk(broker.bootstrap_servers) as talk:
        talk.create(name)
        group = Group(talk, "g")
        assert [group.join(member, name).error_code for member in ("a", "b", "c")] == [
            0,
            0,
            errors.GROUP_MAX_SIZE_REACHED.code,
        ]
