"""The quorum of controllers and the cluster's features as the admin client sees and changes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from barnabas.client.admin.calls import AdminCalls, problem
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid
from barnabas.wire.message import Message
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from barnabas.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

METADATA_TOPIC: Final = "__cluster_metadata"
UPGRADES: Final = {"upgrade": 1, "safe_downgrade": 2, "unsafe_downgrade": 3}


class QuorumReplica(NamedTuple):
    id: int
    directory_id: Uuid
    log_end_offset: int
    last_fetch_ms: int  # -1 if the broker does not say
    last_caught_up_ms: int


class QuorumDescription(NamedTuple):
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


class Features(NamedTuple):
    supported: dict[str, tuple[int, int]]  # the lowest and the highest level that the broker knows
    finalized: dict[str, int]  # the level that the cluster works at


class VoterEnd(NamedTuple):
    listener: str
    host: str
    port: int


class QuorumAdmin(AdminCalls):
    async def describe_quorum(self) -> QuorumDescription:
        kind = DescribeQuorumRequest
        topic = kind.TopicData(topic_name=METADATA_TOPIC, partitions=[kind.PartitionData(partition_index=0)])
        answer = await self._broker(None, kind(topics=[topic]), DescribeQuorumResponse)
        _raise(answer.error_code, answer.error_message, about="the quorum")
        part = answer.topics[0].partitions[0]
        _raise(part.error_code, part.error_message, about="the quorum")
        return QuorumDescription(
            part.leader_id,
            part.leader_epoch,
            part.high_watermark,
            tuple(map(_replica, part.current_voters)),
            tuple(map(_replica, part.observers)),
        )

    async def add_voter(
        self, voter_id: int, directory_id: Uuid, ends: Iterable[VoterEnd], *, timeout_ms: int = 30_000
    ) -> None:
        kind = AddRaftVoterRequest
        request = kind(
            cluster_id=None,
            timeout_ms=timeout_ms,
            voter_id=voter_id,
            voter_directory_id=directory_id,
            listeners=[kind.Listener(name=end.listener, host=end.host, port=end.port) for end in ends],
        )
        answer = await self._controller(request, AddRaftVoterResponse)
        _raise(answer.error_code, answer.error_message, about=f"voter {voter_id}")

    async def remove_voter(self, voter_id: int, directory_id: Uuid) -> None:
        request = RemoveRaftVoterRequest(cluster_id=None, voter_id=voter_id, voter_directory_id=directory_id)
        answer = await self._controller(request, RemoveRaftVoterResponse)
        _raise(answer.error_code, answer.error_message, about=f"voter {voter_id}")

    async def unregister_broker(self, broker: int) -> None:
        """Forget a broker that will not come back."""
        answer = await self._controller(UnregisterBrokerRequest(broker_id=broker), UnregisterBrokerResponse)
        _raise(answer.error_code, answer.error_message, about=f"broker {broker}")

    async def describe_features(self) -> Features:
        request = ApiVersionsRequest(client_software_name="barnabas", client_software_version="admin")
        answer = await self._broker(None, request, ApiVersionsResponse)
        _raise(answer.error_code, None, about="features")
        return Features(
            {each.name: (each.min_version, each.max_version) for each in answer.supported_features},
            {each.name: each.max_version_level for each in answer.finalized_features},
        )

    async def update_features(
        self,
        levels: Mapping[str, int],
        *,
        how: Literal["upgrade", "safe_downgrade", "unsafe_downgrade"] = "upgrade",
        validate_only: bool = False,
        timeout_ms: int = 60_000,
    ) -> dict[str, ApiError | None]:
        """Have the cluster work at these levels; 0 takes a feature away."""
        kind = UpdateFeaturesRequest
        updates = [
            kind.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=UPGRADES[how])
            for name, level in levels.items()
        ]
        request = kind(timeout_ms=timeout_ms, feature_updates=updates, validate_only=validate_only)
        answer = await self._controller(request, UpdateFeaturesResponse)
        _raise(answer.error_code, answer.error_message, about="features")
        outcomes: dict[str, ApiError | None] = dict.fromkeys(levels)
        for each in answer.results:
            outcomes[each.feature] = problem(each.error_code, each.error_message, about=each.feature)
        return outcomes


def _replica(state: Message) -> QuorumReplica:
    assert isinstance(state, DescribeQuorumResponse.ReplicaState)
    return QuorumReplica(
        state.replica_id,
        Uuid(state.replica_directory_id),
        state.log_end_offset,
        state.last_fetch_timestamp,
        state.last_caught_up_timestamp,
    )


def _raise(code: int, message: str | None, *, about: str) -> None:
    error = problem(code, message, about=about)
    if error is not None:
        raise error
