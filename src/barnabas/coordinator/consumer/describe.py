"""A consumer group as tools see it: the answer to ConsumerGroupDescribe, read off the group."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from barnabas.coordinator.consumer.group import ConsumerGroup
from barnabas.coordinator.consumer.member import Member
from barnabas.metadata.topics_image import TopicsImage
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeResponse as Response

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1
DEAD = "Dead"


def describe(group: ConsumerGroup, topics: TopicsImage, *, default_assignor: str) -> Response.DescribedGroup:
    return Response.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(group.members.values()) or default_assignor,
        members=[_member(group, member, topics) for member in group.members.values()],
    )


def not_found(group_id: str, error: ApiError) -> Response.DescribedGroup:
    return Response.DescribedGroup(
        group_id=group_id,
        error_code=error.error.code,
        error_message=f"there is no consumer group {group_id!r}",
        group_state="",
    )


def _member(group: ConsumerGroup, member: Member, topics: TopicsImage) -> Response.Member:
    return Response.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex or None,
        assignment=_assignment(member.assigned, topics),
        target_assignment=_assignment(group.targets.get(member.member_id, {}), topics),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def _assignment(partitions: Mapping[Uuid, Collection[int]], topics: TopicsImage) -> Response.Assignment:
    """Topics that are gone cannot be named, so they are left out."""
    return Response.Assignment(
        topic_partitions=[
            Response.TopicPartitions(
                topic_id=topic, topic_name=topics.by_id[topic].name, partitions=sorted(partitions[topic])
            )
            for topic in sorted(partitions)
            if topic in topics.by_id
        ]
    )
