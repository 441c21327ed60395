"""Which version of each API a broker and we both speak: the result of the ApiVersions exchange.

Clients' connections and the links between nodes begin with :func:`agree` and ask here before every request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from barnabas.model import errors
from barnabas.model.errors import ApiError, error_of
from barnabas.model.version import __version__
from barnabas.transport.channel import Channel
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

NO_LIMIT: Final = 2**15 - 1
SOFTWARE_NAME: Final = "barnabas"
NEGOTIATIONS_MAX: Final = 2


class Shaped(NamedTuple):
    """A request whose shape depends on the version that is agreed on, and so is made only then."""

    request: type[Message]
    build: Callable[[int], Message]


@dataclass(frozen=True, slots=True)
class ApiRanges:
    ranges: Mapping[int, tuple[int, int]]
    features: Mapping[str, int] = field(default_factory=dict)  # finalised levels, such as transaction.version

    @classmethod
    def of(cls, response: ApiVersionsResponse) -> ApiRanges:
        return cls(
            {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys},
            {feature.name: feature.max_version_level for feature in response.finalized_features},
        )

    def has(self, request: type[Message]) -> bool:
        return self._common(request, NO_LIMIT) is not None

    def highest_common(self, request: type[Message], *, version_max: int = NO_LIMIT) -> int:
        version = self._common(request, version_max)
        if version is None:
            assert request.api_key is not None
            offered = self.ranges.get(request.api_key)
            name = request.api_key.name
            reason = f"offers only versions {offered[0]} to {offered[1]} of it" if offered else "does not offer it"
            raise ApiError(errors.UNSUPPORTED_VERSION, f"{name} is not possible here: the broker {reason}.")
        return version

    def _common(self, request: type[Message], version_max: int) -> int | None:
        assert request.api_key is not None
        low, high = self.ranges.get(request.api_key, (0, -1))
        version = min(high, request.versions[-1], version_max)
        return version if version >= max(low, request.versions[0]) else None


def fallback_version(response: ApiVersionsResponse) -> int:
    """The version of ApiVersions to ask with after UNSUPPORTED_VERSION; brokers before 2.4 name none and know 0."""
    for entry in response.api_keys:
        if entry.api_key == ApiKey.API_VERSIONS:
            return max(0, min(entry.max_version, ApiVersionsRequest.versions[-1] - 1))
    return 0


async def agree(channel: Channel) -> ApiRanges:
    """Ask for the broker's versions with our newest; one that does not know it says what it knows (KIP-511)."""
    version = ApiVersionsRequest.versions[-1]
    for _ in range(NEGOTIATIONS_MAX):
        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)
        answer = await channel.send(request, version)
        assert isinstance(answer, ApiVersionsResponse)
        if answer.error_code == errors.NONE.code:
            return ApiRanges.of(answer)
        if answer.error_code != errors.UNSUPPORTED_VERSION.code:
            raise ApiError(error_of(answer.error_code), f"{channel.host}:{channel.port} refused to talk to us.")
        version = fallback_version(answer)
    raise ApiError(errors.UNSUPPORTED_VERSION, f"{channel.host}:{channel.port} refused to say what it speaks.")
