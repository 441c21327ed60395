"""Groups as the admin client sees them: which there are, who is in them, what they have committed.

How far a group is behind is in ``lag.py``. Each group is asked about at its own coordinator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from barnabas.client.admin.calls import AdminCalls, problem
from barnabas.client.cluster.coordinators import Coordinator, KeyKind
from barnabas.client.group.commits import NAMED_VERSION_MAX, NO_EPOCH, Commits, GroupMetadata, OffsetAndMetadata
from barnabas.client.partitions.protocol import by_topic
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed, error_of
from barnabas.model.ids import NO_OFFSET, TopicPartition
from barnabas.transport.versions import Shaped
from barnabas.wire.message import Message, decode
from barnabas.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolAssignment
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

R = TypeVar("R", bound=Message)

LANE: Final = "admin"
CONSUMER_PROTOCOL: Final = "consumer"
DEAD: Final = "Dead"
GROUPS_SINCE: Final = 8  # from this version on OffsetFetch asks for several groups
_VERSION_BYTES: Final = 2  # in front of an assignment
_MOVED: Final = (errors.NOT_COORDINATOR, errors.COORDINATOR_NOT_AVAILABLE, errors.COORDINATOR_LOAD_IN_PROGRESS)


class ListedGroup(NamedTuple):
    group_id: str
    state: str
    type: str  # classic or consumer; empty if the broker is too old to say
    protocol_type: str
    coordinator: int


class GroupMember(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


class GroupDescription(NamedTuple):
    group_id: str
    state: str
    type: str
    assignor: str
    coordinator: int
    members: tuple[GroupMember, ...]
    protocol_type: str = CONSUMER_PROTOCOL  # empty if no member has ever joined

    @property
    def is_simple(self) -> bool:
        """Offsets are all that there is of it: whoever commits them chooses partitions without joining."""
        return not self.protocol_type and not self.members


class GroupAdmin(AdminCalls):
    async def list_groups(self, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ListedGroup]:
        """The groups of every coordinator, by name."""
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        await self.cluster.refresh()
        found: list[ListedGroup] = []
        for broker in sorted(self.cluster.metadata.brokers):
            answer = await self._listing(broker, request)
            found += [
                ListedGroup(each.group_id, each.group_state, each.group_type, each.protocol_type, broker)
                for each in answer.groups
            ]
        return sorted(found)

    async def _listing(self, broker: int, request: ListGroupsRequest) -> ListGroupsResponse:
        async def attempt() -> ListGroupsResponse:
            answer = await self.cluster.call(broker, request, ListGroupsResponse)
            error = problem(answer.error_code, None, about="groups")
            if error is not None:
                raise error
            return answer

        return await self.cluster.retrying(attempt)

    async def describe_group(self, group_id: str) -> GroupDescription:
        """Who is in a group and what each member has; ApiError if there is no such group."""
        coordinator = Coordinator(self.cluster, KeyKind.GROUP, group_id)
        answer = await self._ask(coordinator, DescribeGroupsRequest(groups=[group_id]), DescribeGroupsResponse)
        (classic,) = answer.groups
        row = error_of(classic.error_code)
        if row not in (errors.NONE, errors.GROUP_ID_NOT_FOUND):
            raise ApiError(row, classic.error_message or f"{group_id}: {row.text}")
        if row is errors.NONE and classic.group_state != DEAD:
            return _classic(classic, await coordinator.find())
        described = await self._ask(
            coordinator, ConsumerGroupDescribeRequest(group_ids=[group_id]), ConsumerGroupDescribeResponse
        )
        (modern,) = described.groups
        if modern.error_code:
            raise ApiError(error_of(modern.error_code), f"There is no group {group_id!r}.")
        return _modern(modern, await coordinator.find())

    async def group_offsets(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """All that a group has committed; nothing if nobody knows the group."""

        def build(version: int) -> OffsetFetchRequest:
            if version < GROUPS_SINCE:
                return OffsetFetchRequest(group_id=group_id, topics=None)
            group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group_id, topics=None)
            return OffsetFetchRequest(groups=[group])

        coordinator = Coordinator(self.cluster, KeyKind.GROUP, group_id)
        answer = await self._ask(coordinator, Shaped(OffsetFetchRequest, build), OffsetFetchResponse)
        group = answer.groups[0] if answer.groups else answer
        return {
            TopicPartition(topic.name, each.partition_index): OffsetAndMetadata(
                each.committed_offset, each.metadata or "", each.committed_leader_epoch
            )
            for topic in group.topics
            for each in topic.partitions
            if each.committed_offset != NO_OFFSET
        }

    async def alter_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit for a group that has no members, all partitions or, with ApiError, not all."""
        commits = Commits(self.cluster, Coordinator(self.cluster, KeyKind.GROUP, group_id))
        entries = {place: OffsetAndMetadata(offset, "", NO_EPOCH) for place, offset in sorted(offsets.items())}
        await commits.commit(GroupMetadata(group_id), entries, timeout_ms=None)

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ApiError | None]:
        entry = OffsetDeleteRequest.OffsetDeleteRequestPartition
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=[
                OffsetDeleteRequest.OffsetDeleteRequestTopic(
                    name=topic, partitions=[entry(partition_index=index) for index in indexes]
                )
                for topic, indexes in by_topic(partitions).items()
            ],
        )
        answer = await self._ask(Coordinator(self.cluster, KeyKind.GROUP, group_id), request, OffsetDeleteResponse)
        failure = problem(answer.error_code, None, about=group_id)
        if failure is not None:
            raise failure
        return {
            TopicPartition(topic.name, each.partition_index): problem(each.error_code, None, about=topic.name)
            for topic in answer.topics
            for each in topic.partitions
        }

    async def remove_members(
        self, group_id: str, instances: Iterable[str], *, reason: str = "removed by an administrator"
    ) -> dict[str, ApiError | None]:
        """Take static members out of a classic group, so that it need not wait for them to come back."""
        identity = LeaveGroupRequest.MemberIdentity
        request = LeaveGroupRequest(
            group_id=group_id,
            members=[identity(member_id="", group_instance_id=instance, reason=reason) for instance in instances],
        )
        answer = await self._ask(Coordinator(self.cluster, KeyKind.GROUP, group_id), request, LeaveGroupResponse)
        failure = problem(answer.error_code, None, about=group_id)
        if failure is not None:
            raise failure
        return {
            each.group_instance_id or each.member_id: problem(each.error_code, None, about=group_id)
            for each in answer.members
        }

    async def delete_groups(self, group_ids: Iterable[str]) -> dict[str, ApiError | None]:
        """Forget groups without members and all that they committed."""
        outcomes: dict[str, ApiError | None] = {}
        for group_id in group_ids:
            coordinator = Coordinator(self.cluster, KeyKind.GROUP, group_id)
            answer = await self._ask(coordinator, DeleteGroupsRequest(groups_names=[group_id]), DeleteGroupsResponse)
            outcomes[group_id] = problem(answer.results[0].error_code, None, about=group_id)
        return outcomes

    async def _ask(self, coordinator: Coordinator, message: Message | Shaped, response: type[R]) -> R:
        """Ask a coordinator, and the next one if it is no longer that, or not yet ready."""

        async def attempt() -> R:
            answer = await coordinator.call(message, response, lane=LANE, version_max=NAMED_VERSION_MAX)
            for code in _codes(answer):
                if error_of(code) in _MOVED:
                    coordinator.forget()
                    raise ApiError(error_of(code))
            return answer

        return await self.cluster.retrying(attempt)


