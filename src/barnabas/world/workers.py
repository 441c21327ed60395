"""Where long pure work goes, so that nothing longer than a millisecond runs on the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Workers(Protocol):
    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """Run a pure function elsewhere (inline in the simulator) and wait for what it returns."""

    async def close(self) -> None: ...
