"""The version that a client and a broker have in common, or a sentence where there is none."""

from __future__ import annotations

import pytest

from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.transport.versions import ApiRanges, fallback_version
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.produce import ProduceRequest


def test_the_highest_common_version_is_picked() -> None:
    assert ApiRanges({0: (0, 9)}).highest_common(ProduceRequest) == 9
    assert ApiRanges({0: (0, 99)}).highest_common(ProduceRequest) == ProduceRequest.versions[-1]
    assert ApiRanges({0: (0, 99)}).highest_common(ProduceRequest, version_max=12) == 12


@pytest.mark.parametrize("ranges", [{}, {0: (0, 2)}, {0: (90, 99)}])
def test_without_a_common_version_the_call_fails_with_a_sentence(ranges: dict[int, tuple[int, int]]) -> None:
    with pytest.raises(ApiError, match="PRODUCE") as caught:
        ApiRanges(ranges).highest_common(ProduceRequest)
    assert caught.value.error is errors.UNSUPPORTED_VERSION


def test_the_fallback_is_what_the_broker_says_it_knows() -> None:
    entry = ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=2)
    assert fallback_version(ApiVersionsResponse(error_code=35, api_keys=[entry])) == 2
    assert fallback_version(ApiVersionsResponse(error_code=35)) == 0