def _codes(answer: Message) -> list[int]:
    """The errors of the answer as a whole and of each group in it."""
    rows = [answer, *getattr(answer, "groups", ()), *getattr(answer, "results", ())]
    return [row.error_code for row in rows if hasattr(row, "error_code")]


def _classic(group: DescribeGroupsResponse.DescribedGroup, coordinator: int) -> GroupDescription:
    is_consumer = group.protocol_type == CONSUMER_PROTOCOL
    members = tuple(
        GroupMember(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            _assigned(each.member_assignment) if is_consumer else (),
        )
        for each in group.members
    )
    return GroupDescription(
        group.group_id,
        group.group_state,
        "classic",
        group.protocol_data,
        coordinator,
        tuple(sorted(members)),
        group.protocol_type,
    )


def _assigned(assignment: bytes) -> tuple[TopicPartition, ...]:
    """What the leader gave a member; nothing if that is not written as consumers write it."""
    if len(assignment) <= _VERSION_BYTES:
        return ()
    try:
        parts = decode(ConsumerProtocolAssignment, 0, assignment, _VERSION_BYTES).assigned_partitions
    except Malformed:
        return ()
    return tuple(sorted(TopicPartition(each.topic, index) for each in parts for index in each.partitions))


def _modern(group: ConsumerGroupDescribeResponse.DescribedGroup, coordinator: int) -> GroupDescription:
    members = tuple(
        GroupMember(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            tuple(
                sorted(
                    TopicPartition(topic.topic_name, index)
                    for topic in each.assignment.topic_partitions
                    for index in topic.partitions
                )
            ),
        )
        for each in group.members
    )
    return GroupDescription(
        group.group_id, group.group_state, "consumer", group.assignor_name, coordinator, tuple(sorted(members))
    )
