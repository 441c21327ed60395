"""What every part of the admin client shares: the cluster, and how errors of an answer become exceptions."""

from __future__ import annotations

from typing import TypeVar

from barnabas.client.cluster.cluster import Cluster
from barnabas.model import errors
from barnabas.model.errors import ApiError, error_of
from barnabas.transport.versions import NO_LIMIT, Shaped
from barnabas.wire.message import Message

R = TypeVar("R", bound=Message)


class AdminCalls:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def _controller(self, message: Message, response: type[R], *, timeout_ms: int | None = None) -> R:
        async def attempt() -> R:
            return await self.cluster.call_controller(message, response)

        return await self.cluster.retrying(attempt, timeout_ms=timeout_ms)

    async def _broker(self, broker: int | None, message: Message | Shaped, response: type[R]) -> R:
        """One broker, or any."""

        async def attempt() -> R:
            if broker is None:
                return await self.cluster.call_any(message, response)
            if broker not in self.cluster.metadata.brokers:
                await self.cluster.refresh()
            return await self.cluster.call(broker, message, response, version_max=NO_LIMIT)

        return await self.cluster.retrying(attempt)


def problem(code: int, message: str | None, *, about: str) -> ApiError | None:
    """The error of one entry of an answer, or None."""
    if code == errors.NONE.code:
        return None
    row = error_of(code)
    return ApiError(row, message or f"{about}: {row.text}")
