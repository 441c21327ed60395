"""ElectLeaders, and the elections that the controller holds on its own: back to preferred leaders, and unclean ones.

Who is elected is decided in ``leadership``; which partitions are asked about is decided here.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from barnabas.metadata.decision import Decision, Facts, check_size
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.leader_changes import PartitionChanges, allows_unclean_election, change_of
from barnabas.metadata.leadership import Election
from barnabas.metadata.partition_image import TopicIdPartition
from barnabas.metadata.records import PartitionChangeRecord
from barnabas.model.errors import (
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    INVALID_REQUEST,
    NONE,
    PREFERRED_LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    ApiError,
)
from barnabas.wire.message import Message
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

ELECTIONS_MAX: Final = 1000  # that the controller holds on its own at a time
_TYPES: Final = {0: Election.PREFERRED, 1: Election.UNCLEAN}
TopicResults: TypeAlias = ElectLeadersResponse.ReplicaElectionResult
Result: TypeAlias = ElectLeadersResponse.PartitionResult


def elect_leaders(image: ClusterImage, request: ElectLeadersRequest, facts: Facts) -> Decision[ElectLeadersResponse]:
    """Asked about all partitions, those that need no election are left out of the answer."""
    election = _TYPES.get(request.election_type)
    if election is None:
        raise ApiError(INVALID_REQUEST, f"an election is preferred (0) or unclean (1), not {request.election_type}")
    is_about_all = request.topic_partitions is None
    wanted = (
        [(name, range(len(image.topics.by_name[name].partitions))) for name in sorted(image.topics.by_name)]
        if request.topic_partitions is None
        else [(topic.topic, topic.partitions) for topic in request.topic_partitions]
    )
    records: list[Message] = []
    answers: list[TopicResults] = []
    for name, indexes in wanted:
        results: list[Result] = []
        for index in indexes:
            try:
                check_size(len(records) + 1)
                records.append(_elect(image, facts, name, index, election))
                results.append(Result(partition_id=index, error_code=NONE.code, error_message=None))
            except ApiError as error:
                if not is_about_all or error.error is not ELECTION_NOT_NEEDED:
                    results.append(Result(partition_id=index, error_code=error.error.code, error_message=error.message))
        answers.append(TopicResults(topic=name, partition_result=results))
    return Decision(records, ElectLeadersResponse(replica_election_results=answers))


def _elect(image: ClusterImage, facts: Facts, name: str, index: int, election: Election) -> PartitionChangeRecord:
    topic = image.topic(name)
    if topic is None:
        raise ApiError(UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    if not 0 <= index < len(topic.partitions):
        raise ApiError(UNKNOWN_TOPIC_OR_PARTITION, f"the topic {name!r} has no partition {index}")
    partition = topic.partitions[index]
    is_preferred = election is Election.PREFERRED
    if partition.has_preferred_leader if is_preferred else partition.has_leader:
        raise ApiError(ELECTION_NOT_NEEDED)
    change = change_of(image, facts.schema, TopicIdPartition(topic.id, index))
    change.election = election
    record = change.record()
    if record is None:
        raise ApiError(PREFERRED_LEADER_NOT_AVAILABLE if is_preferred else ELIGIBLE_LEADERS_NOT_AVAILABLE)
    return record


def balance_leaders(image: ClusterImage, facts: Facts) -> Decision[bool]:
    """Preferred leaders for partitions that have another; True if there may be more to do."""
    records: list[Message] = []
    changes = PartitionChanges(image, facts.schema)
    for key in sorted(image.topics.index.imbalanced):
        if len(records) == ELECTIONS_MAX:
            return Decision(records, True)
        change = changes.of(key)
        change.election = Election.PREFERRED
        record = change.record()
        if record is not None:
            records.append(record)
    return Decision(records, False)


def elect_unclean_leaders(image: ClusterImage, facts: Facts) -> Decision[bool]:
    """Any live leader for partitions without one, where their topics allow it; True if there may be more to do."""
    records: list[Message] = []
    for key in sorted(image.topics.index.leaderless):
        if len(records) == ELECTIONS_MAX:
            return Decision(records, True)
        if allows_unclean_election(image, facts.schema, image.topics.by_id[key.topic_id].name):
            record = change_of(image, facts.schema, key).record()
            if record is not None:
                records.append(record)
    return Decision(records, False)
