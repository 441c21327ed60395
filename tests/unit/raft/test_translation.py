"""Values of the machine survive the wire in every version that can carry them."""

from __future__ import annotations

import pytest

from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid
from barnabas.raft import messages
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter
from barnabas.raft.wire_requests import request_of_wire, request_to_wire
from barnabas.raft.wire_responses import response_of_wire, response_to_wire
from barnabas.wire.message import decode, encode
from barnabas.wire.messages import request_of, response_of

ENDPOINTS = (Endpoint("CONTROLLER", "host", 9093),)
ONE = ReplicaKey(1, Uuid(bytes([1]) * 16))
TWO = ReplicaKey(2, Uuid(bytes([2]) * 16))
END = OffsetAndEpoch(40, 3)
LEADER = {"leader_id": 2, "epoch": 7, "endpoints": ENDPOINTS}

REQUESTS: list[messages.Request] = [
    messages.Vote(ONE, TWO, 5, END, True),
    messages.Vote(ONE, TWO, 5, END, False),
    messages.BeginQuorumEpoch(1, 5, ENDPOINTS, TWO),
    messages.EndQuorumEpoch(1, 5, ENDPOINTS, (TWO, ONE)),
    messages.Fetch(ONE, 5, END, 500, 39),
    messages.FetchSnapshot(ONE, 5, END, 1000),
    messages.AddVoter(Voter(TWO, ENDPOINTS), False),
    messages.RemoveVoter(TWO),
    messages.UpdateVoter(5, Voter(TWO, ENDPOINTS, 0, 1)),
]
RESPONSES: list[tuple[messages.Request, messages.Response]] = [
    (REQUESTS[0], messages.VoteResponse(is_granted=True, **LEADER)),
    (REQUESTS[2], messages.BeginQuorumEpochResponse(error=errors.FENCED_LEADER_EPOCH, **LEADER)),
    (REQUESTS[3], messages.EndQuorumEpochResponse(**LEADER)),
    (REQUESTS[4], messages.FetchResponse(high_watermark=9, log_start_offset=2, records=b"", **LEADER)),
    (REQUESTS[4], messages.FetchResponse(diverging=END, records=b"", **LEADER)),
    (REQUESTS[4], messages.FetchResponse(snapshot=END, records=b"", **LEADER)),
    (
        REQUESTS[5],
        messages.FetchSnapshotResponse(snapshot=END, position=3, size_bytes=9, data=b"abc", data_bytes=3, **LEADER),
    ),
    (REQUESTS[6], messages.VoterChangeResponse(error=errors.DUPLICATE_VOTER, message="twice")),
    (REQUESTS[8], messages.UpdateVoterResponse(**LEADER)),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda value: type(value).__name__)
def test_a_request_survives_the_wire(request_: messages.Request) -> None:
    message = request_to_wire(request_, "cluster")
    assert message.api_key is not None
    version = max(message.versions)
    arrived = decode(request_of(message.api_key), version, encode(message, version))
    assert request_of_wire(arrived, "cluster") == request_


@pytest.mark.parametrize(("request_", "response"), RESPONSES, ids=lambda value: type(value).__name__)
def test_a_response_survives_the_wire(request_: messages.Request, response: messages.Response) -> None:
    api_key = request_to_wire(request_, "cluster").api_key
    assert api_key is not None
    kind = response_of(api_key)
    message = response_to_wire(response, kind)
    version = max(kind.versions)
    assert response_of_wire(decode(kind, version, encode(message, version)), "CONTROLLER") == response


def test_older_versions_know_no_directories() -> None:
    message = request_to_wire(REQUESTS[1], "cluster")
    assert message.api_key is not None
    arrived = decode(request_of(message.api_key), 0, encode(message, 0))
    assert request_of_wire(arrived, "cluster") == messages.Vote(ReplicaKey(1), ReplicaKey(-1), 5, END, False)


def test_another_cluster_is_refused() -> None:
    with pytest.raises(ApiError) as refused:
        request_of_wire(request_to_wire(REQUESTS[0], "other"), "cluster")
    assert refused.value.error is errors.INCONSISTENT_CLUSTER_ID


def test_an_error_of_the_whole_answer_is_a_failure() -> None:
    kind = response_of(request_to_wire(REQUESTS[0], "x").api_key)  # type: ignore[arg-type]
    assert response_of_wire(kind(error_code=errors.INCONSISTENT_CLUSTER_ID.code), "CONTROLLER") is None
