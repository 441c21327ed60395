"""A request that fails as a whole is refused in every version of every API, or its connection is closed on purpose."""

from __future__ import annotations

import pytest

from barnabas.broker.access.refusals import refusal
from barnabas.broker.requests.api import Route
from barnabas.broker.requests.routes import CONTROLLER_ROUTES, ROUTES
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed
from barnabas.wire.message import Message, decode, encode
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest

ERROR = ApiError(errors.REQUEST_TIMED_OUT, "nobody answers")
EVERY = {
    (route.name, version): route
    for routes in (ROUTES, CONTROLLER_ROUTES)
    for route in routes.values()
    for version in route.versions
}


def refused(route: Route, message: Message, version: int) -> Message:
    """As the client reads it."""
    return decode(route.response, version, encode(refusal(route, message, ERROR, version), version))


@pytest.mark.parametrize(("name", "version"), EVERY)
def test_every_version_has_an_answer_or_none_at_all(name: str, version: int) -> None:
    route = EVERY[name, version]
    try:
        answer = refused(route, route.request.default(), version)
    except Malformed:
        return  # no place for it but the rows, of which each handler says its own
    places = [field for field in answer.fields if field.name == "error_code" and field.is_in(version)]
    if places and route.api.refuse is None:
        assert answer.error_code == ERROR.error.code  # type: ignore[attr-defined]


def test_all_partitions_in_version_0_have_no_place_for_an_error() -> None:
    route = EVERY["ELECT_LEADERS", 0]
    everywhere = ElectLeadersRequest(topic_partitions=None)
    assert refused(route, everywhere, 0).replica_election_results == []  # type: ignore[attr-defined]
    assert refused(route, everywhere, 1).error_code == ERROR.error.code  # type: ignore[attr-defined]


def test_each_key_is_told_that_its_coordinator_was_not_found() -> None:
    route = EVERY["FIND_COORDINATOR", 4]
    answer = refused(route, FindCoordinatorRequest(coordinator_keys=["a", "b"]), 4)
    assert [(row.key, row.error_code) for row in answer.coordinators] == [("a", 7), ("b", 7)]  # type: ignore[attr-defined]
    assert refused(route, FindCoordinatorRequest(key="a"), 3).error_code == 7  # type: ignore[attr-defined]
