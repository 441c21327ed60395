"""A share group as tools see it: the answer to ShareGroupDescribe."""

from __future__ import annotations

from barnabas.coordinator.share.assignor import NAME
from barnabas.coordinator.share.group import ShareGroup, ShareMember
from barnabas.metadata.topics_image import TopicsImage
from barnabas.model.errors import ApiError
from barnabas.wire.messages.share_group_describe import ShareGroupDescribeResponse as Response

DEAD = "Dead"


def describe(group: ShareGroup, topics: TopicsImage) -> Response.DescribedGroup:
    return Response.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=NAME,
        members=[_member(member, topics) for member in group.members.values()],
    )


def not_found(group_id: str, error: ApiError) -> Response.DescribedGroup:
    return Response.DescribedGroup(
        group_id=group_id, error_code=error.error.code, error_message=error.message, group_state=DEAD
    )


def _member(member: ShareMember, topics: TopicsImage) -> Response.Member:
    return Response.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
        assignment=Response.Assignment(
            topic_partitions=[
                Response.TopicPartitions(
                    topic_id=topic, topic_name=topics.by_id[topic].name, partitions=sorted(member.assigned[topic])
                )
                for topic in sorted(member.assigned)
                if topic in topics.by_id
            ]
        ),
    )
